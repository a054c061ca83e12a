"""Patterns of accesses to global memory that move more than their lanes use: which index of the
thread, the block or a loop steps along memory, and which should."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from warploom.isa.instruction import Space
from warploom.observe.examples import Example
from warploom.program.accesses import bytes_of
from warploom.report.advice.case import Case
from warploom.report.advice.origins import address_origins, pointer_of
from warploom.report.advice.strides import Strides, is_ordered
from warploom.report.peaks import ceilings_of
from warploom.report.source import source_line, split_line

LARGEST_STRUCT = 256
"""The largest stride of lanes, in bytes, that is taken for a structure rather than for a row of a
matrix."""

USED_OF_STRUCT = 0.25
"""Accesses at several offsets are fields of a structure if they use so much of it."""

MOSTLY_USED = 0.75
"""Structures of which accesses use so much can as well be loaded as a whole."""

SECTOR = 32
LEAST_UNROLLED = 4
"""Fewer elements side by side that a thread loads are taken for fields of a structure."""

VECTORS = {4: "uchar4", 8: "float2", 16: "float4"}
"""Vector types by their bytes."""

VECTOR = 16
"""Bytes of the largest access of a thread."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pattern of a wasteful access: its name, what shows it, and the remedy."""

    rule: str
    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Wasteful:
    """A wasteful access: its example, its strides, and all others of the launch."""

    case: Case
    example: Example
    strides: Strides
    others: tuple[Example, ...]

    @property
    def along_x(self) -> int | None:
        """Returns the bytes from one threadIdx.x to the next; None if unknown."""
        return self.strides.threads.get("x")


def swapped_indices(access: Wasteful) -> Pattern | None:
    """Finds accesses in which another index than threadIdx.x steps by one element."""
    size, x = access.example.size, access.along_x
    if x is None or abs(x) <= size:
        return None
    for axis in "yz":
        if abs(access.strides.threads.get(axis, 0)) == size:
            if _has_rows_along_x(access, axis):
                return _transposition(abs(x))
            return Pattern(
                "swapped thread indices",
                f"threadIdx.x has a stride of {abs(x):,} bytes, and threadIdx.{axis} a stride of "
                f"{size} byte{'s'[: size > 1]}",
                f"Swap threadIdx.x and threadIdx.{axis} in this index: neighboring lanes differ "
                "in threadIdx.x, so it should index neighboring elements (the column, not the "
                "row).",
            )
    return None


def _has_rows_along_x(access: Wasteful, axis: str) -> bool:
    """Returns whether the kernel also accesses global memory the other way round: in order along
    threadIdx.x, in rows along another axis."""
    others = (
        (
            bytes_of(access.case.program.instructions[index]),
            access.case.strides.of_instruction(index),
        )
        for index, _, _ in access.case.accesses(Space.GLOBAL)
    )
    return any(
        strides is not None
        and strides.threads.get("x") == size
        and abs(strides.threads.get(axis, 0)) > size
        for size, strides in others
    )


def _transposition(stride: int) -> Pattern:
    return Pattern(
        "strided access",
        f"lane addresses are {stride:,} bytes apart, as in a column of a matrix; another access in "
        "the kernel is row-wise, as in a transpose",
        "Stage a 32x33 tile in shared memory: read rows of the input into the tile and, after "
        "__syncthreads(), write its columns as rows of the output. Both accesses are then "
        "coalesced.",
    )


def narrow_block(access: Wasteful) -> Pattern | None:
    """Finds accesses in order along threadIdx.x in a block with fewer threads there than a warp."""
    size, width = access.example.size, access.case.block[0]
    warp = access.case.spec.warp_size
    if access.along_x is None or abs(access.along_x) != size or width % warp == 0 or width > warp:
        return None
    if width * size % SECTOR == 0:  # whole sectors, if they are aligned
        return None
    height = max(1, access.case.threads_per_block // warp)
    return Pattern(
        "narrow block",
        f"the block is only {width} threads wide, so a warp reads {-(-warp // width)} separate "
        f"pieces of {width * size} bytes",
        f"Make the block {warp} threads wide ({warp}x{height}): a warp then accesses one row.",
    )


def misaligned(access: Wasteful) -> Pattern | None:
    """Finds accesses in ascending or descending order that do not begin at a sector."""
    example, case = access.example, access.case
    is_reversed = example.stride == -example.size
    width = case.block[0] * example.size
    has_rows = abs(access.along_x or 0) == example.size and width % SECTOR == 0
    if not is_ordered(example) and not is_reversed and not has_rows:
        return None
    if case.threads_per_block * example.size % SECTOR:
        warp = case.spec.warp_size
        return Pattern(
            "misaligned blocks",
            f"a block of {case.threads_per_block} threads covers "
            f"{case.threads_per_block * example.size} bytes, so some blocks begin inside a sector",
            f"Make the block size a multiple of {warp}.",
        )
    beyond = min(example.addresses) % SECTOR
    order = "contiguous in descending order (as good as ascending)" if is_reversed else "contiguous"
    if has_rows and case.block[0] < case.spec.warp_size:
        order = f"contiguous in rows of {case.block[0]}"
    return Pattern(
        "misaligned access",
        f"the lanes' addresses are {order}, but start {beyond} bytes after a sector boundary",
        f"Align arrays and rows to {SECTOR} bytes (pad rows, or use cudaMallocPitch). If the "
        "offset is intended (in[i + 1]) and several lines of the source read the same elements, "
        "stage these elements in shared memory.",
    )


def row_by_thread(access: Wasteful) -> Pattern | None:
    """Finds accesses in which each thread walks along a row of its own."""
    example, x = access.example, access.along_x or access.example.stride
    if x is None or abs(x) <= example.size:
        return None
    unrolled = _unrolled(access, x)
    is_unrolled = unrolled >= LEAST_UNROLLED and access.case.has_structures is False
    if example.size not in map(abs, access.strides.loops) and not is_unrolled:
        return None
    # A loop that is unrolled in part goes on after these.
    is_all = is_unrolled and unrolled * example.size not in map(abs, access.strides.loops)
    how = f"loads {unrolled} consecutive elements" if is_all else "accesses consecutive elements"
    return Pattern(
        "strided access",
        f"lane addresses are {abs(x):,} bytes apart, and each thread {how}",
        f"{_lanes_by_row(access, abs(x))}. Or {_alternative(abs(x), example.size)}.",
    )


def _lanes_by_row(access: Wasteful, stride: int) -> str:
    """Returns how the lanes of a warp, or as many of them as a row has elements, access a row in
    the place of one thread, and the launch that this needs."""
    case = access.case
    lanes = min(case.spec.warp_size, 1 << (stride // access.example.size).bit_length() - 1)
    who = "a warp" if lanes == case.spec.warp_size else f"{lanes} lanes"
    every = f"{lanes}{'nd' if lanes in (2, 32) else 'th'}"
    return (
        f"Give each row to {who}, so that neighboring lanes access neighboring elements: thread i "
        f"accesses every {every} element of row i / {lanes}, starting at element i % {lanes}. "
        f"Launch {lanes} times as many blocks ({lanes * case.blocks:,}). A sum over a row then "
        "needs a reduction over the row's lanes"
    )


def _alternative(stride: int, size: int) -> str:
    """Returns what helps with one thread per row: vector loads where rows are whole vectors."""
    is_whole = stride % VECTOR == 0 and size == 4
    return (
        "load four elements at once (float4, int4)"
        if is_whole
        else "stage pieces of the rows in shared memory"
    )


def _unrolled(access: Wasteful, stride: int) -> int:
    """Returns the accesses that one expression of the source became, at a distance of one element
    within the stride."""
    example, program = access.example, access.case.program
    own = program.instructions[example.instruction].location
    first = example.addresses[0] - stride * example.lanes[0]
    offsets = {
        other.addresses[0] - stride * other.lanes[0] - first
        for other in access.others
        if program.instructions[other.instruction].location == own
        and own is not None
        and other.size == example.size
    }
    near = sorted(offset for offset in offsets if abs(offset) < abs(stride))
    steps = {b - a for a, b in pairwise(near)}
    return len(near) if steps == {example.size} else 0


def structures(access: Wasteful) -> Pattern | None:
    """Finds accesses to fields of structures, one structure a lane."""
    example, stride = access.example, access.example.stride
    offsets = _fields(example, access.others)
    if stride is None or len(offsets) < 2:
        return None
    size = abs(stride)
    names = _members(example.line)
    fields = f"fields {', '.join(names)} at " if len(names) == len(offsets) else ""
    do = example.op
    is_whole = len(offsets) * example.size >= MOSTLY_USED * size
    if not is_whole:
        whole = ""
    elif size in VECTORS:
        whole = f", or {do} whole structures as vectors ({VECTORS[size]})"
    elif size % VECTOR:
        # Padding moves more bytes, which costs time where these are the bound.
        whole = "" if _is_bound_by_dram(access.case) else _padded_hint(do, size)
    else:
        whole = f", or {do} whole structures as vectors (float4)"
    return Pattern(
        "array of structures",
        f"lane addresses are {size} bytes apart, as in an array of structures of {size} bytes; "
        f"the kernel accesses {fields}offsets {', '.join(map(str, offsets))}",
        f"Keep each field in a separate array (structure of arrays){whole}.",
    )


def _padded_hint(do: str, size: int) -> str:
    """Returns the alternative of structures that are padded to whole vectors."""
    padded = min((one for one in VECTORS if one > size), default=-(-size // VECTOR) * VECTOR)
    return (
        f", or {do} whole structures as vectors, padded to {padded} bytes (alignas"
        f"({min(padded, VECTOR)}), {VECTORS.get(padded, 'float4')})"
    )


def _is_bound_by_dram(case: Case) -> bool:
    found = () if case.work is None else ceilings_of(case.work, case.spec)
    return bool(found) and found[0].part == "global memory"


def _members(line: str) -> list[str]:
    """Returns the names of the members that the source at a line selects from elements, in the
    order of the source."""
    text = source_line(*split_line(line))
    return list(dict.fromkeys(re.findall(r"\]\s*\.\s*([A-Za-z_]\w*)", text)))


def _fields(example: Example, others: tuple[Example, ...]) -> tuple[int, ...]:
    """Returns the offsets within a structure at which accesses of the same stride fall."""
    stride = example.stride
    if stride is None or not example.size < abs(stride) <= LARGEST_STRUCT:
        return ()
    firsts = {
        other.addresses[0] - stride * other.lanes[0] for other in others if other.stride == stride
    }
    start = example.addresses[0] - stride * example.lanes[0]
    near = sorted(first for first in firsts if abs(first - start) < abs(stride))
    used = len(near) * example.size >= USED_OF_STRUCT * abs(stride)
    return tuple(first - near[0] for first in near) if used else ()


def column(access: Wasteful) -> Pattern | None:
    """Finds accesses down a column: lanes at a large constant stride."""
    example, x = access.example, access.along_x or access.example.stride
    if x is None or abs(x) <= LARGEST_STRUCT:
        return None
    found = f"lane addresses are {abs(x):,} bytes apart, as in a column of a matrix"
    width = access.case.block[0]
    if width == 1:
        return None
    for axis, stride in access.strides.blocks.items():
        if abs(stride) == example.size:
            return Pattern(
                "strided access",
                f"{found}, and the stride of blockIdx.{axis} is {stride} bytes",
                f"Let threadIdx.x step through the adjacent elements, as blockIdx.{axis} does "
                f"now, and let blockIdx.{axis} step through the elements that are {abs(x):,} "
                "bytes apart.",
            )
    return Pattern(
        "strided access",
        found,
        "Make threadIdx.x the last index, so that neighboring lanes read along a row; or read "
        "rows into shared memory, and read columns from there.",
    )


def upright_block(access: Wasteful) -> Pattern | None:
    """Finds accesses of a block one thread wide, whose lanes differ in threadIdx.y alone."""
    block, example = access.case.block, access.example
    if block[0] != 1 or block[1] == 1:
        return None
    warp = access.case.spec.warp_size
    height = max(1, access.case.threads_per_block // warp)
    stride = access.strides.threads.get("y", example.stride)
    how = (
        "lanes differ only in threadIdx.y"
        if stride is None
        else f"lane addresses are {abs(stride):,} bytes apart"
    )
    return Pattern(
        "narrow block",
        f"the block is 1 thread wide, so {how}",
        f"Extend the block along threadIdx.x ({warp}x{height} instead of 1x{block[1]}), because "
        "threadIdx.x indexes neighboring elements.",
    )


def strided(access: Wasteful) -> Pattern | None:
    """Finds accesses that skip elements at a constant stride."""
    example, stride = access.example, access.along_x or access.example.stride
    if not stride:
        return None
    every = abs(stride) / example.size
    remedy = "Let neighboring lanes access neighboring elements"
    if every == 2:
        remedy += ": load both elements of a pair at once (float2), or keep them in two arrays."
    else:
        remedy += (
            "; if this is a field of a structure, keep each field in a separate array; if each "
            "thread reads a row, stage the rows in shared memory."
        )
    return Pattern(
        "strided access",
        f"lane addresses are {abs(stride)} bytes apart, but each lane uses only {example.size} "
        f"byte{'s'[: example.size > 1]}",
        remedy,
    )


def indexed(access: Wasteful) -> Pattern | None:
    """Finds accesses whose index was loaded from memory."""
    case, index = access.case, access.example.instruction
    loads = address_origins(case.program, index).loads
    if not loads:
        return None
    place, buffer = case.program.line(min(loads)).rpartition("/")[2], pointer_of(case, index)
    size = None if buffer is None else buffer.size
    is_small = size is None or size <= case.spec.shared_bytes_per_block
    return Pattern(
        "scattered access",
        f"the lanes' addresses have no constant stride; the index is loaded at {place}",
        "Sort the indices together with their positions, so that neighboring lanes access "
        "neighboring elements. Index all other arrays by these positions; otherwise, the results "
        "are in a different order. Sorting is worthwhile if many launches use the same "
        f"order{'; or stage these elements in shared memory' if is_small else ''}.",
    )


def scattered(access: Wasteful) -> Pattern:
    """Returns the pattern of all other accesses: the index is computed, and not linear."""
    return Pattern(
        "scattered access",
        "because of how the index is computed, the lanes' addresses have no constant stride",
        "Compute the index so that neighboring lanes (threadIdx.x) access neighboring "
        "elements; a remainder or a product in the fastest-varying index scatters the accesses.",
    )


PATTERNS: tuple[Callable[[Wasteful], Pattern | None], ...] = (
    *(upright_block, swapped_indices, narrow_block, misaligned, row_by_thread, structures),
    *(column, strided, indexed, scattered),
)
"""The patterns in the order in which they are looked for."""
