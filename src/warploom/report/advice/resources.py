"""Advice about the registers and the shared memory of a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warploom.devices.occupancy import occupancy_of
from warploom.isa.instruction import Space
from warploom.program.accesses import accesses, bytes_of
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.latency import latency_saved
from warploom.report.advice.origins import array_of, declared_at
from warploom.report.source import split_line


def register_spills(case: Case) -> Iterator[Advice]:
    """Yields advice for a kernel whose registers do not suffice, by ptxas."""
    if case.spill_bytes:
        yield Advice(
            "register spills",
            None,
            f"{case.spill_bytes:,} bytes per thread are spilled to local memory and loaded "
            f"again, because the kernel was compiled for {case.registers} registers per thread",
            "Allow more registers (-maxrregcount, or a smaller __launch_bounds__), or keep "
            "fewer values live; compare both variants with `warploom time`, because fewer warps "
            "without spills are often faster.",
        )


def unused_shared_memory(case: Case) -> Iterator[Advice]:
    """Yields advice for a launch that reserves more shared memory than its accesses can touch, if
    more blocks would fit without it."""
    demand, touched = case.occupancy.demand, _touched(case)
    if touched is None or "shared" not in case.occupancy.limiters:
        return
    less = occupancy_of(case.spec, replace(demand, shared_bytes=touched))
    if less.fraction <= case.occupancy.fraction:
        return
    line, request = _variable(case, touched)
    yield Advice(
        "unused shared memory",
        line,
        f"a block has {demand.shared_bytes:,} bytes of shared memory but uses only "
        f"{touched:,}; the unused part limits an SM to {case.occupancy.active_blocks} blocks",
        f"{request}: {less.active_blocks} blocks then fit, and occupancy "
        f"rises from {100 * case.occupancy.fraction:.0f} % to {100 * less.fraction:.0f} %.",
        saves=latency_saved(case, less.active_warps),
    )


def _variable(case: Case, touched: int) -> tuple[str | None, str]:
    """Returns the line that declares the only variable in shared memory, and how to make that
    smaller; for other kernels no line, and the bytes to request."""
    indices = [
        index
        for index, one in enumerate(case.program.instructions)
        if any(space is Space.SHARED for space, _ in accesses(one))
    ]
    names = {array_of(case, index) for index in indices}
    name = names.pop() if len(names) == 1 else ""
    if not name or case.program.shared_bytes < case.occupancy.demand.shared_bytes:
        return None, f"Request {touched:,} bytes"
    line = declared_at(name, case.program.line(indices[0]))
    sizes = {bytes_of(case.program.instructions[index]) for index in indices}
    size = min(sizes)
    count = f" ({touched // size:,} elements of {size} bytes)" if len(sizes) == 1 else ""
    where = "" if line is None else f" at line {split_line(line)[1]}"
    return line, f"Declare {name}{where} with {touched:,} bytes{count}"


def _touched(case: Case) -> int | None:
    """Returns the bytes of shared memory up to the last that any access can touch; None if an
    address is not known before the launch."""
    end = 0
    for index, made in enumerate(case.program.instructions):
        spaces = {space for space, _ in accesses(made)}
        if not spaces & {Space.SHARED, Space.GENERIC}:
            continue
        form = case.strides.form_of(index)
        if form is None or not form.is_bounded or Space.GENERIC in spaces:
            return None
        end = max(end, form.high + bytes_of(made))
    return end
