"""Advice about accesses of less than a word per lane."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.isa.instruction import Register, Space
from warploom.program.accesses import bytes_of
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.loops import instructions_around
from warploom.report.advice.origins import address_origins, origins

WORD = 4
"""Bytes of a register: what a thread can load at once for the price of one byte."""

DP4A = (6, 1)
"""The compute capability from which on GPUs have it: PTX ISA, "Integer Arithmetic: dp4a"."""

PRODUCTS = ("mul", "mad", "dp2a", "dp4a")
"""What compilers make of products of bytes; NVRTC packs bytes that were loaded one by one for the
last two."""


@dataclass(frozen=True, slots=True)
class _Saved:
    """The instructions that are executed once for several elements if each thread has several
    neighboring ones; `in_loop`: some loop walks along the elements, `products`: bytes are
    multiplied and added, four pairs of which one instruction can do."""

    instructions: frozenset[int]
    in_loop: bool
    products: bool


def narrow_accesses(case: Case) -> Iterator[Advice]:
    """Yields advice for accesses of less than a word by neighboring lanes: for all of one size, at
    the line with the most of them."""
    sizes: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for index, op, counts in case.accesses(Space.GLOBAL):
        size = bytes_of(case.program.instructions[index])
        if size < WORD and op != "atomic" and _is_of_neighbors(case, index, size):
            sizes[size][index] = counts[f"global_{op}_requests"]
    for size, found in sizes.items():
        requests, count = sum(found.values()), WORD // size
        vector, part = ("char4, uchar4", "a quarter") if size == 1 else ("short2, half2", "half")
        saved = _saved(case, tuple(found))
        executions = case.counters.executions
        fewer = int(sum(int(executions[index]) for index in saved.instructions) * (1 - 1 / count))
        yield Advice(
            "narrow access",
            _line_of_most(case.program, found),
            f"{requests:,} requests of {size} byte{'s'[: size > 1]} per lane, but a 4-byte "
            f"register can hold {count} elements",
            f"Let each thread load or store {count} neighboring elements at once ({vector}). "
            f"Only {part} of the requests and {'iterations' if saved.in_loop else 'threads'} are "
            "then needed."
            + " Multiply and add four pairs of bytes with one __dp4a."
            * saved.products,
            fewer,
            saves=_savings(case, fewer),
        )


def _is_of_neighbors(case: Case, index: int, size: int) -> bool:
    """Returns whether neighboring lanes access neighboring elements, and no loop walks along the
    elements of a lane: such a thread has other remedies than a wider access of all lanes."""
    address = case.strides.form_of(index)
    if address is None or case.strides.of_lanes(index) != size:
        return False
    row = size * case.spec.warp_size
    return all(abs(step) >= row for variable, step in address.strides if variable.at)


def _line_of_most(program: Program, requests: Mapping[int, int]) -> str:
    """Returns the line with the most of some requests, which are given by instruction."""
    lines: defaultdict[str, int] = defaultdict(int)
    for index, count in requests.items():
        lines[program.line(index)] += count
    return max(lines, key=lambda line: lines[line])


def _saved(case: Case, narrow: Sequence[int]) -> _Saved:
    """Returns what narrow accesses need: they themselves, their addresses, the control of the loops
    around them, and products of bytes that one instruction can compute with their sum."""
    program = case.program
    found = set(narrow)
    for index in narrow:
        found |= address_origins(program, index).writers
    loops = [loop for index in narrow if (loop := instructions_around(program, index))]
    for loop in loops:
        found |= _control(program, loop)
    products = _products(case, narrow)
    return _Saved(frozenset(found | products), bool(loops), bool(products))


def _control(program: Program, loop: frozenset[int]) -> set[int]:
    """Returns the guarded instructions of a loop, its branches, and what computes their guards
    there."""
    guarded = {at for at in loop if program.instructions[at].guard is not None}
    guards = [one.register for at in guarded if (one := program.instructions[at].guard)]
    return guarded | (set(origins(program, guards).writers) & loop)


def _products(case: Case, narrow: Sequence[int]) -> set[int]:
    """Returns the instructions that multiply two loaded bytes of one type and add the product, with
    those that convert the bytes; empty for GPUs without `dp4a`."""
    program, found = case.program, set[int]()
    loads = {at for at in narrow if bytes_of(program.instructions[at]) == 1}
    multiplied = set[str]()
    if case.spec.compute_capability < DP4A or not loads:
        return found
    for index, one in enumerate(program.instructions):
        factors = one.operands[1:3]
        if one.operation.name not in PRODUCTS or len(set(factors)) != len(factors):
            continue
        sides = [origins(program, [each]) for each in factors if isinstance(each, Register)]
        from_bytes = all(each.loads and each.loads <= loads for each in sides)
        types = {_type(program, at) for each in sides for at in each.loads}
        if len(sides) == 2 and from_bytes and len(types) == 1:
            found |= {index, *(at for each in sides for at in each.writers)}
            multiplied |= {register.name for register in writes(one)}
    adds = (
        at
        for at, one in enumerate(program.instructions)
        if one.operation.name == "add" and multiplied & {register.name for register in reads(one)}
    )
    return found | set(adds)


def _type(program: Program, load: int) -> str:
    return program.instructions[load].operation.opcode.rpartition(".")[2]


def _savings(case: Case, fewer: int) -> dict[str, float]:
    """Returns the work of instructions that are no longer executed: their share of all, as machine
    code has other instructions than PTX."""
    if case.work is None:
        return {}
    share = fewer / max(1, int(sum(map(int, case.counters.executions))))
    return {name: getattr(case.work, name) * share for name in ("issued", "latency")}
