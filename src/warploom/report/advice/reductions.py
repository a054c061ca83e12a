"""Recognizes reductions in shared memory whose threads that add are not consecutive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warploom.isa.instruction import Register, Space
from warploom.program.accesses import accesses, bytes_of
from warploom.report.advice.case import Case
from warploom.report.advice.loops import loop_around
from warploom.report.advice.origins import origins, register_writers

MULTIPLES = frozenset({"rem", "and"})
"""Operations that tell which threads are multiples of the step."""

IN_ANY_ORDER = frozenset({"add", "min", "max", "mul", "and", "or", "xor"})
"""Operations whose operands can be combined in another order."""


def is_interleaved_reduction(case: Case, sides: Mapping[int, Sequence[int]]) -> bool:
    """Returns whether in each of the steps of a loop, which may be unrolled, each thread whose
    index is a multiple adds another element of an array in shared memory to its own: `sides` has
    the instructions that each branch of a line controls. In a scan, which must keep its steps, the
    element that is stored depends on the step."""
    program = case.program
    places = {_own_element(case, side) for side in sides.values()}
    if len(places) != 1 or None in places:
        return False
    guards = [guard.register for i in sides if (guard := program.instructions[i].guard) is not None]
    names = {program.instructions[i].operation.name for i in origins(program, guards).writers}
    is_unrolled = len(sides) > 1
    in_loop = any(
        loop_around(program, block.index)
        for block in program.blocks
        if any(block.start <= index < block.stop for index in sides)
    )
    return bool(names & MULTIPLES) and (is_unrolled or in_loop)


def _own_element(case: Case, side: Sequence[int]) -> object:
    """Returns the address, the same in all steps, of the element to which a thread adds another
    one; None if it does something else."""
    found = {"load": list[int](), "store": list[int]()}
    for index in side:
        for space, op in accesses(case.program.instructions[index]):
            if space is not Space.SHARED or op not in found:
                return None
            found[op].append(index)
    if len(found["load"]) != 2 or len(found["store"]) != 1:
        return None
    [store] = found["store"]
    one, strides = case.program.instructions[store], case.strides.of_instruction(store)
    if strides is None or strides.loops or dict(strides.threads) != {"x": bytes_of(one)}:
        return None
    value = one.operands[-1]
    writers = register_writers(case.program).get(value.name, []) if type(value) is Register else []
    names = {case.program.instructions[index].operation.name for index in writers}
    form = case.strides.form_of(store)
    is_updated = form in [case.strides.form_of(index) for index in found["load"]]
    return form if is_updated and names and names <= IN_ANY_ORDER else None
