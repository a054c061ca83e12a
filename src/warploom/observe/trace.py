"""The trace of a launch: every instruction of every warp, and what each lane did meanwhile.

The reference machine is watched while it runs (`machine.reference.state.Listener`); nothing is
recorded unless it is asked for. A trace is bounded: warps and steps beyond its limits still run,
and it says how many it left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from warploom.analysis.program import Program
from warploom.machine.lanes_off import LanesOff, Meeting, lanes_off, meetings, parked_splits
from warploom.machine.launch import Launch
from warploom.machine.reference.state import Access, Warp
from warploom.ptx.printer import print_instruction

VERSION = 1
"""Of the schema; a reader refuses what is newer."""


class Reached(msgspec.Struct, frozen=True):
    """A step's access to memory: where each of `lanes` reaches in `space`, `size` bytes each."""

    space: str
    op: str
    size: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]


class Step(msgspec.Struct, frozen=True):
    """One warp instruction. Masks have bit l set for lane l.

    `time` numbers the steps of the launch, in the order in which they ran. `active` are the lanes
    of the running split, `executing` those of them whose guard holds. `off` gives the reason for
    every other lane. `stack` are the places where running lanes will meet others, the innermost
    last; `splits` the (mask, basic block) of each split that is put aside.
    """

    time: int
    instruction: int
    active: int
    executing: int
    off: LanesOff
    stack: tuple[Meeting, ...]
    splits: tuple[tuple[int, int], ...]
    accesses: list[Reached]


class WarpTrace(msgspec.Struct, frozen=True):
    """What one warp did; `block` is the block's number in the grid, x fastest."""

    block: int
    warp: int
    steps: list[Step]


class Trace(msgspec.Struct, frozen=True):
    """What a launch did.

    `instructions` are the texts of the kernel's PTX instructions and `lines` where each comes from,
    as `file:line`; `blocks` the basic blocks, as (first instruction, first behind). `left_out` is
    how many steps were not recorded; `error` what ended the launch, empty if it ended well.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    instructions: tuple[str, ...]
    lines: tuple[str, ...]
    blocks: tuple[tuple[int, int], ...]
    warps: list[WarpTrace]
    left_out: int = 0
    error: str = ""
    version: int = VERSION
    warp_size: int = 32

    def warp(self, block: int = 0, warp: int = 0) -> WarpTrace:
        """What a warp did. Raises KeyError where it was not recorded."""
        for one in self.warps:
            if (one.block, one.warp) == (block, warp):
                return one
        raise KeyError(f"the trace holds nothing of warp {warp} of block {block}")

    def to_bytes(self) -> bytes:
        """The trace as MessagePack."""
        return msgspec.msgpack.encode(self)

    @staticmethod
    def from_bytes(data: bytes) -> Trace:
        """A trace that `to_bytes` made. Raises msgspec.ValidationError for anything else."""
        return msgspec.msgpack.decode(data, type=Trace)


@dataclass(frozen=True, slots=True)
class TraceLimits:
    """How much is recorded at most: warps, the first that run, and steps of each."""

    warps: int = 64
    steps: int = 100_000


class Recorder:
    """Listens to a launch and keeps its trace."""

    def __init__(self, limits: TraceLimits) -> None:
        self._limits = limits
        self._warps: dict[tuple[int, int], WarpTrace] = {}
        self._existing: dict[tuple[int, int], int] = {}
        self._time = 0
        self._left_out = 0
        self._last: Step | None = None

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        self._last = None
        trace = self._trace_of(warp)
        if trace is None or len(trace.steps) >= self._limits.steps:
            self._left_out += 1
        else:
            self._last = self._step(warp, instruction, mask)
            trace.steps.append(self._last)
        self._time += 1

    def reached(self, warp: Warp, access: Access) -> None:
        if self._last is not None:
            self._last.accesses.append(
                Reached(access.space.value, access.op, access.size, access.lanes, access.addresses)
            )

    def _trace_of(self, warp: Warp) -> WarpTrace | None:
        key = warp.block.number, warp.number
        if key not in self._warps and len(self._warps) < self._limits.warps:
            self._warps[key] = WarpTrace(*key, [])
            # Nobody has exited before a warp's first instruction.
            self._existing[key] = warp.splits.live
        return self._warps.get(key)

    def _step(self, warp: Warp, instruction: int, mask: int) -> Step:
        table = warp.splits.table
        existing = self._existing[warp.block.number, warp.number]
        return Step(
            self._time,
            instruction,
            warp.splits.active,
            mask,
            lanes_off(table, existing),
            meetings(table),
            parked_splits(table),
            [],
        )

    def trace(self, program: Program, launch: Launch, error: str) -> Trace:
        """What was recorded of a launch of a program, and the error that ended it, if one did."""
        count = len(program.instructions)
        return Trace(
            program.name,
            launch.grid,
            launch.block,
            tuple(print_instruction(i) for i in program.instructions),
            tuple(program.line(i) for i in range(count)),
            tuple((block.start, block.stop) for block in program.blocks),
            sorted(self._warps.values(), key=lambda one: (one.block, one.warp)),
            self._left_out,
            error,
            warp_size=launch.warp_size,
        )
