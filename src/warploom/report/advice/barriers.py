"""Advice about barriers of a block that order nothing."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.analysis.linear.forms import Form
from warploom.analysis.linear.intervals import (
    barrier_intervals,
    interval_from,
    is_asynchronous_access,
    is_barrier_of_all_threads,
)
from warploom.isa.instruction import Instruction, Space
from warploom.program.accesses import accesses, bytes_of
from warploom.report.advice.case import ORDERED, Advice, Case
from warploom.report.advice.occupancy import LARGE_GROUP, live_at
from warploom.report.advice.origins import array_of

LEAST_OF_BARRIERS = 0.01
"""The share of all slots from which on a needless barrier is reported: it takes one, but warps wait
at it."""


def idle_barriers(case: Case) -> Iterator[Advice]:
    """Yields advice for barriers of the block before or after which no access needs them: the
    accesses on both sides cannot be to the same bytes, or none of them writes."""
    program = case.program
    if any(is_asynchronous_access(one) for one in program.instructions):
        return
    intervals, lines = list(barrier_intervals(program)), dict[str, list[int]]()
    for index, made in enumerate(program.instructions):
        executed = case.counters.by_instruction()[index].warp_instructions
        if not executed or not is_barrier_of_all_threads(made):
            continue
        before = set[int]().union(*(one for one in intervals if index in one))
        if _orders_nothing(case, before, interval_from(program, index + 1)):
            lines.setdefault(program.line(index), []).append(index)
    own = _own_elements(case) if lines else ""
    shares_memory = any(_uses_shared_memory(one) for one in program.instructions)
    for line, indices in lines.items():
        counts = case.counters.by_instruction()
        executed = sum(counts[index].warp_instructions for index in indices)
        kept = _kept_across(case, indices)
        freed = (
            " Then merge the loops before and after the barrier: each value can be used as soon as "
            "it is loaded, so the kernel needs fewer registers."
        )
        yield Advice(
            "unnecessary barrier",
            line,
            f"warps executed the barrier {executed:,} times; "
            + (
                "no access after the barrier conflicts with an access by another thread before "
                "the barrier"
                if shares_memory
                else "the kernel uses no shared memory, and no thread reads a value that another "
                "thread wrote"
            )
            + kept,
            "Remove the barrier: __syncthreads() is needed only between accesses by different "
            "threads to the same bytes, if at least one of the accesses is a write."
            f"{own or (freed if kept else '')}",
            executed,
            LEAST_OF_BARRIERS if shares_memory else 0.0,
            saves=_own_work(case) if own else {},
        )


def _own_work(case: Case) -> dict[str, float]:
    """Returns the work that a kernel saves if its threads keep their own elements in registers."""
    counters = case.counters
    if any(_uses_shared_memory(one) for one in case.program.instructions):
        return {
            "wavefronts": sum(counters[f"shared_{op}_wavefronts"] for op in ("load", "store")),
            "issued": sum(counters[f"shared_{op}_requests"] for op in ("load", "store")),
        }
    shares = {
        op: max(0.0, 1 - case.warps / max(1, counters[f"global_{op}_requests"]))
        for op in ("load", "store")
    }
    return {
        "loaded": shares["load"] * counters["global_load_bytes_moved"],
        "stored": shares["store"] * counters["global_store_bytes_moved"],
    }


def _uses_shared_memory(one: Instruction) -> bool:
    return any(space in (Space.SHARED, Space.GENERIC) for space, _ in accesses(one))


def _kept_across(case: Case, indices: list[int]) -> str:
    """Returns what the barriers of a line keep in registers, if that is much."""
    live = live_at(case, indices)
    if live is None or live.of_line < LARGE_GROUP:
        return ""
    return f"; across the barrier, {live.registers} registers are live, {live.described}"


def _own_elements(case: Case) -> str:
    """Returns advice on memory of which each thread uses only its own element, again and again;
    empty for other uses. Without shared memory, that of a single buffer in global memory."""
    indices = [i for i, one in enumerate(case.program.instructions) if _uses_shared_memory(one)]
    if not indices:
        indices = [index for index, _, _ in case.accesses(Space.GLOBAL)]
    names: set[str] = set()
    for index in indices:
        form, strides = case.strides.form_of(index), case.strides.of_instruction(index)
        if form is None or not _is_own(case, index, form):
            return ""
        if strides is None or strides.loops:
            return ""
        names.add(array_of(case, index))
    name = names.pop() if len(names) == 1 else ""
    if not name:
        return ""
    return (
        f" Each thread uses only one element of {name}, and no other thread uses this "
        "element: keep it in a local variable, which the compiler puts in a register."
    )


def _orders_nothing(case: Case, before: set[int], after: set[int]) -> bool:
    """Returns whether no access in one interval can be to bytes that one in the other writes."""
    sides = [
        [
            (index, space, op)
            for index in interval
            for space, op in accesses(case.program.instructions[index])
            if space in ORDERED
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
