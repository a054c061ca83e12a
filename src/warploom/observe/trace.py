"""Represents the trace of a launch: one versioned document from which the page and other viewers
show a run.

`observe.schema` defines its parts; `observe.recorder` records them on the reference machine and
`observe.compiled_trace` from compiled code.
"""

from __future__ import annotations

import gzip
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from warploom.core.errors import WarploomError
from warploom.core.input_files import reading
from warploom.core.lazy import cached_property
from warploom.core.unpacking import gunzip
from warploom.machine.lanes_off import LanesOff, ReconvergencePoint
from warploom.observe.columns import check_columns
from warploom.observe.schema import VERSION, CallFrame, TraceData

MOST_BYTES = 1 << 29
"""The default limit for the size of an unpacked trace: 512 MiB, some 10 million steps."""


class Trace(TraceData, frozen=True, dict=True):
    """The record of a launch.

    `error` is the message of what ended it, empty if it ended normally, and `fault` the access that
    did, if any. `modelled` is how long it would take, if that was requested (`Timing.add_to`),
    `findings` are those of sanitizers in the same launch. `asynchronous` are the operations in
    flight, if the reference machine recorded the launch and there were any.
    """

    @property
    def warp_size(self) -> int:
        """Returns the lanes of a warp."""
        return self.device.warp_size

    @property
    def instructions(self) -> tuple[str, ...]:
        """Returns the texts of the kernel's PTX instructions."""
        return tuple(code.text for code in self.code)

    def line(self, instruction: int) -> str:
        """Returns the source location of an instruction as `file:line`."""
        code = self.code[instruction]
        name = self.sources[code.file].name if code.file >= 0 else "PTX"
        return f"{name}:{code.line if code.file >= 0 else code.ptx_line}"

    def warp(self, block: int = 0, warp: int = 0) -> WarpTrace:
        """Returns the record of a warp. Raises KeyError if it was not recorded."""
        for index, recorded in enumerate(self.warps):
            if (recorded.block, recorded.warp) == (block, warp):
                return WarpTrace(self, index)
        raise KeyError(f"the trace does not contain warp {warp} of block {block}")

    def register(self, name: str, time: int, block: int = 0, warp: int = 0) -> tuple[int, ...]:
        """Returns the bits of a register in each lane before the step at `time`. Raises KeyError if
        the warp's registers were not recorded, or there is no such register."""
        index = next(
            (
                position
                for position, register_ in enumerate(self.registers)
                if register_.name == name
            ),
            None,
        )
        number = next(
            position
            for position, warp_ in enumerate(self.warps)
            if (warp_.block, warp_.warp) == (block, warp)
        )
        if index is None or not self.warps[number].registers:
            raise KeyError(
                f"the trace does not contain register {name} of warp {warp} of block {block}"
            )
        times, values = self._history.get((number, index), ([], []))
        preceding = bisect_left(times, time)
        return values[preceding - 1] if preceding else (0,) * self.warp_size

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the columns of the steps, by name."""
        names = ("warp", "instruction", "state")
        columns: dict[str, npt.NDArray[Any]] = {
            name: _u32(getattr(self.steps, name)) for name in names
        }
        columns["executing"] = np.frombuffer(self.steps.executing, f"<u{self.warp_size // 8}")
        return columns | {"marks": np.frombuffer(self.steps.marks, np.uint8).astype(np.uint32)}

    @cached_property
    def _history(self) -> dict[tuple[int, int], tuple[list[int], list[tuple[int, ...]]]]:
        """Returns, for each warp and register, the steps that wrote it and the lane values that
        they wrote."""
        narrow = _rows_of_lanes(_u32(self.writes.narrow), self.warp_size)
        wide = _rows_of_lanes(np.frombuffer(self.writes.wide, "<u8"), self.warp_size)
        history: dict[tuple[int, int], tuple[list[int], list[tuple[int, ...]]]] = {}
        columns, is_wide = (
            self.writes,
            [register_.type.endswith("64") for register_ in self.registers],
        )
        steps: list[int] = _u32(columns.step).tolist()
        registers: list[int] = _u32(columns.register).tolist()
        rows: list[int] = _u32(columns.value).tolist()
        for step, register, value in zip(steps, registers, rows, strict=True):
            table = wide if is_wide[register] else narrow
            key = int(self.columns["warp"][step]), register
            times, values = history.setdefault(key, ([], []))
            times.append(step)
            values.append(table[value])
        return history

    def __repr__(self) -> str:
        """Returns a one-line summary of the trace."""
        launch = self.launch
        ended = f", ended by: {self.error.splitlines()[0]}" if self.error else ""
        return (
            f"Trace({launch.name}[{launch.grid}, {launch.block}] on {self.device.title}:"
            f" {self.steps.count:,} steps of {len(self.warps)} warps{ended})"
        )

    def to_bytes(self) -> bytes:
        """Returns the trace as compressed MessagePack, the content of a trace file."""
        # No modification time, so that equal traces are equal files.
        return gzip.compress(msgspec.msgpack.encode(self), compresslevel=3, mtime=0)

    @staticmethod
    def from_bytes(data: bytes, most_bytes: int = MOST_BYTES) -> Trace:
        """Returns the trace that `to_bytes` encoded. Raises WarploomError for anything else, and
        for data that unpacks to more than `most_bytes`."""
        with reading("this", "is not a trace"):
            plain = gunzip(data, most_bytes)
            # Check the version first: another schema may not decode as this one.
            version = msgspec.msgpack.decode(plain, type=_Versioned).version
            if version != VERSION:
                raise WarploomError(
                    f"the trace uses version {version} of the schema, but this version of "
                    f"Warploom reads version {VERSION}; record it again (`warploom view FILE "
                    "--save trace.wl`)"
                )
            trace = msgspec.msgpack.decode(plain, type=Trace)
            check_columns(trace)
            return trace


class _Versioned(msgspec.Struct):
    """The part of a trace that is decoded first, to check its version."""

    version: int


@dataclass(frozen=True, slots=True)
class StepAccess:
    """A step's access to memory: the address of each of `lanes` in `space`, `size` bytes each."""

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
        """Returns its steps, in order."""
        times = np.flatnonzero(self.trace.columns["warp"] == self.number)
        return [self._step(int(time)) for time in times]

    def call_stack(self, lane: int, time: int) -> tuple[CallFrame, ...]:
        """Returns the functions that a lane is in at a step, the innermost first, each with the
        line at which it is: of the instruction that the lane executes at `time` or executed last,
        or of a call. Empty before the lane's first instruction."""
        trace, code = self.trace, self.trace.code
        own = [step for step in self.steps if step.time <= time and step.active >> lane & 1]
        if not own:
            return ()
        calls: list[int] = []
        for step in own[:-1]:
            executed = step.executing >> lane & 1
            if executed and code[step.instruction].calls:
                calls.append(step.instruction)
            elif executed and code[step.instruction].returns:
                calls.pop()
        return tuple(
            frame if number else replace(frame, line=code[index].line)
            for index in (own[-1].instruction, *reversed(calls))
            for number, frame in enumerate(trace.frames[code[index].frames])
        )

    def _step(self, time: int) -> Step:
        """Returns the step at a time."""
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
        """Returns the numbers of the accesses of a step."""
        steps = self._access_columns[0]
        return range(bisect_left(steps, time), bisect_right(steps, time))

    @cached_property
    def _access_columns(self) -> tuple[list[int], ...]:
        columns = self.trace.accesses
        base: list[int] = np.frombuffer(columns.base, "<u8").tolist()
        return *(
            _u32(column).tolist() for column in (columns.step, columns.site, columns.shape)
        ), base

    def _access(self, number: int) -> StepAccess:
        """Returns access `number` of the trace with its lane addresses."""
        _, sites, shapes, bases = self._access_columns
        site, shape = self.trace.sites[sites[number]], self.trace.shapes[shapes[number]]
        lanes = tuple(lane for lane in range(self.trace.warp_size) if shape.lanes >> lane & 1)
        addresses = tuple(bases[number] + offset for offset in shape.offsets)
        return StepAccess(site.space, site.op, site.size, lanes, addresses, shape.cost)


def _rows_of_lanes(table: npt.NDArray[Any], lanes: int) -> list[tuple[int, ...]]:
    """Returns the rows of a table of registers, with `lanes` values each."""
    rows: list[list[int]] = table.reshape(-1, lanes).tolist()
    return [tuple(row) for row in rows]


def _u32(column: bytes) -> npt.NDArray[np.uint32]:
    return np.frombuffer(column, "<u4")
