"""Makes the reference machine go on from a state that compiled code has left (`debug.engines`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np
import numpy.typing as npt

from warploom.abi.context_layout import ContextLayout, context_layout
from warploom.abi.environment import Slot, local_stride
from warploom.abi.pieces import frame_pieces
from warploom.core.types import ScalarType
from warploom.cost.device_rules import access_rules
from warploom.debug.checkpoints import Checkpoint
from warploom.debug.engines import BetweenBlocks, TurnEngine
from warploom.debug.target import Target
from warploom.machine.caches import empty_caches
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.launch import all_shared_bytes, shared_stride
from warploom.machine.reference.block import Grid, register_digest, schedule_arrays
from warploom.machine.reference.lanes import Values
from warploom.machine.reference.state import LaunchState, Listener, ThreadBlock, Warp, new_warp
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.shapes.operand_shapes import NO_SHAPES
from warploom.simt import block_slots, schedule_layout
from warploom.simt.record_copies import copy_record
from warploom.simt.schedule_layout import WarpState, table_of
from warploom.simt.warp_table import split_of

Bytes = npt.NDArray[np.uint8]

LANES = 32


def new_run(target: Target, listener: Listener | None = None) -> LaunchState:
    """Returns a launch on the reference machine that has not begun."""
    program, launch = target.program, target.launch
    tally = Tally.empty(program, launch.blocks * launch.warps_per_block)
    rows = {(row.instruction, row.space): i for i, row in enumerate(tally.access_records)}
    rules = access_rules(target.spec, target.options)
    plan = launch.schedule.plan(launch, program)
    plan.available = launch.available_slots
    caches = empty_caches(target.spec, rules, program, launch, target.memory)
    slots, states, tables = schedule_arrays(launch, plan)
    given = (program, launch, target.memory, tally, rows, rules, plan, slots, caches)
    return LaunchState(*given, states, tables, listener)


def grid_at(
    target: Target, find_engine: Callable[[], TurnEngine], start: Checkpoint, listener: Listener
) -> Grid:
    """Returns the reference machine at a checkpoint, where memory stands; the engine is only needed
    for a state between two turns."""
    run = new_run(target, listener)
    run.issued = start.position
    if isinstance(start.state, BetweenBlocks):
        block_slots.start_blocks(run.plan, run.slots)
        run.plan.next_block = start.state.following
        return Grid(run)
    engine = find_engine()
    engine.load(start.state)
    return _Transfer(run, engine.work).grid()


class _Transfer:
    """Reads the arrays of a launch of compiled code into a run of the reference machine."""

    def __init__(self, run: LaunchState, work: WorkerLaunch) -> None:
        self.run, self.work = run, work
        self.program: Program = run.program
        self.pieces = frame_pieces(self.program)
        compiled = work.kernel.program
        self.layout: ContextLayout = context_layout(compiled, NO_SHAPES, self.pieces.values(), 0)

    def grid(self) -> Grid:
        run, work = self.run, self.work
        stride = run.plan.table_stride
        copy_record(run.plan, work.buffers.plan)
        run.plan.table_stride = stride
        run.slots[:] = work.slots.tolist()
        used = work.buffers.plan.most_resident * run.launch.warps_per_block
        run.states[: used * WarpState.WORDS] = work.states[: used * WarpState.WORDS].tolist()
        tables = work.tables.reshape(-1, work.buffers.plan.table_stride)[:used, :stride]
        run.tables[: used * stride] = tables.reshape(-1).tolist()
        grid = Grid(run)
        for slot, block in enumerate(work.slots.tolist()):
            if block >= 0:
                grid.resident[slot] = self._warps(grid, slot, block)
        grid.digest = _Digests(chain.from_iterable(grid.resident.values()))
        self._begin_in_turn(grid)
        return grid

    def _begin_in_turn(self, grid: Grid) -> None:
        """Makes the warp that is in the middle of its turn, if one is, the running one of the
        grid."""
        environment, plan = self.work.environment, self.run.plan
        number = environment[Slot.IN_TURN] - 1
        if number < 0:
            return
        warp = grid.resident[plan.slot][number]
        used = plan.length - environment[Slot.TURN_LEFT]
        warp.state.issued -= used
        grid.enter_mid_turn(warp, used)

    def _warps(self, grid: Grid, slot: int, number: int) -> list[Warp]:
        """Returns the warps of the block in a slot."""
        run, launch = self.run, self.run.launch
        stride = shared_stride(self.program, launch)
        leader = slot - slot % launch.cluster_blocks
        if leader not in grid.clusters:
            shared = self._bytes("SHARED", leader * stride, launch.cluster_blocks * stride)
            grid.clusters[leader] = shared if len(shared) else np.zeros(1, np.uint8)
        first = (slot - leader) * stride
        cluster = grid.clusters[leader]
        own = cluster[first : first + all_shared_bytes(self.program, launch)]
        block = ThreadBlock(run, number, own, cluster, launch.rank_of(number))
        warps = launch.warps_per_block
        return [self._warp(block, i, slot * warps + i) for i in range(warps)]

    def _warp(self, block: ThreadBlock, number: int, index: int) -> Warp:
        """Returns a warp of a block, by its index in the arrays."""
        run = self.run
        state, table = WarpState(run.states, 0, index), table_of(run.plan, run.tables, index)
        warp = new_warp(block, number, state, table)
        self._place(warp)
        if state.resume == 0:
            return warp
        state_of = self._context(index)
        for register in self.program.registers:
            content = state_of[self.layout.by_lane[register] :]
            warp.registers[register.name] = _lanes(content, register.type)
        for offset, piece in self.pieces.items():
            size = piece.type.bits // 8
            content = state_of[self.layout.by_lane[piece] :][: size * LANES]
            warp.frame[:, offset : offset + size] = content.reshape(LANES, size)
        stride = local_stride(self.program.local_bytes)
        rows = self._bytes("LOCAL", index * stride, stride).reshape(-1, LANES, 4)
        warp.local[:] = rows.transpose(1, 0, 2).reshape(LANES, -1)[:, : warp.local.shape[1]]
        return warp

    def _place(self, warp: Warp) -> None:
        """Sets where a warp resumes as the reference machine does: by its table alone."""
        state, table = warp.state, warp.splits.table
        if state.status == schedule_layout.ENDED:
            table.live = 0
            return
        if state.resume <= 0:
            return
        blocks, index = self.program.blocks, state.instruction
        at = next(block for block in blocks if block.start <= index < block.stop)
        table.block = at.successors[-1]
        table.mask = table.live

    def _context(self, index: int) -> Bytes:
        size = self.work.kernel.context_bytes
        return self._bytes("CONTEXTS", index * size, size)

    def _bytes(self, name: str, offset: int, size: int) -> Bytes:
        """Returns a copy of what blocks have in their slots."""
        start = self.work.launch_template.starts[Slot[f"{name}_BASE"]] + offset
        return self.work.buffers.arena[start : start + size].copy()


def _lanes(content: Bytes, type: ScalarType) -> Values:
    """Returns a register from its slot in a context."""
    if type.bits == 1:
        return np.unpackbits(content[:4], bitorder="little").view(np.bool_)
    size = type.bits // 8
    kept = content[: size * LANES]
    if type.bits < 128:
        return kept.view(f"<u{size}").copy()
    halves = kept.view("<u8").reshape(LANES, 2).tolist()
    return np.array([low | high << 64 for low, high in halves], np.object_)


class _Digests:
    """Digests of registers that agree with those which compiled code has left in the tables: a
    warp whose registers are as they were keeps the digest that it had, so that both machines find
    at the same turn that it goes round without getting anywhere."""

    def __init__(self, warps: Iterable[Warp]) -> None:
        self._left = {(w.block.number, w.number): dict(w.registers) for w in warps}

    def __call__(self, warp: Warp) -> int:
        left = self._left.get((warp.block.number, warp.number))
        if left is not None:
            if all(np.array_equal(value, left[name]) for name, value in warp.registers.items()):
                mask = warp.splits.active
                lane = (mask & -mask).bit_length() - 1
                return split_of(warp.splits.table, lane).digest
            del self._left[warp.block.number, warp.number]
        return register_digest(warp)
