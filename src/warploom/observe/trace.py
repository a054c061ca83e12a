"""The trace of a launch: one versioned document that everything which shows a run reads.

`observe.schema` says what stands in it, `observe.recorder` fills it from the reference machine and
`observe.compiled_trace` from compiled code.
"""

from __future__ import annotations

import gzip
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from warploom.core.errors import WarploomError
from warploom.core.unpacking import UnpackError, gunzip
from warploom.machine.lanes_off import LanesOff, ReconvergencePoint
from warploom.observe.columns import check_columns
from warploom.observe.schema import (
    VERSION,
    Accesses,
    Allocated,
    Asynchronous,
    BasicBlock,
    Changes,
    Code,
    DeviceFacts,
    Fault,
    Finding,
    LaunchFacts,
    LeftOut,
    ModelledTime,
    OccupancyFacts,
    Register,
    Shape,
    SharedArray,
    Site,
    SourceText,
    State,
    Steps,
    Warp,
    Writes,
)

MOST_BYTES = 1 << 29
"""What a trace may have when it is unpacked, if nobody says otherwise: 512 MiB, some 10 million
steps."""


FAILURES = (
    UnpackError,
    msgspec.DecodeError,
    ValueError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""Exceptions that damaged traces raise."""


class Trace(msgspec.Struct, frozen=True, dict=True):
    """The record of a launch. `error` is what ended it, empty if it ended without one, and `fault`
    the access that did, if it was one. `modelled` is how long it would take, where that was asked
    for (`Timing.add_to`), `findings` what sanitizers found in the same launch. `asynchronous` is
    what was in flight, where the reference machine recorded it and there was anything."""

    version: int
    launch: LaunchFacts
    device: DeviceFacts
    occupancy: OccupancyFacts
    sources: tuple[SourceText, ...]
    ptx: str
    code: tuple[Code, ...]
    basic_blocks: tuple[BasicBlock, ...]
    registers: tuple[Register, ...]
    allocations: tuple[Allocated, ...]
    shared: tuple[SharedArray, ...]
    warps: tuple[Warp, ...]
    states: tuple[State, ...]
    steps: Steps
    sites: tuple[Site, ...]
    shapes: tuple[Shape, ...]
    accesses: Accesses
    writes: Writes
    changes: Changes
    left_out: LeftOut
    error: str
    fault: Fault | None = None
    modelled: ModelledTime | None = None
    findings: tuple[Finding, ...] = ()
    asynchronous: Asynchronous | None = None

    @property
    def warp_size(self) -> int:
        """Return the lanes of a warp."""
        return self.device.warp_size

    @property
    def instructions(self) -> tuple[str, ...]:
        """Return the texts of the kernel's PTX instructions."""
        return tuple(code.text for code in self.code)

    def line(self, instruction: int) -> str:
        """Returns where an instruction comes from, as `file:line`."""
        code = self.code[instruction]
        name = self.sources[code.file].name if code.file >= 0 else "PTX"
        return f"{name}:{code.line if code.file >= 0 else code.ptx_line}"

    def warp(self, block: int = 0, warp: int = 0) -> WarpTrace:
        """Returns what a warp did. Raises KeyError where it was not recorded."""
        for number, one in enumerate(self.warps):
            if (one.block, one.warp) == (block, warp):
                return WarpTrace(self, number)
        raise KeyError(f"the trace holds nothing of warp {warp} of block {block}")

    def register(self, name: str, time: int, block: int = 0, warp: int = 0) -> tuple[int, ...]:
        """Return the bits of a register in each lane before the step at `time`. Raises KeyError
        where a warp's registers were not recorded, or there is none of that name."""
        index = next((i for i, r in enumerate(self.registers) if r.name == name), None)
        number = next(i for i, w in enumerate(self.warps) if (w.block, w.warp) == (block, warp))
        if index is None or not self.warps[number].registers:
            raise KeyError(f"the trace holds no register {name} of warp {warp} of block {block}")
        times, values = self._history.get((number, index), ([], []))
        before = bisect_left(times, time)
        return values[before - 1] if before else (0,) * self.warp_size

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of the steps, by name."""
        names = ("warp", "instruction", "state")
        found: dict[str, npt.NDArray[Any]] = {n: _u32(getattr(self.steps, n)) for n in names}
        found["executing"] = np.frombuffer(self.steps.executing, f"<u{self.warp_size // 8}")
        return found | {"marks": np.frombuffer(self.steps.marks, np.uint8).astype(np.uint32)}

    @cached_property
    def _history(self) -> dict[tuple[int, int], tuple[list[int], list[tuple[int, ...]]]]:
        """Return, for each warp and register, when it was written and with what."""
        narrow = _rows_of_lanes(_u32(self.writes.narrow), self.warp_size)
        wide = _rows_of_lanes(np.frombuffer(self.writes.wide, "<u8"), self.warp_size)
        found: dict[tuple[int, int], tuple[list[int], list[tuple[int, ...]]]] = {}
        made, wides = self.writes, [r.type.endswith("64") for r in self.registers]
        steps: list[int] = _u32(made.step).tolist()
        registers: list[int] = _u32(made.register).tolist()
        numbers: list[int] = _u32(made.value).tolist()
        for step, register, value in zip(steps, registers, numbers, strict=True):
            table = wide if wides[register] else narrow
            key = int(self.columns["warp"][step]), register
            times, values = found.setdefault(key, ([], []))
            times.append(step)
            values.append(table[value])
        return found

    def __repr__(self) -> str:
        launch = self.launch
        ended = f", ended by: {self.error.splitlines()[0]}" if self.error else ""
        return (
            f"Trace({launch.name}[{launch.grid}, {launch.block}] on {self.device.title}:"
            f" {self.steps.count:,} steps of {len(self.warps)} warps{ended})"
        )

    def to_bytes(self) -> bytes:
        """Return the trace as compressed MessagePack: what a file of one holds."""
        return gzip.compress(msgspec.msgpack.encode(self), compresslevel=3, mtime=0)

    @staticmethod
    def from_bytes(data: bytes, most_bytes: int = MOST_BYTES) -> Trace:
        """Returns a trace that `to_bytes` made. Raises WarploomError for anything else, and for
        what unpacks to more than `most_bytes`."""
        try:
            plain = gunzip(data, most_bytes)
            version = msgspec.msgpack.decode(plain, type=_Versioned).version
            if version != VERSION:
                raise WarploomError(
                    f"the trace is of version {version} of the schema, and this reads {VERSION};"
                    f" record it again (`warploom view FILE --save trace.wl`)"
                )
            trace = msgspec.msgpack.decode(plain, type=Trace)
            check_columns(trace)
        except FAILURES as error:
            reason = str(error) or type(error).__name__
            raise WarploomError(f"this is no trace: {reason}") from None
        return trace


class _Versioned(msgspec.Struct):
    version: int


@dataclass(frozen=True, slots=True)
class StepAccess:
    """A step's access to memory: where each of `lanes` reaches in `space`, `size` bytes each."""

    space: str
    op: str
    size: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    cost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One warp instruction; see `Steps` and `State`. `time` is its number in the launch."""

    time: int
    instruction: int
    active: int
    executing: int
    marks: int
    off: LanesOff
    stack: tuple[ReconvergencePoint, ...]
    splits: tuple[tuple[int, int], ...]
    accesses: list[StepAccess]


@dataclass(frozen=True)
class WarpTrace:
    """The record of one warp."""

    trace: Trace
    number: int

    @cached_property
    def steps(self) -> list[Step]:
        """Return its steps, in order."""
        times = np.flatnonzero(self.trace.columns["warp"] == self.number)
        return [self._step(int(time)) for time in times]

    def _step(self, time: int) -> Step:
        trace, columns = self.trace, self.trace.columns
        state = trace.states[int(columns["state"][time])]
        return Step(
            time,
            int(columns["instruction"][time]),
            state.active,
            int(columns["executing"][time]),
            int(columns["marks"][time]),
            state.off,
            state.stack,
            state.splits,
            [self._access(number) for number in self._accesses_of(time)],
        )

    def _accesses_of(self, time: int) -> range:
        steps = self._access_columns[0]
        return range(bisect_left(steps, time), bisect_right(steps, time))

    @cached_property
    def _access_columns(self) -> tuple[list[int], ...]:
        made = self.trace.accesses
        base: list[int] = np.frombuffer(made.base, "<u8").tolist()
        return *(_u32(c).tolist() for c in (made.step, made.site, made.shape)), base

    def _access(self, number: int) -> StepAccess:
        _, sites, shapes, bases = self._access_columns
        site, shape = self.trace.sites[sites[number]], self.trace.shapes[shapes[number]]
        lanes = tuple(lane for lane in range(self.trace.warp_size) if shape.lanes >> lane & 1)
        where = tuple(bases[number] + offset for offset in shape.offsets)
        return StepAccess(site.space, site.op, site.size, lanes, where, shape.cost)


def _rows_of_lanes(table: npt.NDArray[Any], lanes: int) -> list[tuple[int, ...]]:
    """Return the rows of a table of registers."""
    rows: list[list[int]] = table.reshape(-1, lanes).tolist()
    return [tuple(row) for row in rows]


def _u32(column: bytes) -> npt.NDArray[np.uint32]:
    return np.frombuffer(column, "<u4")
