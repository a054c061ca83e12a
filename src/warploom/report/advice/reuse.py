"""Advice about buffers whose elements many threads load again and again."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.isa.instruction import Space
from warploom.observe.counters import Counts
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.origins import buffer_uses, enumerated, pointer_of

MANY_TIMES = 16
"""From this number of loads of each byte on, on average, reuse is advised: the taps of a small
stencil are fewer."""


def rereads(case: Case) -> Iterator[Advice]:
    """Yields advice for a kernel whose well-formed loads move the bytes of their buffers into the
    SMs many times: one for the kernel, at the line that loads most."""
    uses = buffer_uses(case, "load")
    size = sum(use.size for use in uses or ())
    if case.work is None or not size or size <= case.work.l1_bytes // 2:
        return
    counted = {
        index: counts
        for index, op, counts in case.accesses(Space.GLOBAL)
        if op == "load" and not _is_of_thread(case, index)
    }
    loads = [(_useful(counts), index) for index, counts in counted.items()]
    if not loads:
        return
    total = sum(size for size, _ in loads)
    if total // size < MANY_TIMES:
        return
    # Threads of a warp that load one element move it once.
    times = sum(each.global_load_bytes_requested for each in counted.values()) // size
    line = case.program.line(max(loads)[1])
    pointers = [pointer_of(case, index) for _, index in loads if case.program.line(index) == line]
    names = sorted({pointer.name for pointer in pointers if pointer is not None and pointer.name})
    yield Advice(
        "repeated loads of the same elements",
        line,
        f"threads load each byte of {enumerated(names) or 'the buffers'} {times:,} times on "
        f"average; a byte that L1 has evicted is loaded from L2 or DRAM",
        "Stage tiles in shared memory: each block loads a tile once, with coalesced loads, and "
        "all its threads read the tile after __syncthreads(). Also let each thread compute "
        "several results from values that it keeps in registers.",
        sum(counts.global_load_transactions for _, _, counts in case.accesses(Space.GLOBAL)),
        saves={"loaded": total - size},
    )


def _useful(counts: Counts) -> int:
    """Returns the bytes that loads move, without those that no lane of them asked for."""
    return min(counts.global_load_bytes_moved, counts.global_load_bytes_requested)


def _is_of_thread(case: Case, index: int) -> bool:
    """Returns whether each thread loads the same bytes whenever it executes a load."""
    strides = case.strides.of_instruction(index)
    return strides is not None and not strides.loops
