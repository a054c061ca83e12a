"""The trace of a launch: one versioned schema that everything which shows a run reads.

Steps stand in columns, in the order in which they ran. What a step has in common with others —
the state of its warp, the pattern of an access, the content of a register — stands in a table and
is named by its number there, so any step is shown by looking it up, without replaying what came
before. `observe.recorder` fills a trace from the reference machine.
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
from warploom.machine.lanes_off import LanesOff, Meeting

VERSION = 2
"""Of the schema; a reader refuses any other."""

DIVERGED, MET = 1, 2
"""Marks of a step: its end sends lanes both ways; its end brings lanes together that had parted."""

NO_COST = (0,) * 13
"""What an access costs whose instruction is not counted."""


class DeviceFacts(msgspec.Struct, frozen=True):
    """The device that was modelled. `independent`: each thread has its own program counter."""

    name: str
    title: str
    cc: str
    sms: int
    independent: bool
    global_rule: str
    shared_rule: str
    banks: int
    bank_bytes: int
    warp_size: int


class OccupancyFacts(msgspec.Struct, frozen=True):
    """How many of the launch's blocks an SM holds, and what limits them; modelled."""

    active_blocks: int
    active_warps: int
    max_warps: int
    registers: int
    shared_bytes: int
    limiters: tuple[str, ...]


class LaunchFacts(msgspec.Struct, frozen=True):
    """What was launched, and how: `kernel` as PTX calls it and `name` as the source does; grid and
    block as (x, y, z)."""

    kernel: str
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    engine: str
    schedule: str
    seed: int


class SourceText(msgspec.Struct, frozen=True):
    """A file that instructions come from."""

    name: str
    text: str


class Code(msgspec.Struct, frozen=True):
    """One PTX instruction of the kernel.

    `file` and `line` say where it comes from: an index into the trace's sources (-1: not there) and
    a line; `ptx_line` is its line of the PTX. `unit` is what executes it. `reads` and `writes` are
    indices of registers. `block` is its basic block.
    """

    text: str
    file: int
    line: int
    ptx_line: int
    unit: str
    is_branch: bool
    is_barrier: bool
    guarded: bool
    hidden: bool
    block: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class BasicBlock(msgspec.Struct, frozen=True):
    """Instructions `start` up to but not including `stop`; `meets_at` is the basic block where
    lanes that part at its end meet again, the number of blocks for the end of the kernel."""

    start: int
    stop: int
    meets_at: int


class Register(msgspec.Struct, frozen=True):
    """A register of the kernel, and its type as PTX writes it."""

    name: str
    type: str


class Warp(msgspec.Struct, frozen=True):
    """A warp that was recorded: `block` is the block's number in the grid, x fastest. `existing`
    are the lanes that have a thread; `final` its state when the launch ended."""

    block: int
    warp: int
    existing: int
    final: int
    registers: bool


class State(msgspec.Struct, frozen=True):
    """A warp's lanes: `active` are those of the running split, `off` gives the reason for every
    other lane. `stack` are the places where running lanes will meet others, the innermost last;
    `splits` the (mask, basic block) of each split that is put aside."""

    active: int
    off: LanesOff
    stack: tuple[Meeting, ...]
    splits: tuple[tuple[int, int], ...]


class Steps(msgspec.Struct, frozen=True):
    """The warp instructions, in the order in which they ran: columns of little-endian numbers.

    `warp`, `instruction` and `state` (u32) are numbers in their tables; `executing` (a bit for each
    lane: u32, or u64 for warps of 64) are the
    lanes whose guard held; `marks` (u8) are DIVERGED and MET.
    """

    count: int
    warp: bytes
    instruction: bytes
    state: bytes
    executing: bytes
    marks: bytes


class Site(msgspec.Struct, frozen=True):
    """An instruction that reaches into a space, for `size` bytes a lane. `rule` is the rule that
    says what that costs, empty where it is not counted; `best` the fewest transactions that it can
    take. `writes` says whether a store's writes are counted."""

    instruction: int
    space: str
    op: str
    size: int
    rule: str
    best: int


class Shape(msgspec.Struct, frozen=True):
    """The pattern of an access: for each lane of `lanes` its offset from the access's base.

    `served` are its transactions, or passes over the banks, in the order in which they happen: the
    offset of the first byte, how many, and the lanes served. `cost` is what the device's rule
    counts, in the order of `rules.fields.FIELDS` up to the caches.
    """

    lanes: int
    offsets: tuple[int, ...]
    served: tuple[tuple[int, int, int], ...]
    cost: tuple[int, ...]


class Accesses(msgspec.Struct, frozen=True):
    """What steps did to memory, in order: columns. `step`, `site` and `shape` (u32) are numbers;
    `base` (u64) is an address, the shape's offsets count from it."""

    count: int
    step: bytes
    site: bytes
    shape: bytes
    base: bytes


class Writes(msgspec.Struct, frozen=True):
    """What registers became, for warps whose registers were recorded: columns of u32.

    Behind `step`, register `register` holds number `value` of `narrow` (rows of 32 u32, one for
    each lane) or, for registers of 64 bits, of `wide` (rows of 32 u64).
    """

    count: int
    step: bytes
    register: bytes
    value: bytes
    narrow: bytes
    wide: bytes


class Allocated(msgspec.Struct, frozen=True):
    """A live stretch of device memory."""

    address: int
    size: int
    name: str


class LeftOut(msgspec.Struct, frozen=True):
    """How much was not recorded."""

    steps: int = 0
    warps: int = 0


class Trace(msgspec.Struct, frozen=True, dict=True):
    """What a launch did. `error` is what ended it, empty if it ended well."""

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
    warps: tuple[Warp, ...]
    states: tuple[State, ...]
    steps: Steps
    sites: tuple[Site, ...]
    shapes: tuple[Shape, ...]
    accesses: Accesses
    writes: Writes
    left_out: LeftOut
    error: str

    @property
    def warp_size(self) -> int:
        """The lanes of a warp."""
        return self.device.warp_size

    @property
    def instructions(self) -> tuple[str, ...]:
        """The texts of the kernel's PTX instructions."""
        return tuple(code.text for code in self.code)

    def line(self, instruction: int) -> str:
        """Where an instruction comes from, as `file:line`."""
        code = self.code[instruction]
        name = self.sources[code.file].name if code.file >= 0 else "PTX"
        return f"{name}:{code.line if code.file >= 0 else code.ptx_line}"

    def warp(self, block: int = 0, warp: int = 0) -> WarpTrace:
        """What a warp did. Raises KeyError where it was not recorded."""
        for number, one in enumerate(self.warps):
            if (one.block, one.warp) == (block, warp):
                return WarpTrace(self, number)
        raise KeyError(f"the trace holds nothing of warp {warp} of block {block}")

    def register(self, name: str, time: int, block: int = 0, warp: int = 0) -> tuple[int, ...]:
        """The bits of a register in each lane before the step at `time`. Raises KeyError where a
        warp's registers were not recorded, or there is none of that name."""
        index = next((i for i, r in enumerate(self.registers) if r.name == name), None)
        number = next(i for i, w in enumerate(self.warps) if (w.block, w.warp) == (block, warp))
        if index is None or not self.warps[number].registers:
            raise KeyError(f"the trace holds no register {name} of warp {warp} of block {block}")
        times, values = self._history.get((number, index), ([], []))
        before = bisect_left(times, time)
        return values[before - 1] if before else (0,) * self.warp_size

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of the steps, by name."""
        names = ("warp", "instruction", "state")
        found: dict[str, npt.NDArray[Any]] = {n: _u32(getattr(self.steps, n)) for n in names}
        found["executing"] = np.frombuffer(self.steps.executing, f"<u{self.warp_size // 8}")
        return found | {"marks": np.frombuffer(self.steps.marks, np.uint8).astype(np.uint32)}

    @cached_property
    def _history(self) -> dict[tuple[int, int], tuple[list[int], list[tuple[int, ...]]]]:
        """By warp and register, when it was written and with what."""
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

    def to_bytes(self) -> bytes:
        """The trace as compressed MessagePack: what a file of one holds."""
        return gzip.compress(msgspec.msgpack.encode(self), compresslevel=3, mtime=0)

    @staticmethod
    def from_bytes(data: bytes) -> Trace:
        """A trace that `to_bytes` made. Raises WarploomError for anything else."""
        try:
            plain = gzip.decompress(data)
            version = msgspec.msgpack.decode(plain, type=_Versioned).version
        except (OSError, EOFError, msgspec.DecodeError) as error:
            raise WarploomError(f"this is no trace: {error}") from None
        if version != VERSION:
            raise WarploomError(
                f"the trace is of version {version} of the schema, and this reads {VERSION}; record"
                f" it again (`warploom view FILE --save trace.wl`)"
            )
        return msgspec.msgpack.decode(plain, type=Trace)


class _Versioned(msgspec.Struct):
    version: int


@dataclass(frozen=True, slots=True)
class Reached:
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
    stack: tuple[Meeting, ...]
    splits: tuple[tuple[int, int], ...]
    accesses: list[Reached]


@dataclass(frozen=True)
class WarpTrace:
    """What one warp did."""

    trace: Trace
    number: int

    @cached_property
    def steps(self) -> list[Step]:
        """Its steps, in order."""
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

    def _access(self, number: int) -> Reached:
        _, sites, shapes, bases = self._access_columns
        site, shape = self.trace.sites[sites[number]], self.trace.shapes[shapes[number]]
        lanes = tuple(lane for lane in range(self.trace.warp_size) if shape.lanes >> lane & 1)
        where = tuple(bases[number] + offset for offset in shape.offsets)
        return Reached(site.space, site.op, site.size, lanes, where, shape.cost)


def _rows_of_lanes(table: npt.NDArray[Any], lanes: int) -> list[tuple[int, ...]]:
    """The rows of a table of registers."""
    rows: list[list[int]] = table.reshape(-1, lanes).tolist()
    return [tuple(row) for row in rows]


def _u32(column: bytes) -> npt.NDArray[np.uint32]:
    return np.frombuffer(column, "<u4")


@dataclass(frozen=True, slots=True)
class TraceLimits:
    """How much is recorded at most: warps, the first that run, and steps of each; `registers` of
    how many warps. `blocks` are those to record where not the first that run."""

    warps: int = 64
    steps: int = 100_000
    registers: int = 64
    blocks: frozenset[int] | None = None
