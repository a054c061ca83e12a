"""Advice about work that could be left out: loads and stores of one element in each iteration of a
loop, and barriers that order nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set

from warploom.analysis.linear.forms import Form
from warploom.analysis.linear.intervals import (
    barrier_intervals,
    interval_from,
    is_asynchronous_access,
    is_barrier_of_all_threads,
)
from warploom.isa.instruction import Address, Register, Space
from warploom.program.accesses import accesses, bytes_of
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.report.advice.case import Advice, Case

LEAST_OF_BARRIERS = 0.01
"""The share of all slots from which on a needless barrier is reported: it takes one, but warps wait
at it."""

_ORDERED = frozenset([Space.SHARED, Space.GLOBAL, Space.GENERIC])
"""Spaces in which threads see what others write."""


def repeated_stores(case: Case) -> Iterator[Advice]:
    """Yields advice for stores whose address is the same in each iteration of the innermost loop
    around them, and which no barrier in the loop shows to others."""
    program, counts = case.program, case.counters.by_instruction()
    for block in program.blocks:
        stores = [i for i in range(block.start, block.stop) if _is_plain_store(program, i)]
        loop = _loop_around(program, block.index) if stores else set[int]()
        for index in stores if loop else ():
            if not _is_constant_in(program, index, loop):
                continue
            stored = counts[index].warp_instructions
            moved = sum(
                counts[index].get(f"{space}_store_transactions", 0) for space in ("global", "local")
            )
            yield Advice(
                "store in each iteration",
                program.line(index),
                f"{stored:,} stores by warps to an address that the loop does not change",
                "Keep the value in a local variable, and store it once after the loop. The "
                "compiler cannot do this, because another pointer might refer to the same element.",
                max(stored, moved) - case.counters.by_instruction()[0].warp_instructions,
            )


def repeated_loads(case: Case) -> Iterator[Advice]:
    """Yields advice for loads whose address is the same in each iteration of the innermost loop
    around them, without a barrier in the loop, and of which the loop's end does not depend: such a
    loop waits for another thread."""
    program, warps = case.program, case.counters.by_instruction()[0].warp_instructions
    lines: dict[tuple[str, bool], list[int]] = {}
    for block in program.blocks:
        loads = [i for i in range(block.start, block.stop) if _is_repeatable_load(program, i)]
        loop = _loop_around(program, block.index) if loads else set[int]()
        for index in loads if loop else ():
            if _is_constant_in(program, index, loop) and not _decides_on_end(program, index, loop):
                words = program.instructions[index].operation.opcode.split(".")
                lines.setdefault((program.line(index), "volatile" in words), []).append(index)
    for (line, is_volatile), loads in lines.items():
        counts = [case.counters.by_instruction()[index] for index in loads]
        loaded = sum(each.warp_instructions for each in counts)
        moved = sum(
            each.get(f"{space}_load_transactions", 0)
            for each in counts
            for space in ("global", "shared")
        )
        yield Advice(
            "load in each iteration",
            line,
            f"the loop does not change the address of {loaded:,} loads by warps",
            "Load the value into a local variable before the loop. "
            + (_VOLATILE if is_volatile else _ALIASED),
            max(loaded, moved) - warps,
        )


_VOLATILE = (
    "The compiler cannot do this: volatile makes each iteration load anew, which is needed only if "
    "another thread changes the value meanwhile."
)
_ALIASED = (
    "The compiler cannot do this: a store in the loop might change the value; const and "
    "__restrict__ on the pointers would say that none does."
)


def _is_repeatable_load(program: Program, index: int) -> bool:
    """Returns whether an instruction is a load of global or shared memory that does not order other
    accesses."""
    made = program.instructions[index]
    loads = any(op == "load" and space in _ORDERED for space, op in accesses(made))
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


def _loop_around(program: Program, block: int) -> Set[int]:
    """Returns the basic blocks on cycles through a block: the loop that it is in; empty if it is in
    none."""
    successors = [each.successors for each in program.blocks]
    predecessors: list[list[int]] = [[] for _ in successors]
    for each, following in enumerate(successors):
        for one in following:
            if one < len(successors):
                predecessors[one].append(each)
    return _reachable(successors, block) & _reachable(predecessors, block)


def _reachable(graph: Sequence[Sequence[int]], start: int) -> set[int]:
    """Returns the blocks on paths of at least one edge from a block."""
    found: set[int] = set()
    waiting = list(graph[start])
    while waiting:
        block = waiting.pop()
        if block < len(graph) and block not in found:
            found.add(block)
            waiting += graph[block]
    return found


def _is_plain_store(program: Program, index: int) -> bool:
    """Returns whether an instruction is a store that is neither volatile nor a release."""
    made = program.instructions[index]
    stores = any(op == "store" and space in _ORDERED for space, op in accesses(made))
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


def idle_barriers(case: Case) -> Iterator[Advice]:
    """Yields advice for barriers of the block before or after which no access needs them: the
    accesses on both sides cannot be to the same bytes, or none of them writes."""
    program = case.program
    if any(is_asynchronous_access(one) for one in program.instructions):
        return
    intervals, lines = list(barrier_intervals(program)), Counter[str]()
    for index, made in enumerate(program.instructions):
        executed = case.counters.by_instruction()[index].warp_instructions
        if not executed or not is_barrier_of_all_threads(made):
            continue
        before = set[int]().union(*(one for one in intervals if index in one))
        if _orders_nothing(case, before, interval_from(program, index + 1)):
            lines[program.line(index)] += executed
    for line, executed in lines.items():
        yield Advice(
            "unnecessary barrier",
            line,
            f"warps executed the barrier {executed:,} times; after it, no thread reads or "
            "overwrites anything that another thread read or wrote before it",
            "Remove the barrier: __syncthreads() is needed only between accesses of "
            "different threads to the same bytes, at least one of which is a write.",
            executed,
            LEAST_OF_BARRIERS,
        )


def _orders_nothing(case: Case, before: set[int], after: set[int]) -> bool:
    """Returns whether no access in one interval can be to bytes that one in the other writes."""
    sides = [
        [
            (index, space, op)
            for index in interval
            for space, op in accesses(case.program.instructions[index])
            if space in _ORDERED
        ]
        for interval in (before, after)
    ]
    return not any(
        ("load" not in (op, other_op) and _may_overlap(case, index, space, other, other_space))
        or (op != other_op and _may_overlap(case, index, space, other, other_space))
        for index, space, op in sides[0]
        for other, other_space, other_op in sides[1]
    )


def _may_overlap(case: Case, one: int, space: Space, other: int, other_space: Space) -> bool:
    """Returns whether two instructions may access the same bytes."""
    if space is not other_space and Space.GENERIC not in (space, other_space):
        return False
    forms = case.strides.form_of(one), case.strides.form_of(other)
    if forms[0] is None or forms[1] is None:
        return True
    if forms[0] == forms[1] and _is_own(case, one, forms[0]) and _is_own(case, other, forms[1]):
        return False
    return not (
        _ends_before(case, one, forms[0], forms[1]) or _ends_before(case, other, forms[1], forms[0])
    )


def _is_own(case: Case, index: int, form: Form) -> bool:
    """Returns whether no two threads of a block access the same bytes, in any iteration."""
    extents = {f"%tid.{axis}": extent for axis, extent in zip("xyz", case.block, strict=True)}
    strides = {variable.name: abs(stride) for variable, stride in form.strides}
    if any(variable.name not in extents and not variable.of_block for variable, _ in form.strides):
        return False
    span = bytes_of(case.program.instructions[index])
    axes = [(strides.get(name, 0), extent) for name, extent in extents.items() if extent > 1]
    for stride, extent in sorted(axes):
        if stride < span:
            return False
        span += stride * (extent - 1)
    return True


def _ends_before(case: Case, one: int, form: Form, other: Form) -> bool:
    """Returns whether all addresses of an instruction are below those of another one."""
    size = bytes_of(case.program.instructions[one])
    return form.is_bounded and other.is_bounded and form.high + size <= other.low
