"""Examples of costly accesses: for an instruction, the one that took the most transactions.

From the addresses follow what counts alone cannot say: the stride between lanes, and which lanes
meet in a bank of shared memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from warploom.cost.device_rules import AccessRules
from warploom.cost.fields import EXAMPLE_ADDRESSES, EXAMPLE_COST, EXAMPLE_MASK, TRANSACTIONS
from warploom.cost.paired_banks import registers_returned
from warploom.machine.compiled.access_costs import common_cost
from warploom.machine.tally import Tally
from warploom.program.accesses import bytes_of
from warploom.ptx.ir import Space


@dataclass(frozen=True, slots=True)
class Example:
    """One access of instruction `instruction` of the program, which stands at `line`.

    It took `cost` transactions (wavefronts, passes), where the best takes `best`. `lanes` took
    part, each at its address (in local memory an offset in its layout), for `size` bytes.
    """

    instruction: int
    line: str
    space: Space
    op: str
    size: int
    cost: int
    best: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    rule: str

    @property
    def stride(self) -> int | None:
        """Return the bytes from each lane to the next, where that is always the same; else None."""
        steps = {
            (b - a) // (lane - before)
            for (a, before), (b, lane) in _pairs(self.addresses, self.lanes)
            if (b - a) % (lane - before) == 0
        }
        whole = all((b - a) % (n - m) == 0 for (a, m), (b, n) in _pairs(self.addresses, self.lanes))
        return steps.pop() if len(steps) == 1 and whole else None

    @property
    def pitch(self) -> int | None:
        """Return the step between lanes that is most often not simply the next element."""
        steps = Counter(abs(b - a) for (a, _), (b, _) in _pairs(self.addresses, self.lanes))
        found = [(count, step) for step, count in steps.items() if step > self.size]
        return max(found)[1] if found else None

    @property
    def collisions(self) -> tuple[tuple[int, ...], ...]:
        """For shared memory: the lanes that wait for each other, for each bank that has such."""
        return colliding(self.addresses, self.lanes, self.size, self.rule)


Place = tuple[int, int]


def _pairs(addresses: tuple[int, ...], lanes: tuple[int, ...]) -> list[tuple[Place, Place]]:
    """Return each lane's address and number beside the next one's."""
    places = list(zip(addresses, lanes, strict=True))
    return list(pairwise(places))


def find_examples(tally: Tally, rules: AccessRules) -> tuple[Example, ...]:
    """Return the examples of a run, in the order of the program."""
    found: list[Example] = []
    for row, record in zip(tally.rows, tally.records.tolist(), strict=True):
        lanes = _lanes_of_mask(record[EXAMPLE_MASK])
        if not lanes:
            continue
        instruction = tally.program.instructions[row.instruction]
        best = common_cost(tally.program, row, rules)[TRANSACTIONS]
        found.append(
            Example(
                row.instruction,
                tally.program.line(row.instruction),
                row.space,
                row.op,
                bytes_of(instruction),
                record[EXAMPLE_COST],
                int(best),
                lanes,
                tuple(record[EXAMPLE_ADDRESSES + lane % 32] for lane in lanes),
                rules.cost(row.space.value, row.op),
            )
        )
    return tuple(found)


def _lanes_of_mask(mask: int) -> tuple[int, ...]:
    """Return the lanes that took part: some of the first 32, or of those behind them."""
    low = mask & 0xFFFFFFFF
    return tuple(n for n in range(64) if (low or mask) >> n & 1)


_BANKS = {
    "shared_32_banks": (32, 4),
    "shared_32_banks_read": (32, 4),
    "shared_32_banks_quarters": (32, 4),
    "shared_wide_banks": (32, 8),
    "shared_wide_banks_of_words": (32, 8),
    "shared_16_banks_read": (16, 4),
    "shared_16_banks_write": (16, 4),
}
"""By rule: how many banks, and their bytes."""


def _return_passes(addresses: tuple[int, ...], lanes: tuple[int, ...], size: int) -> int:
    """Return in how many turns the registers of an access come back."""
    where, mask = np.zeros(32, np.uint64), 0
    for lane, address in zip(lanes, addresses, strict=True):
        where[lane % 32] = address
        mask |= 1 << lane % 32
    return registers_returned(where, mask, size)


def colliding(
    addresses: tuple[int, ...], lanes: tuple[int, ...], size: int, rule: str
) -> tuple[tuple[int, ...], ...]:
    """Return the lanes that meet in a bank over different words, bank by bank; see
    `cost.banks`."""
    if rule not in _BANKS:
        return ()
    banks, width = _BANKS[rule]
    lanes_at_once = banks * max(1, width // 4) * 4 // max(size, 4) if banks == 32 else banks
    if rule == "shared_32_banks_read":
        lanes_at_once = banks // _return_passes(addresses, lanes, size)
    words_by_bank: dict[tuple[int, int], dict[int, list[int]]] = {}
    for lane, address in zip(lanes, addresses, strict=True):
        bank, word = (address // width) % banks, address // width
        if rule == "shared_wide_banks_of_words":
            bank, word = address // 4 % banks, address // 256
        group = lane // min(32, max(1, lanes_at_once))
        words_by_bank.setdefault((group, bank), {}).setdefault(word, []).append(lane)
    return tuple(
        tuple(sorted(lane for several in words.values() for lane in several))
        for _, words in sorted(words_by_bank.items())
        if len(words) > 1
    )
