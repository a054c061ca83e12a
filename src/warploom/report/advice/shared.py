"""Advice about bank conflicts of shared memory, with the padding or the swizzle that ends them."""

from __future__ import annotations

import re
from collections import defaultdict
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
from warploom.report.advice.origins import array_of, declared_at
from warploom.report.source import source_line, split_line

MOST_PADDING = 32

WARP = 32
"""Lanes whose accesses the banks serve together at most."""

WIDEST = 16
"""Bytes of the largest access of a thread: lanes that are no further apart can load all between
them."""

SWIZZLE_ROWS = (
    "Each matrix has eight rows of 16 bytes, and these rows should be in different banks: XOR "
    "the index of the 16-byte chunk within a row with the row index modulo 8 (a 128-byte "
    "swizzle), or pad each row by 16 bytes."
)

SWIZZLE_OPERAND = (
    "If wgmma or tcgen05.mma reads this matrix, keep it in the 128-byte swizzle layout: "
    "XOR the index of the 16-byte chunk within a 128-byte row with the row index modulo 8, and "
    "select the swizzle in the matrix descriptor. A tensor-map copy with this swizzle writes "
    "the same layout."
)
OPERAND_BYTES = 16
"""Matrices that products read from shared memory are stored by so many bytes."""


def bank_conflicts(case: Case) -> Iterator[Advice]:
    """Yields advice for lanes that wait for each other in shared memory: for the loads, and for the
    stores, of a line, which may have become several instructions."""
    lines: defaultdict[tuple[str, str], list[Example]] = defaultdict(list)
    for example in case.examples_in(Space.SHARED):
        if example.op != "atomic":
            lines[example.line, example.op].append(example)
    for (line, op), examples in lines.items():
        counts = [case.counts_of(example) for example in examples]
        conflicts = sum(each[f"shared_{op}_bank_conflicts"] for each in counts)
        requests = sum(each[f"shared_{op}_requests"] for each in counts)
        example = max(examples, key=lambda one: one.cost - one.best)
        collisions = example.collisions
        if not collisions:
            continue
        worst = max(collisions, key=len)
        name = array_of(case, example.instruction)
        yield Advice(
            "bank conflicts",
            line,
            f"{conflicts:,} extra wavefronts in {requests:,} {op}s{_of_array(name, op)}; "
            f"the worst {op} took {example.cost} wavefronts where {example.best} would do, "
            f"because {_lane_list(worst)} access the same bank",
            _padding_advice(case, example, name),
            conflicts,
            saves={"wavefronts": conflicts},
        )


def _of_array(name: str, op: str) -> str:
    """Returns the array that loads or stores are to, as the end of their description."""
    return f" {'from' if op == 'load' else 'to'} {name}" if name else ""


def _padding_advice(case: Case, example: Example, name: str) -> str:
    kind = case.program.instructions[example.instruction].operation.kind
    if kind in (OpKind.MATRIX_LOAD, OpKind.MATRIX_STORE):
        return SWIZZLE_ROWS
    if example.size == OPERAND_BYTES and _multiplies_from_shared_memory(case.program):
        return SWIZZLE_OPERAND
    stride = abs(example.stride or 0)
    if example.size < stride <= WIDEST:
        count = stride // example.size
        return (
            f"Lane addresses are {count} elements apart: load {count} elements at once (float2, "
            f"float4) if each lane needs all of them, or split {name or 'the array'} into {count} "
            "arrays, so that lanes access neighboring elements."
        )
    found = padding(example)
    if found is None:
        return "Rearrange the data so that the lanes of a warp access different banks."
    pitch, bytes_more = found
    if _has_one_dimension(example, name) and bytes_more == example.size:
        every = pitch // example.size
        return (
            f"Leave {bytes_more} bytes free after every {pitch} bytes: use {name}[i + i / {every}] "
            f"instead of {name}[i] wherever {name} is accessed, and make the array larger. Then "
            "this access has no bank conflicts."
        )
    return (
        f"Pad each row of {pitch} bytes by {bytes_more} bytes, to {pitch + bytes_more}"
        f"{_declared(pitch, bytes_more, example, name)}. This access then has no bank conflicts."
    )


def _declared(pitch: int, more: int, example: Example, name: str) -> str:
    """Returns the declaration with padding, if an array of several dimensions is known and its rows
    are whole elements."""
    if _dimensions(example, name) < 2 or pitch % example.size or more % example.size:
        return ""
    declared = declared_at(name, example.line)
    text = source_line(*split_line(declared)) if declared else ""
    last = re.search(rf"\b{re.escape(name)}(?:\s*\[[^\]]*\])*\s*\[\s*([A-Za-z_]\w*)\s*\]", text)
    now = last[1] if last else f"{pitch // example.size}"
    wider = f"{now} + {more // example.size}" if last else f"{(pitch + more) // example.size}"
    where = f"line {split_line(declared)[1]}: " if declared else ""
    return f" ({where}{name}[...][{wider}] instead of [{now}])"


def _has_one_dimension(example: Example, name: str) -> bool:
    return _dimensions(example, name) == 1


def _dimensions(example: Example, name: str) -> int:
    """Returns the dimensions of an array, by its declaration; 0 if that is not found."""
    line = declared_at(name, example.line) if name else None
    if line is None:
        return 0
    found = re.search(rf"\b{re.escape(name)}((?:\s*\[[^\]]*\])+)", source_line(*split_line(line)))
    return found[1].count("[") if found else 0


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


def _lane_list(lanes: tuple[int, ...]) -> str:
    """Returns the numbers of lanes, separated by commas; the first 8 and their count where there
    are more, and no numbers for a whole warp."""
    if len(lanes) == WARP:
        return f"all {WARP} lanes"
    shown = ", ".join(map(str, lanes[:8]))
    return f"lanes {shown}, ... ({len(lanes)} lanes)" if len(lanes) > 8 else f"lanes {shown}"
