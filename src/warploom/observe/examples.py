"""Extracts the costliest access of each instruction as an example: the one that took the most
transactions.

Its addresses show what counts cannot: the stride between lanes, and which lanes conflict in a bank
of shared memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from warploom.cost.device_rules import AccessRules
from warploom.cost.fields import CostRecord
from warploom.cost.paired_banks import count_return_cycles
from warploom.isa.instruction import Space
from warploom.machine.access_costs import common_cost
from warploom.machine.tally import Tally
from warploom.program.accesses import bytes_of


@dataclass(frozen=True, slots=True)
class Example:
    """One access of instruction `instruction` of the program, at source line `line`.

    It took `cost` transactions (wavefronts, passes), where the common access takes `best`. Each of
    `lanes` accesses `size` bytes at its address (in local memory an offset in the interleaved
    layout).
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
        """Returns the bytes between consecutive lanes if that is constant, else None."""
        steps = {
            (b - a) // (lane_b - lane_a)
            for (a, lane_a), (b, lane_b) in _pairs(self.addresses, self.lanes)
            if (b - a) % (lane_b - lane_a) == 0
        }
        is_multiple = all(
            (b - a) % (n - m) == 0 for (a, m), (b, n) in _pairs(self.addresses, self.lanes)
        )
        return steps.pop() if len(steps) == 1 and is_multiple else None

    @property
    def pitch(self) -> int | None:
        """Returns the most frequent distance between consecutive lanes that is larger than an
        element; None if there is none."""
        steps = Counter(abs(b - a) for (a, _), (b, _) in _pairs(self.addresses, self.lanes))
        candidates = [(count, step) for step, count in steps.items() if step > self.size]
        return max(candidates)[1] if candidates else None

    @property
    def collisions(self) -> tuple[tuple[int, ...], ...]:
        """Returns the lanes that conflict in each bank of shared memory that has a conflict."""
        return colliding(self.addresses, self.lanes, self.size, self.rule)


Place = tuple[int, int]


def _pairs(addresses: tuple[int, ...], lanes: tuple[int, ...]) -> list[tuple[Place, Place]]:
    """Returns the (address, lane) of each active lane paired with that of the next."""
    accesses = list(zip(addresses, lanes, strict=True))
    return list(pairwise(accesses))


def find_examples(tally: Tally, rules: AccessRules) -> tuple[Example, ...]:
    """Returns the examples of a launch in the order of the program."""
    examples: list[Example] = []
    for row, words in zip(tally.access_records, tally.records.tolist(), strict=True):
        record = CostRecord(words, 0)
        lanes = _lanes_of_mask(record.example_mask)
        if not lanes:
            continue
        instruction = tally.program.instructions[row.instruction]
        best = common_cost(tally.program, row, rules)[CostRecord.transactions]
        examples.append(
            Example(
                row.instruction,
                tally.program.line(row.instruction),
                row.space,
                row.op,
                bytes_of(instruction),
                record.example_cost,
                int(best),
                lanes,
                tuple(record.example_addresses[lane % 32] for lane in lanes),
                rules.cost(row.space.value, row.op),
            )
        )
    return tuple(examples)


def _lanes_of_mask(mask: int) -> tuple[int, ...]:
    """Returns the lanes of an example's mask, which are all below 32 or all above."""
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
"""The number of banks and their width in bytes, by cost rule."""


def _return_passes(addresses: tuple[int, ...], lanes: tuple[int, ...], size: int) -> int:
    """Returns the number of passes in which the registers of an access are returned."""
    by_lane, mask = np.zeros(32, np.uint64), 0
    for lane, address in zip(lanes, addresses, strict=True):
        by_lane[lane % 32] = address
        mask |= 1 << lane % 32
    return count_return_cycles(by_lane, mask, size)


def colliding(
    addresses: tuple[int, ...], lanes: tuple[int, ...], size: int, rule: str
) -> tuple[tuple[int, ...], ...]:
    """Returns the lanes that access different words of one bank, bank by bank; see `cost.banks`.
    Example: with 32 banks of 4 bytes and a stride of 64 bytes, lanes 0, 2, 4, ... collide in bank
    0, and lanes 1, 3, 5, ... in bank 16."""
    if rule not in _BANKS:
        return ()
    banks, width = _BANKS[rule]
    # Wide accesses are served for part of the warp at a time; lanes of different parts do not
    # conflict.
    lanes_at_once = banks * max(1, width // 4) * 4 // max(size, 4) if banks == 32 else banks
    if rule == "shared_32_banks_read":
        lanes_at_once = banks // _return_passes(addresses, lanes, size)
    words_by_bank: dict[tuple[int, int], dict[int, list[int]]] = {}
    for lane, address in zip(lanes, addresses, strict=True):
        bank, word = (address // width) % banks, address // width
        # In the 4-byte mode of compute capability 3.x, words of a bank that are in one row of 256
        # bytes do not conflict.
        if rule == "shared_wide_banks_of_words":
            bank, word = address // 4 % banks, address // 256
        group = lane // min(32, max(1, lanes_at_once))
        words_by_bank.setdefault((group, bank), {}).setdefault(word, []).append(lane)
    return tuple(
        tuple(sorted(lane for word_lanes in words.values() for lane in word_lanes))
        for _, words in sorted(words_by_bank.items())
        if len(words) > 1
    )
