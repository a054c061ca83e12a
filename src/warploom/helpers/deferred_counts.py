"""Emits the counting of 32 deferred shared-memory atomics at once, in vectors with one byte for
each access (the vector form of `cost.deferred_atomics.sum_deferred_costs`).

An access has a byte for each lane: the word that it addressed, in a window of 256 words. The bytes
are transposed to 32 vectors, one for each lane, whose byte i belongs to access i. A sorting network
(Batcher's) then sorts each access's 32 words with 191 pairs of `umin` and `umax`, without branches.
In sorted order, neighbors that differ in the word, the sector or the line count distinct words,
sectors and lines; the longest run of equal words is the number of serialized lanes. Sorted by bank
(bytes rotated, so that the bank is in the high bits), the most distinct words of one bank is the
number of wavefronts:

    words of one access     0 32 32 1, all other lanes 1
    sorted by word          0 1 .. 1 32 32: 3 words, longest run 29 lanes
    sorted by bank          bank 0: {0, 32}, bank 1: {1}: 2 wavefronts

All 32 lanes of an access have to be active.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from llvmlite import ir

from warploom.cost.deferred_atomics import AccessCounts
from warploom.llvm.lanes import (
    I8,
    I16,
    I32,
    I64,
    LANES,
    Lanes,
    Value,
    lane_numbers,
    splat_constant,
    vector,
    zero,
)

BYTES = vector(I8)
ROW_BITS, SECTOR_WORDS, LINE_WORDS = 3, 8, 32
"""A byte is the index of a word in 8 rows of 32 banks: the row in its high 3 bits. Sectors are 8
words, lines 32."""

HALF = LANES // 2


def count_deferred(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `cost.deferred_atomics.sum_deferred_costs` of an access record and the number of
    deferred accesses, 1 to 32 (`arguments`). Returns its seven results (i64): the sums of words,
    sectors, lines, wavefronts and passes over the accesses; the most wavefronts of one access; and
    the index of the first access that has as many."""
    b, (record, count) = lanes.b, arguments
    accesses = [
        b.load(lanes.slot(record, AccessCounts.keys + LANES // 8 * n), typ=BYTES, align=8)
        for n in range(LANES)
    ]
    words = _transpose(lanes, accesses)
    # Rotated by 3 bits, a byte has the bank in its high bits, so that sorting orders by banks.
    by_bank = [_intrinsic(lanes, "fshl", word, word, _byte(ROW_BITS)) for word in words]
    *differ, most = _count_sorted_words(lanes, _sort(lanes, words))
    bank_words = _count_bank_words(lanes, _sort(lanes, by_bank))
    filled = b.icmp_unsigned("<", lane_numbers(I8), lanes.splat(b.trunc(count, I8)))
    sums = [_sum(lanes, filled, value) for value in (*differ, bank_words, most)]
    counted = b.select(filled, bank_words, zero(BYTES))
    worst = lanes.intrinsic("llvm.vector.reduce.umax.v32i8", I8, [counted])
    where = lanes.bits(b.icmp_unsigned("==", counted, lanes.splat(worst)))
    first = lanes.intrinsic("llvm.cttz.i32", I32, [where, ir.IntType(1)(1)])
    return [*sums, b.zext(worst, I64), b.zext(first, I64)]


def _byte(value: int) -> Value:
    """Returns a constant vector of 32 bytes, each of which is `value`."""
    return splat_constant(value, I8)


def _intrinsic(lanes: Lanes, operation: str, *values: Value) -> Value:
    """Emits the call of the LLVM intrinsic `llvm.OPERATION.v32i8`; returns its result, a vector of
    32 bytes."""
    return lanes.intrinsic(f"llvm.{operation}.v32i8", BYTES, values)


def _transpose(lanes: Lanes, rows: list[Value]) -> list[Value]:
    """Transposes a matrix of 32 x 32 bytes, held in the 32 vectors `rows`, which it replaces and
    returns, so that each vector has one lane of every access; the order of these vectors is
    arbitrary, since they are sorted next."""
    # Four steps of interleaving transpose the 16 x 16 blocks in both halves; then halves are
    # exchanged.
    for bit in (8, 4, 2, 1):
        for one in range(LANES):
            if not one & bit:
                pair = rows[one], rows[one | bit]
                rows[one], rows[one | bit] = (
                    _interleave(lanes, *pair, at) for at in (0, HALF // 2)
                )
    for one in range(HALF):
        pair = rows[one], rows[one + HALF]
        rows[one], rows[one + HALF] = (
            lanes.b.shuffle_vector(*pair, _indices([*_half_range(at), *_half_range(at + LANES)]))
            for at in (0, HALF)
        )
    return rows


def _half_range(first: int) -> range:
    """Returns the range of the 16 consecutive indices from `first` on."""
    return range(first, first + HALF)


def _interleave(lanes: Lanes, first: Value, second: Value, at: int) -> Value:
    """Returns a vector of bytes of `first` and `second` in turn: from each 16-byte half of both,
    the 8 bytes from offset `at` (0 or 8) on, which is one `punpck` instruction of x86."""
    indices = [half + at + n for half in (0, HALF) for n in range(HALF // 2)]
    return lanes.b.shuffle_vector(
        first, second, _indices([p + w for p in indices for w in (0, LANES)])
    )


def _indices(indices: Sequence[int]) -> Value:
    """Returns a constant vector of indices for `shufflevector`."""
    return ir.Constant(vector(I32), [I32(index) for index in indices])


def sorting_pairs() -> Iterator[tuple[int, int]]:
    """Yields the pairs of indices (lower first) that Batcher's merge exchange compares, in order,
    to sort 32 values (Knuth, The Art of Computer Programming, volume 3, 5.2.2, algorithm M)."""
    length = HALF
    while length:
        difference, step, rest = length, HALF, 0
        while difference:
            yield from (
                (i, i + difference) for i in range(LANES - difference) if i & length == rest
            )
            difference, step, rest = step - length, step // 2, length
        length //= 2


def _sort(lanes: Lanes, values: Sequence[Value]) -> list[Value]:
    """Emits a sorting network (`sorting_pairs`) that sorts the values of each byte position across
    the 32 vectors, as unsigned numbers; returns the 32 sorted vectors, the least values first."""
    ordered = list(values)
    for one, second in sorting_pairs():
        pair = ordered[one], ordered[second]
        ordered[one], ordered[second] = (
            _intrinsic(lanes, name, *pair) for name in ("umin", "umax")
        )
    return ordered


def _count_sorted_words(lanes: Lanes, words: Sequence[Value]) -> list[Value]:
    """Returns four vectors with a byte for each access: its numbers of distinct words, sectors and
    lines, and the most lanes on one word, from its 32 words in rising order, one in each vector of
    `words`."""
    b = lanes.b
    counts = [_byte(1)] * 3
    run, longest = _byte(0), _byte(0)
    for before, word in pairwise(words):
        # Numbers differ in their sector (8 words) if they differ in a bit above the lowest 3: if
        # XOR >= 8.
        difference = b.xor(before, word)
        changes = [
            b.icmp_unsigned(">=", difference, _byte(size)) for size in (1, SECTOR_WORDS, LINE_WORDS)
        ]
        counts = [b.add(n, b.zext(some, BYTES)) for n, some in zip(counts, changes, strict=True)]
        run = b.select(changes[0], _byte(0), b.add(run, _byte(1)))
        longest = _intrinsic(lanes, "umax", longest, run)
    return [*counts, b.add(longest, _byte(1))]


def _count_bank_words(lanes: Lanes, words: Sequence[Value]) -> Value:
    """Returns, as a vector with a byte for each access, the most distinct words of one bank. Vector
    n of the 32 `words` has word n of each access, with the bank in the high 5 bits of its byte;
    they are sorted, also within a bank: only neighbors are compared."""
    b = lanes.b
    bank_words, most = _byte(1), _byte(1)
    for before, word in pairwise(words):
        difference = b.xor(before, word)
        more = b.add(bank_words, b.zext(b.icmp_unsigned("!=", difference, _byte(0)), BYTES))
        other = b.icmp_unsigned(">=", difference, _byte(1 << ROW_BITS))
        bank_words = b.select(other, _byte(1), more)
        most = _intrinsic(lanes, "umax", most, bank_words)
    return most


def _sum(lanes: Lanes, which: Value, values: Value) -> Value:
    """Returns the sum of the bytes of `values` in the lanes that the mask `which` selects, as an
    i64; at most 32 * 32, so that 16 bits are enough on the way."""
    wide = lanes.b.zext(lanes.b.select(which, values, zero(BYTES)), vector(I16))
    return lanes.b.zext(lanes.intrinsic("llvm.vector.reduce.add.v32i16", I16, [wide]), I64)
