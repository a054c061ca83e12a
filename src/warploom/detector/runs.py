"""Computes with footprints, for the race detector: which bytes of a 128-byte line the lanes of a
run (evenly spaced lanes of one access) touch, and how two of these overlap.

A footprint is a number with fields of a run's access word (`layout`): the bytes of a lane, the
first byte, the end past the last lane's bytes, and the stride; other bits are ignored. Elements are
aligned to their size, so that none crosses a line. With a footprint go its words: a bit for each
aligned four bytes of the line of which it has some. For lanes of four bytes and more, some of the
footprint's lanes may be missing; the words show which.

    v2.f32 loads at stride 16, lanes 0 to 3, byte 0 of the line:
      size 8, begin 0, end 56, stride 16; words 0b11001100110011
    the other halves: begin 8, end 64; words 0b1100110011001100: never_overlap
"""

from __future__ import annotations

from warploom.detector.layout import (
    FALLS,
    RUN_BEGIN_AT,
    RUN_BEGIN_BITS,
    RUN_END_AT,
    RUN_END_BITS,
    RUN_SIZE_AT,
    RUN_SIZE_BITS,
    RUN_STRIDE_AT,
    RUN_STRIDE_BITS,
)
from warploom.simt.lane_counts import jitable

WORD, WORDS = 4, 32
"""Bytes of a word of a line, and words of a line."""


@jitable
def footprint_of(size: int, stride: int, begin: int, end: int) -> int:
    """Returns the footprint of lanes in a line, packed as in a run's access word (RUN_*_AT): `size`
    bytes a lane, from byte `begin` up to byte `end` (exclusive), and the magnitude of `stride` in
    bytes, 0 for a single lane; with FALLS if `stride` is negative (addresses fall from lane to
    lane)."""
    # A single lane has no stride, so that it agrees with any (`common_stride`).
    step = 0 if end - begin == size else abs(stride)
    falls = FALLS if step and stride < 0 else 0
    return (
        falls
        | size << RUN_SIZE_AT
        | begin << RUN_BEGIN_AT
        | end << RUN_END_AT
        | step << RUN_STRIDE_AT
    )


@jitable
def footprint_of_contiguous(size: int, begin: int, end: int) -> int:
    """Returns the footprint of lanes that access `size` bytes each, one after the other, from byte
    `begin` up to byte `end` (exclusive) of a line; as `footprint_of` with that size as the stride
    (0 for one lane)."""
    step = 0 if end - begin == size else size
    packed = size << RUN_SIZE_AT | begin << RUN_BEGIN_AT | end << RUN_END_AT
    return packed | step << RUN_STRIDE_AT


@jitable
def words_of_contiguous(size: int, begin: int, end: int, lanes: int) -> int:
    """Returns the words (a bit for each aligned four bytes of the line) of a contiguous footprint,
    for the lanes in a mask, whose first bit is the lane that accesses byte `begin`. Below four
    bytes a lane the mask is ignored: all words from byte `begin` up to byte `end` (exclusive)."""
    # Without gaps in the mask, the words from `begin` up to `end` are all there.
    if size < WORD or lanes & lanes + 1 == 0:
        return (1 << ((end + 3) >> 2)) - (1 << (begin >> 2))
    return repeat_bits_per_word(lanes, size) << (begin >> 2)


@jitable
def size_of(footprint: int) -> int:
    """Returns the bytes that each lane of a footprint accesses."""
    return footprint >> RUN_SIZE_AT & RUN_SIZE_BITS


@jitable
def begin_of(footprint: int) -> int:
    """Returns the first byte of a footprint in its line, 0 to 127."""
    return footprint >> RUN_BEGIN_AT & RUN_BEGIN_BITS


@jitable
def end_of(footprint: int) -> int:
    """Returns the end, past the last lane's bytes, of a footprint in its line, 1 to 128."""
    return footprint >> RUN_END_AT & RUN_END_BITS


@jitable
def stride_of(footprint: int) -> int:
    """Returns the bytes from one lane's address to the next one's in a footprint, without sign
    (FALLS); 0 for one lane."""
    return footprint >> RUN_STRIDE_AT & RUN_STRIDE_BITS


@jitable
def words_of(footprint: int, lanes: int) -> int:
    """Returns the words of a footprint: a bit for each aligned four bytes of the line of which it
    has some. For lanes of less than four bytes, it is all words from the first to the last. For
    contiguous lanes of four bytes and more, it is the words of the lanes in the mask `lanes`, whose
    bit 0 is the lane that accesses the first byte. At a greater stride it is the words of every
    lane, whatever the mask, without those in the gaps."""
    size, begin = size_of(footprint), begin_of(footprint) >> 2
    between = (1 << ((end_of(footprint) + 3) >> 2)) - (1 << begin)
    stride = max(stride_of(footprint), size)
    if size < WORD:
        return between
    if stride == size:
        return repeat_bits_per_word(lanes, size) << begin & between
    words, step = (1 << (size >> 2)) - 1, stride >> 2
    # Doubles the pattern of one lane until it fills the line.
    while step < WORDS:
        words |= words << step
        step *= 2
    return words << begin & between


@jitable
def repeat_bits_per_word(bits: int, size: int) -> int:
    """Returns 32 bits with each of `bits` repeated once for each word of `size` bytes: 1, 2 or 4
    times."""
    if size > WORD:
        bits = doubled(bits)
    return doubled(bits) if size > 2 * WORD else bits


@jitable
def doubled(bits: int) -> int:
    """Returns 32 bits with each of the lower 16 of `bits` repeated twice: 0b101 gives 0b110011."""
    bits &= 0xFFFF
    # Moves bit i to bit 2 * i, by halves of groups of 16, 8, 4 and 2; times 3 sets its neighbor.
    bits = (bits | bits << 8) & 0x00FF00FF
    bits = (bits | bits << 4) & 0x0F0F0F0F
    bits = (bits | bits << 2) & 0x33333333
    return ((bits | bits << 1) & 0x55555555) * 3


@jitable
def has_gaps(footprint: int) -> int:
    """Returns whether there are bytes between those of two lanes of a footprint."""
    return int(stride_of(footprint) > size_of(footprint))


@jitable
def common_stride(left: int, right: int) -> int:
    """Returns the stride in bytes that two footprints share; where one has a single lane, that of
    the other; 0 if both have a single lane, -1 if the strides differ."""
    stride, other_stride = stride_of(left), stride_of(right)
    if stride == other_stride or other_stride == 0:
        return stride
    return other_stride if stride == 0 else -1


@jitable
def never_overlap(left: int, left_words: int, right: int, right_words: int) -> int:
    """Returns whether two footprints with these words surely have no byte in common: no common
    word, one ends before the other begins, or their lanes interleave at one stride; 0 if that does
    not show it."""
    if left_words & right_words == 0:
        return 1
    if end_of(left) <= begin_of(right) or end_of(right) <= begin_of(left):
        return 1
    stride = common_stride(left, right)
    if stride <= 0:
        return 0
    # Modulo the stride, all lanes of one footprint are at one place: the other's lanes must fit in
    # what is left of the stride after it.
    offset = (begin_of(right) - begin_of(left)) % stride
    return int(offset >= size_of(left) and offset + size_of(right) <= stride)


@jitable
def covers(footprint: int, words: int, other_footprint: int, other_words: int) -> int:
    """Returns whether a footprint with these words surely has all bytes of another: by the words
    alone for lanes of four bytes and more, else by range and stride; 0 if that does not show it."""
    if other_words & ~words:
        return 0
    if size_of(footprint) >= WORD:
        return 1
    if begin_of(other_footprint) < begin_of(footprint) or end_of(footprint) < end_of(
        other_footprint
    ):
        return 0
    if has_gaps(footprint) == 0:
        return 1
    stride = common_stride(footprint, other_footprint)
    if stride <= 0:
        return 0
    return int(
        (begin_of(other_footprint) - begin_of(footprint)) % stride + size_of(other_footprint)
        <= size_of(footprint)
    )


@jitable
def overlap_is_same_thread(left: int, right: int, lanes: int) -> int:
    """Returns whether each byte that two footprints have in common is surely accessed by the same
    thread in both, where the first lane of `right` is `lanes` threads after that of
    `left`; 0 if strides or directions differ."""
    stride = common_stride(left, right)
    if stride < 0:
        return 0
    if stride == 0:
        return int(lanes == 0)
    if (left ^ right) & FALLS and stride_of(left) and stride_of(right):
        return 0
    step = -stride if (left | right) & FALLS else stride
    # `offset` is the distance of one thread's bytes in `right` from those in `left`.
    # Within these bounds, they overlap neither the bytes of the lane before nor those of the lane
    # after.
    offset = begin_of(right) - begin_of(left) - lanes * step
    return int(size_of(left) - stride <= offset <= stride - size_of(right))


@jitable
def bytes_of(footprint: int, words: int, word: int) -> int:
    """Returns a mask of those of the 32 bytes from byte 32 * `word` of the line on that a footprint
    with these words accesses; `word` is 0 to 3."""
    if size_of(footprint) >= WORD:
        # Each bit of the eight words becomes four bits of bytes.
        return doubled(doubled(words >> 8 * word & 255))
    return bytes_of_narrow(footprint, word)


@jitable
def bytes_of_narrow(footprint: int, word: int) -> int:
    """Returns the mask of `bytes_of` for lanes that access less than a word each, all of which are
    there."""
    if has_gaps(footprint) == 0:
        return bits_between(begin_of(footprint) - 32 * word, end_of(footprint) - 32 * word)
    bits, at = 0, begin_of(footprint) - 32 * word
    while at < min(end_of(footprint) - 32 * word, 32):
        if at + size_of(footprint) > 0:
            bits |= bits_between(at, at + size_of(footprint))
        at += stride_of(footprint)
    return bits


@jitable
def bits_between(begin: int, end: int) -> int:
    """Returns 32 bits of which those from `begin` up to `end` (exclusive) are set; both may lie
    outside of 0 to 32."""
    return (1 << min(max(end, 0), 32)) - (1 << min(max(begin, 0), 32))
