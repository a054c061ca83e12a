"""Validates the columns of a trace that was read from a file: their lengths, and the tables that
they index."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warploom.observe.schema import Asynchronous, TraceData

Column = tuple[str, bytes, int, int, int | None]
"""Name, content, number of entries, bytes of an entry, and the length of the table that entries are
indices of (None: not indices)."""


def check_columns(trace: TraceData) -> None:
    """Raises ValueError if a column has the wrong length, or an index that is out of range."""
    for name, content, count, size, table in _columns(trace):
        if len(content) != count * size:
            raise ValueError(
                f"the column {name} has {len(content)} bytes, but {count} entries of {size} bytes "
                "each"
            )
        if table is not None and count:
            largest = int(np.frombuffer(content, f"<u{size}").max())
            if largest >= table:
                raise ValueError(
                    f"the column {name} contains the index {largest}, but the table has only "
                    f"{table} entries"
                )


def _columns(trace: TraceData) -> Iterator[Column]:
    """Yields all columns of a trace."""
    lanes = trace.device.warp_size
    if lanes not in (32, 64):
        raise ValueError(f"its warps have {lanes} lanes")
    steps, accesses, writes = trace.steps, trace.accesses, trace.writes
    yield "steps.warp", steps.warp, steps.count, 4, len(trace.warps)
    yield "steps.instruction", steps.instruction, steps.count, 4, len(trace.code)
    yield "steps.state", steps.state, steps.count, 4, len(trace.states)
    yield "steps.executing", steps.executing, steps.count, lanes // 8, None
    yield "steps.marks", steps.marks, steps.count, 1, None
    yield "accesses.step", accesses.step, accesses.count, 4, steps.count
    yield "accesses.site", accesses.site, accesses.count, 4, len(trace.sites)
    yield "accesses.shape", accesses.shape, accesses.count, 4, len(trace.shapes)
    yield "accesses.base", accesses.base, accesses.count, 8, None
    changes = trace.changes
    yield "changes.access", changes.access, changes.count, 4, accesses.count
    yield "changes.value", changes.value, changes.count, 4, len(changes.values)
    rows = len(writes.narrow) // (4 * lanes), len(writes.wide) // (8 * lanes)
    yield "writes.narrow", writes.narrow, rows[0] * lanes, 4, None
    yield "writes.wide", writes.wide, rows[1] * lanes, 8, None
    yield "writes.step", writes.step, writes.count, 4, steps.count
    yield "writes.register", writes.register, writes.count, 4, len(trace.registers)
    yield "writes.value", writes.value, writes.count, 4, max(rows)
    if trace.asynchronous is not None:
        yield from _of_asynchronous(trace.asynchronous, steps.count)
    time = trace.modelled
    if time is not None:
        yield "modelled.state", time.state, time.count, 1, len(time.states)
        yield "modelled.instruction", time.instruction, time.count, 4, None
        for name in ("slot", "warp", "visit"):
            yield f"modelled.{name}", getattr(time, name), time.count, 4, None
        for name in ("since", "until"):
            yield f"modelled.{name}", getattr(time, name), time.count, 8, None
        copies = time.copies
        if copies is not None:
            for name, size in COPY_COLUMNS:
                yield f"modelled.copies.{name}", getattr(copies, name), copies.count, size, None


COPY_COLUMNS = (("warp", 4), ("instruction", 4), ("since", 8), ("until", 8))
"""The columns of modelled copies, with the bytes of an entry."""


def _of_asynchronous(record: Asynchronous, steps: int) -> Iterator[Column]:
    """Yields the columns of asynchronous operations and mbarriers."""
    states, flights = record.states, record.flights
    yield "states.step", states.step, states.count, 4, steps
    yield "states.barrier", states.barrier, states.count, 4, len(record.barriers)
    for name in ("phase", "pending", "expected", "bytes_left"):
        yield f"states.{name}", getattr(states, name), states.count, 4, None
    yield "flights.step", flights.step, flights.count, 4, steps
    yield "flights.until", flights.until, flights.count, 4, steps + 1
    yield "flights.kind", flights.kind, flights.count, 4, len(record.kinds)
    yield "flights.size", flights.size, flights.count, 4, None
    yield "flights.barrier", flights.barrier, flights.count, 4, len(record.barriers) + 1
