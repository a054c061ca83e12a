"""Lists, for reports, the transactions or passes of an access: the lanes that each serves, the
bytes it moves.

The rules only count; this module enumerates the same transactions, for reports and the viewer. For
every rule, the list is as long as the rule's count (tests compare the two). Sources are those of
the rules. In local memory, addresses are offsets in its interleaved layout.

    global_by_sectors, floats at 0, 4, ..., 124   ->   (0, 32, 0xff), (32, 32, 0xff00), ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from warploom.cost.constant import word_shift
from warploom.cost.paired_banks import count_return_cycles
from warploom.cost.segments import shrunk_bytes

WARP, HALF = 32, 16


class ServedTransaction(NamedTuple):
    """Describes one transaction, or one pass over the banks: its first byte and number of bytes
    (both 0 for banks, which deliver several words per pass), and the mask of lanes served."""

    start: int
    size: int
    lanes: int


Lanes = list[int]
Serve = Callable[[Sequence[int], Lanes, int], Iterator[ServedTransaction]]


def list_transactions(
    rule: str, addresses: Sequence[int], mask: int, size: int
) -> tuple[ServedTransaction, ...]:
    """Returns the transactions of an access of `size` bytes per lane by the rule of that name, in
    the order in which they happen. `addresses[l]` is the address of lane l, `mask` the active
    lanes."""
    lanes = [lane for lane in range(WARP) if mask >> lane & 1]
    return tuple(_RULES[rule](addresses, lanes, size))


def _mask(lanes: Sequence[int]) -> int:
    """Returns the mask of some lanes."""
    return sum(1 << lane for lane in lanes)


def _groups(lanes: Lanes, width: int) -> Iterator[Lanes]:
    """Yields the active lanes of each aligned group of `width` lanes that has any."""
    for group_start in range(0, WARP, width):
        group = [lane for lane in lanes if group_start <= lane < group_start + width]
        if group:
            yield group


def _lanes_by_segment(addresses: Sequence[int], lanes: Lanes, bytes_: int) -> dict[int, int]:
    """Returns the mask of lanes that touch each segment of `bytes_` bytes, by segment index, in
    rising order."""
    lanes_by_segment: dict[int, int] = {}
    for lane in lanes:
        segment = addresses[lane] // bytes_
        lanes_by_segment[segment] = lanes_by_segment.get(segment, 0) | 1 << lane
    return {segment: lanes_by_segment[segment] for segment in sorted(lanes_by_segment)}


# ---- global, local and constant memory ----------------------------------------------------------
# Each function yields the transactions of one rule, or family of rules, of _RULES.


def _segments(
    addresses: Sequence[int], lanes: Lanes, size: int, *, bytes_: int, grouped: bool
) -> Iterator[ServedTransaction]:
    """Yields a transaction for each segment of `bytes_` bytes that the lanes touch; if `grouped`,
    separately for each aligned group of 128 // `size` lanes (at most 32)."""
    for group in _groups(lanes, min(WARP, 128 // size) if grouped else WARP):
        for segment, inside in _lanes_by_segment(addresses, group, bytes_).items():
            yield ServedTransaction(segment * bytes_, bytes_, inside)


def _in_order(addresses: Sequence[int], lanes: Lanes, size: int) -> Iterator[ServedTransaction]:
    """Yields the transactions of global memory on compute capability 1.0 and 1.1: for a half-warp
    in order its words together (16 bytes per lane: in two transactions), else, and for words of 1
    or 2 bytes, 32 bytes for each lane."""
    for half in _groups(lanes, HALF):
        half_start = half[0] // HALF * HALF
        start = addresses[half[0]] - (half[0] - half_start) * size
        moved = min(HALF * size, 128)
        ordered = all(addresses[lane] == start + (lane - half_start) * size for lane in half)
        if size >= 4 and start % moved == 0 and ordered:
            for part in range(max(1, HALF * size // 128)):
                begin = start + part * moved
                inside = [lane for lane in half if begin <= addresses[lane] < begin + moved]
                yield ServedTransaction(begin, moved, _mask(inside))
        else:
            yield from (
                ServedTransaction(addresses[lane] // 32 * 32, 32, 1 << lane) for lane in half
            )


def _by_halves(addresses: Sequence[int], lanes: Lanes, size: int) -> Iterator[ServedTransaction]:
    """Yields the transactions of global memory on compute capability 1.2 and 1.3: for each
    half-warp the segments that its lanes touch, shrunk to the used part."""
    segment = min(32 * size, 128)
    for half in _groups(lanes, HALF):
        left = list(half)
        while left:
            start = addresses[left[0]] // segment * segment
            inside = [lane for lane in left if start <= addresses[lane] < start + segment]
            lowest = min(addresses[lane] for lane in inside) - start
            end = max(addresses[lane] for lane in inside) - start + size
            moved = shrunk_bytes(segment, lowest, end)
            yield ServedTransaction(start + lowest // moved * moved, moved, _mask(inside))
            left = [lane for lane in left if lane not in inside]


def _local(
    addresses: Sequence[int], lanes: Lanes, size: int, *, bytes_: int
) -> Iterator[ServedTransaction]:
    """Yields a transaction for each segment of `bytes_` bytes that any 4-byte word of any lane
    touches in local memory."""
    lanes_by_segment: dict[int, int] = {}
    for lane in lanes:
        for word in range(max(1, size // 4)):
            segment = (addresses[lane] + 128 * word) // bytes_
            lanes_by_segment[segment] = lanes_by_segment.get(segment, 0) | 1 << lane
    for segment, mask in sorted(lanes_by_segment.items()):
        yield ServedTransaction(segment * bytes_, bytes_, mask)


def _word_by_word(
    addresses: Sequence[int], lanes: Lanes, size: int, *, rule: Serve
) -> Iterator[ServedTransaction]:
    """Yields the transactions of a `rule` for each 4-byte word of the lanes of an access to local
    memory, where a lane's next word is 128 bytes further."""
    for word in range(max(1, size // 4)):
        yield from rule([address + 128 * word for address in addresses], lanes, min(size, 4))


def _constant(
    addresses: Sequence[int], lanes: Lanes, size: int, *, width: int
) -> Iterator[ServedTransaction]:
    """Yields a pass for each distinct word (of 4 bytes, or of `size` if that is larger) that an
    aligned group of `width` lanes reads, with the word's first byte, its size and the lanes that
    read it. `addresses` is by lane number."""
    bytes_ = 1 << word_shift(size)
    for group in _groups(lanes, width):
        for segment, inside in _lanes_by_segment(addresses, group, bytes_).items():
            yield ServedTransaction(segment * bytes_, bytes_, inside)


# ---- shared memory ------------------------------------------------------------------------------


def _passes(words: dict[int, int], bank_of: Callable[[int], int]) -> Iterator[ServedTransaction]:
    """Yields the passes over the banks, with start and size 0; pass n serves the nth word of every
    bank. `words` has the mask of lanes of each word, `bank_of` returns the bank of a word."""
    # As many passes as the fullest bank has words, which is what the rule counts. Which words share
    # a pass is not specified: here the nth of each bank.
    banks: dict[int, list[int]] = {}
    for word, lanes in words.items():
        banks.setdefault(bank_of(word), []).append(lanes)
    for turn in range(max(map(len, banks.values()))):
        yield ServedTransaction(
            0, 0, sum(queue[turn] for queue in banks.values() if turn < len(queue))
        )


def _banks(
    addresses: Sequence[int], lanes: Lanes, size: int, *, bank: int, quarters: bool = False
) -> Iterator[ServedTransaction]:
    """Yields the passes over 32 banks of `bank` bytes; accesses wider than a bank are served in
    smaller groups of lanes over fewer banks. With `quarters`, a quarter-warp of 16 bytes needs one
    more pass, which serves no lane."""
    word = max(bank, size)
    count = WARP * bank // word
    for group in _groups(lanes, count):
        yield from _passes(
            _lanes_by_segment(addresses, group, word), lambda segment: segment % count
        )
        if quarters and size == 16:
            yield ServedTransaction(0, 0, 0)


def _banks_of_pairs(
    addresses: Sequence[int], lanes: Lanes, size: int
) -> Iterator[ServedTransaction]:
    """Yields the passes of a load over 32 banks of 4 bytes, in groups of as many lanes as return
    their data in one cycle: 32 divided by `count_return_cycles` of the whole access."""
    where = np.zeros(WARP, np.uint64)
    where[lanes] = [addresses[lane] for lane in lanes]
    word = max(4, size)
    for group in _groups(lanes, WARP // count_return_cycles(where, _mask(lanes), size)):
        yield from _passes(
            _lanes_by_segment(addresses, group, word), lambda segment: segment % (4 * WARP // word)
        )


def _banks_of_rows(
    addresses: Sequence[int], lanes: Lanes, size: int
) -> Iterator[ServedTransaction]:
    """Yields the passes over banks of 8 bytes in the mode of 4, in groups of 32 lanes for up to 8
    bytes, 16 for 16: words i and i + 32 of a row of 64 words are served together."""
    for group in _groups(lanes, min(WARP, 256 // size)):
        lanes_by_segment: dict[int, int] = {}
        for lane in group:
            row, bank = addresses[lane] // 256, addresses[lane] // 4 % WARP
            segment = row * WARP + bank
            lanes_by_segment[segment] = lanes_by_segment.get(segment, 0) | 1 << lane
        yield from _passes(dict(sorted(lanes_by_segment.items())), lambda segment: segment % WARP)


def _half_warp_reads(
    addresses: Sequence[int], lanes: Lanes, size: int
) -> Iterator[ServedTransaction]:
    """Yields the steps of a load from shared memory on compute capability 1.x (with start and size
    0), for each half-warp and 4-byte word: each broadcasts the word of the lowest remaining lane
    and serves one lane of every other bank."""
    for half in _groups(lanes, HALF):
        for _ in range(max(1, size // 4)):
            left = list(half)
            while left:
                broadcast = addresses[left[0]] // 4
                banks, inside = {broadcast % HALF}, list[int]()
                for lane in left:
                    word = addresses[lane] // 4
                    if word == broadcast or word % HALF not in banks:
                        inside.append(lane)
                        banks.add(word % HALF)
                yield ServedTransaction(0, 0, _mask(inside))
                left = [lane for lane in left if lane not in inside]


def _half_warp_writes(
    addresses: Sequence[int], lanes: Lanes, size: int
) -> Iterator[ServedTransaction]:
    """Yields the steps of a store to shared memory on compute capability 1.x (with start and size
    0): each serves one word of every bank, for each half-warp and word."""
    for half in _groups(lanes, HALF):
        for _ in range(max(1, size // 4)):
            yield from _passes(
                _lanes_by_segment(addresses, half, 4), lambda segment: segment % HALF
            )


_RULES: dict[str, Serve] = {
    "global_by_sectors": partial(_segments, bytes_=32, grouped=False),
    "global_by_segments": partial(_segments, bytes_=32, grouped=True),
    "global_by_lines": partial(_segments, bytes_=128, grouped=True),
    "global_in_order": _in_order,
    "global_by_halves": _by_halves,
    "local_by_sectors": partial(_local, bytes_=32),
    "local_by_lines": partial(_local, bytes_=128),
    "local_in_order": partial(_word_by_word, rule=_in_order),
    "local_by_halves": partial(_word_by_word, rule=_by_halves),
    "constant_by_warp": partial(_constant, width=WARP),
    "constant_by_halves": partial(_constant, width=HALF),
    "shared_32_banks": partial(_banks, bank=4),
    "shared_32_banks_read": _banks_of_pairs,
    "shared_32_banks_quarters": partial(_banks, bank=4, quarters=True),
    "shared_wide_banks": partial(_banks, bank=8),
    "shared_wide_banks_of_words": _banks_of_rows,
    "shared_16_banks_read": _half_warp_reads,
    "shared_16_banks_write": _half_warp_writes,
}
