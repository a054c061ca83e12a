"""Advice about work that could be left out: loads and stores of one element in each iteration of a
loop, and barriers that order nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from warploom.analysis.linear.intervals import (
    is_barrier_of_all_threads,
)
from warploom.isa.instruction import Address, Register, Space
from warploom.observe.counters import Counts
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.report.advice.case import ORDERED, Advice, Case
from warploom.report.advice.loops import loop_around
from warploom.report.advice.origins import array_of
from warploom.report.source import source_line, split_line


def repeated_stores(case: Case) -> Iterator[Advice]:
    """Yields advice for stores whose address is the same in each iteration of the innermost loop
    around them, and which no barrier in the loop shows to others."""
    program, counts = case.program, case.counters.by_instruction()
    lines: dict[str, list[int]] = {}
    for block in program.blocks:
        stores = [i for i in range(block.start, block.stop) if _is_plain_store(program, i)]
        loop = loop_around(program, block.index) if stores else set[int]()
        for index in stores if loop else ():
            if _is_constant_in(program, index, loop):
                lines.setdefault(program.line(index), []).append(index)
    warps = counts[0].warp_instructions
    for line, stores in lines.items():
        stored = sum(counts[index].warp_instructions for index in stores)
        moved = _total(counts, stores, "store", "transactions")
        saved = 1 - warps / max(warps, stored)
        name = _element(case, stores[0])
        yield Advice(
            "store in each iteration",
            line,
            f"{stored:,} warp stores to {name or 'an element'}, at an address that does not "
            "change in the loop",
            f"Keep {_value(name)} in a local variable during the loop, and store it once after "
            "the loop. The compiler cannot make this change, because another pointer might "
            "refer to the same element.",
            max(stored, moved) - warps,
            saves={
                # A compound assignment (+=) loads in each iteration, too.
                "stored": saved * _total(counts, stores, "store", "bytes_moved"),
                "issued": 2 * saved * stored,
                "loaded": saved * _loaded_again(case, stores),
            },
        )


def _loaded_again(case: Case, stores: Sequence[int]) -> int:
    """Returns the bytes that loads of the same addresses as some stores move."""
    counts = case.counters.by_instruction()
    forms = {form for index in stores if (form := case.strides.form_of(index)) is not None}
    return sum(
        each.global_load_bytes_moved
        for index, op, each in case.accesses(Space.GLOBAL)
        if op == "load" and case.strides.form_of(index) in forms and counts[index]
    )


def _total(counts: Sequence[Counts], indices: Sequence[int], op: str, field: str) -> int:
    """Returns a counter of accesses to memory outside of the SM, summed over instructions."""
    return sum(
        counts[index].get(f"{space}_{op}_{field}", 0)
        for index in indices
        for space in ("global", "local")
    )


def _element(case: Case, index: int) -> str:
    """Returns the element that an access is to, as the source has it: "out[i]" or "*scale"; empty
    where it is not found."""
    name = array_of(case, index)
    text = source_line(*split_line(case.program.line(index)))
    if not name:
        return ""
    found = re.search(rf"\b{re.escape(name)}\s*\[[^\[\]]*\]|\*\s*{re.escape(name)}\b", text)
    return found[0] if found else f"an element of {name}"


def _value(element: str) -> str:
    return "the value" if not element or element.startswith("an element") else element


def repeated_loads(case: Case) -> Iterator[Advice]:
    """Yields advice for loads whose address is the same in each iteration of the innermost loop
    around them, without a barrier in the loop, and of which the loop's end does not depend: such a
    loop waits for another thread."""
    program, warps = case.program, case.counters.by_instruction()[0].warp_instructions
    all_counts = case.counters.by_instruction()
    lines: dict[tuple[str, str], list[int]] = {}
    stored: dict[str, set[str]] = {}
    for block in program.blocks:
        loads = [i for i in range(block.start, block.stop) if _is_repeatable_load(program, i)]
        loop = loop_around(program, block.index) if loads else set[int]()
        for index in loads if loop else ():
            if _is_constant_in(program, index, loop) and not _decides_on_end(program, index, loop):
                element = _element(case, index)
                lines.setdefault((program.line(index), element), []).append(index)
                stored.setdefault(element, set()).update(_stored_in(case, loop))
    for (line, element), loads in lines.items():
        counts = [all_counts[index] for index in loads]
        loaded = sum(each.warp_instructions for each in counts)
        moved = sum(
            each.get(f"{space}_load_transactions", 0)
            for each in counts
            for space in ("global", "shared")
        )
        saved = 1 - warps / max(warps, loaded)
        yield Advice(
            "load in each iteration",
            line,
            f"{loaded:,} warp loads of {element or 'an element'}, from an address that does "
            "not change in the loop",
            f"Load {_value(element)} into a local variable before the loop. "
            + _reasons(case, loads, sorted(stored[element])),
            max(loaded, moved) - warps,
            saves={
                "loaded": saved * sum(each.get("global_load_bytes_moved", 0) for each in counts),
                "wavefronts": saved * sum(each.get("shared_load_wavefronts", 0) for each in counts),
                "issued": saved * loaded,
            },
        )


def _stored_in(case: Case, loop: Set[int]) -> Iterator[str]:
    """Yields the names of the buffers to which the instructions of a loop store."""
    blocks = (case.program.blocks[block] for block in loop)
    for index in (at for block in blocks for at in range(block.start, block.stop)):
        if any(op != "load" and space in ORDERED for space, op in _accesses(case, index)):
            yield array_of(case, index)


def _accesses(case: Case, index: int) -> list[tuple[Space, str]]:
    return list(accesses(case.program.instructions[index]))


def _reasons(case: Case, loads: Sequence[int], stored: Sequence[str]) -> str:
    """Returns all reasons for which the compiler loads in each iteration."""
    words = case.program.instructions[loads[0]].operation.opcode.split(".")
    is_volatile, name = "volatile" in words, array_of(case, loads[0])
    others = [other for other in stored if other]
    alias = (
        f"the store to {' or '.join(others)} might change it"
        if others
        else "a store in the loop might change it"
    )
    by_volatile = f"{name or 'the pointer'} is volatile, which is needed only if another thread "
    by_volatile += "changes the value during the loop"
    if is_volatile and stored:
        return (
            f"The compiler cannot make this change: {by_volatile}; even without volatile, "
            f"{alias}, because the pointers are not declared const and __restrict__."
        )
    if is_volatile:
        return f"The compiler cannot make this change: {by_volatile}."
    return (
        f"The compiler cannot make this change: {alias}; const and __restrict__ on the pointers "
        "would promise that no store changes the value."
    )


def _is_repeatable_load(program: Program, index: int) -> bool:
    """Returns whether an instruction is a load of global or shared memory that does not order other
    accesses."""
    made = program.instructions[index]
    loads = any(op == "load" and space in ORDERED for space, op in accesses(made))
    words = made.operation.opcode.split(".")
    return loads and words[0] == "ld" and not {"acquire", "relaxed", "mmio"} & set(words)


def _decides_on_end(program: Program, index: int, loop: Set[int]) -> bool:
    """Returns whether a value that depends on a load guards an instruction of the loop."""
    inside = [
        program.instructions[at]
        for block in loop
        for at in range(program.blocks[block].start, program.blocks[block].stop)
    ]
    dependent = {register.name for register in writes(program.instructions[index])}
    size = 0
    while size != len(dependent):
        size = len(dependent)
        for one in inside:
            if any(register.name in dependent for register in reads(one)):
                dependent |= {register.name for register in writes(one)}
    return any(one.guard is not None and one.guard.register.name in dependent for one in inside)


def _is_plain_store(program: Program, index: int) -> bool:
    """Returns whether an instruction is a store that is neither volatile nor a release."""
    made = program.instructions[index]
    stores = any(op == "store" and space in ORDERED for space, op in accesses(made))
    words = made.operation.opcode.split(".")
    strong = {"volatile", "release", "relaxed", "mmio", "async"} & set(words)
    return stores and not strong and made.guard is None


def _is_constant_in(program: Program, index: int, loop: Set[int]) -> bool:
    """Returns whether the address of an access is not written in a loop without barriers."""
    address = next(
        (o for o in program.instructions[index].operands if isinstance(o, Address)), None
    )
    if address is None or not isinstance(address.base, Register):
        return False
    inside = [
        program.instructions[at]
        for block in loop
        for at in range(program.blocks[block].start, program.blocks[block].stop)
    ]
    if any(is_barrier_of_all_threads(one) for one in inside):
        return False
    written = {register.name for one in inside for register in writes(one)}
    return address.base.name not in written
