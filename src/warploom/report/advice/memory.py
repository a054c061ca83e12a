"""Advice about memory: strides, structures, banks, constants. The addresses are those of examples:
of each instruction the costliest access."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warploom.cost.device_rules import RULES
from warploom.cost.fields import CostRecord
from warploom.isa.instruction import Space
from warploom.isa.kinds import OpKind
from warploom.observe.asynchronous import BY_THREAD, BY_WARP
from warploom.observe.examples import Example
from warploom.program.program import Program
from warploom.report.advice.case import Advice, Case

WASTEFUL = 0.5
"""Accesses that use less of what they move are worth a word."""

MOST_PADDING = 32
LARGEST_STRUCT = 256
"""The largest stride of lanes, in bytes, that is taken for a structure rather than for a row of a
matrix."""

SWIZZLE_ROWS = (
    "Each matrix is eight rows of 16 bytes, which should fall into different banks: exclusive-or"
    " the number of the 16 bytes within a row with the row's number modulo 8 (a swizzle of 128"
    " bytes), or pad each row by 16 bytes."
)

SWIZZLE_OPERAND = (
    "If wgmma or tcgen05.mma reads this matrix, keep it in the layout with a swizzle of 128 bytes:"
    " exclusive-or the number of the 16 bytes within a row of 128 bytes with the row's number"
    " modulo 8, and name the swizzle in the matrix descriptor. A copy by a tensor map with that"
    " swizzle writes the same layout."
)
OPERAND_BYTES = 16
"""Matrices that products read from shared memory are stored by so many bytes."""

USED_OF_STRUCT = 0.25
"""Accesses at several offsets are fields of a structure if they use so much of it."""


def strided_access(case: Case) -> Iterator[Advice]:
    """Global accesses that move much more than the lanes ask for."""
    wasteful = [e for e in case.examples if e.space is Space.GLOBAL and _share(case, e) < WASTEFUL]
    for example in wasteful:
        share = _share(case, example)
        evidence = (
            f"{100 * share:.0f} % of the bytes moved were asked for; the worst request took"
            f" {example.cost} transactions, where {example.best} would do"
        )
        fields = _fields(example, wasteful)
        rule, found, text = _diagnosis(example, fields)
        yield Advice(rule, example.line, f"{evidence}; {found}", text)


def _diagnosis(example: Example, fields: tuple[int, ...]) -> tuple[str, str, str]:
    """Returns the name of the pattern, how it shows in the addresses, and what to do about it."""
    stride, size = example.stride, example.size
    if stride is None:
        return (
            "scattered access",
            "the lanes' addresses follow no stride",
            "Sort or stage the indices, so that neighbouring lanes name neighbouring words.",
        )
    if len(fields) > 1:
        return (
            "array of structures",
            f"lanes are {abs(stride)} bytes apart, and accesses at offsets"
            f" {', '.join(map(str, fields))} share that stride: an array of structures of"
            f" {abs(stride)} bytes",
            "Keep each field in an array of its own (structure of arrays), or load whole structures"
            " as vectors (float2, float4).",
        )
    if abs(stride) == size:
        return (
            "misaligned access",
            "the lanes are in order, but not from the start of a segment",
            "Begin arrays and rows at multiples of 128 bytes, and let lane 0 name the first word.",
        )
    if abs(stride) > LARGEST_STRUCT:
        return (
            "strided access",
            f"lanes are {abs(stride):,} bytes apart, as down a column of a matrix",
            "Let neighbouring lanes walk along a row, or turn the tile round in shared memory.",
        )
    return (
        "strided access",
        f"lanes are {abs(stride)} bytes apart and use {size}",
        "Let neighbouring lanes name neighbouring words; where this is one field of a structure,"
        " keep each field in an array of its own.",
    )


def _fields(example: Example, others: list[Example]) -> tuple[int, ...]:
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


def _share(case: Case, example: Example) -> float:
    """Bytes asked for over bytes moved, over all that the instruction did."""
    counts = case.counters.by_instruction()[example.instruction]
    kind = f"{example.space.value}_{example.op}"
    moved = counts[f"{kind}_bytes_moved"]
    return counts[f"{kind}_bytes_requested"] / moved if moved else 1.0


def bank_conflicts(case: Case) -> Iterator[Advice]:
    """Lanes that wait for each other in shared memory."""
    for example in case.examples:
        collisions = example.collisions
        if example.space is not Space.SHARED or not collisions:
            continue
        counts = case.counters.by_instruction()[example.instruction]
        conflicts = counts[f"shared_{example.op}_bank_conflicts"]
        requests = counts[f"shared_{example.op}_requests"]
        worst = max(collisions, key=len)
        yield Advice(
            "bank conflicts",
            example.line,
            f"{conflicts:,} wavefronts more than needed in {requests:,} requests; the worst took"
            f" {example.cost} where {example.best} would do: lanes"
            f" {_lane_list(worst)} meet in a bank",
            _padding_advice(case, example),
        )


def _padding_advice(case: Case, example: Example) -> str:
    kind = case.program.instructions[example.instruction].operation.kind
    if kind in (OpKind.MATRIX_LOAD, OpKind.MATRIX_STORE):
        return SWIZZLE_ROWS
    if example.size == OPERAND_BYTES and _multiplies_from_shared_memory(case.program):
        return SWIZZLE_OPERAND
    found = padding(example)
    if found is None:
        return "Reorder the data so that lanes of a warp fall into different banks."
    pitch, bytes_more = found
    return (
        f"Pad each row of {pitch} bytes by {bytes_more} (to {pitch + bytes_more}): then this access"
        f" has no conflict."
    )


def _multiplies_from_shared_memory(program: Program) -> bool:
    """Returns whether a kernel has products whose descriptors name matrices in shared memory."""
    tests = BY_WARP["warp_group_products"], BY_THREAD["tensor_memory_products"]
    operations = (made.operation for made in program.instructions)
    return any(test(operation) for operation in operations for test in tests)


def padding(example: Example) -> tuple[int, int] | None:
    """Returns the pitch of the rows that the lanes access, and the fewest bytes of padding a row
    that end the bank conflicts; None where no padding does."""
    pitch = example.pitch
    if pitch is None:
        return None
    unit, first = max(4, example.size), min(example.addresses)
    for count in range(1, MOST_PADDING + 1):
        more = count * unit
        moved = [a + (a - first) // pitch * more for a in example.addresses]
        if _conflicts(example, moved) == 0:
            return pitch, more
    return None


def _conflicts(example: Example, moved: list[int]) -> int:
    """Returns the bank conflicts of an access if its lanes were at other addresses."""
    addresses, row = np.zeros(32, np.uint64), np.zeros(CostRecord.WORDS, np.int64)
    mask = 0
    for lane, address in zip(example.lanes, moved, strict=True):
        addresses[lane % 32] = address
        mask |= 1 << lane % 32
    RULES[example.rule](addresses, mask, example.size, row)
    return int(row[CostRecord.bank_conflicts])


def scattered_constants(case: Case) -> Iterator[Advice]:
    """Reads of constant memory at an index that differs between lanes."""
    for example in case.examples:
        if example.space is not Space.CONST:
            continue
        counts = case.counters.by_instruction()[example.instruction]
        requests, passes = counts.constant_load_requests, counts.constant_load_transactions
        yield Advice(
            "constant memory by lane",
            example.line,
            f"{passes:,} passes for {requests:,} requests: up to {example.cost} different words in"
            f" one",
            "The constant cache gives one word at a time to all lanes. Index it by what all lanes"
            " share, or keep the table in shared or global memory.",
        )


def _lane_list(lanes: tuple[int, ...]) -> str:
    """Returns the numbers of lanes, separated by commas; the first 8 and their count where there
    are more."""
    shown = ", ".join(map(str, lanes[:8]))
    return f"{shown}, ... ({len(lanes)} lanes)" if len(lanes) > 8 else shown
