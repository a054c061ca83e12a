"""The function that runs one warp: every block of a program in both copies."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from llvmlite import ir

from warploom.abi.context_layout import context_layout
from warploom.abi.environment import CountLayout
from warploom.abi.pieces import frame_pieces
from warploom.analysis.predicated_blocks import steps
from warploom.analysis.shape_transfer import BlockShapes, Reading
from warploom.helpers.checks import TRAP
from warploom.ir.warp_ir import BranchKind, WarpIR
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.shared_functions import SharedFunctions
from warploom.lower.baseline.calls import CallCode
from warploom.lower.control.barriers import BarrierCode
from warploom.lower.control.clusters import ClusterCode
from warploom.lower.control.control import ControlFlow
from warploom.lower.control.indexed_branch import IndexedBranchCode
from warploom.lower.control.sync import SyncCode
from warploom.lower.control.warp_order_state import END
from warploom.lower.control.warp_switch import WarpSwitch
from warploom.lower.frame.blocks import Copy
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.in_flight import RING_BYTES, keeps_in_flight
from warploom.lower.frame.operands import Operands
from warploom.lower.frame.spills import Saved
from warploom.lower.instructions import InstructionCode
from warploom.lower.instrument.guards import Guards
from warploom.lower.instrument.observing import ObservingCode
from warploom.lower.instrument.recording import RecordingCode
from warploom.lower.instrument.recording_copies import CopyRecordingCode
from warploom.lower.instrument.sanitizing import SanitizingCode
from warploom.lower.instrument.watchpoints import WatchingCode
from warploom.lower.loops.strided_loops import StridedLoopCode
from warploom.lower.loops.warp_loop_schedule import WarpLoopCode
from warploom.lower.operations.member_masks import MemberCode
from warploom.program.program import Block
from warploom.ptx.ir import Instruction
from warploom.simt.schedule_layout import RESUME


class WarpFunction:
    """Emits `warp` into a module."""

    def __init__(self, module: ir.Module, layout: CountLayout, facts: WarpIR) -> None:
        program, variant = layout.program, facts.variant
        self.program, self.layout, self.facts = program, layout, facts
        shuffles, pieces = variant.shuffles, frame_pieces(program)
        delays = shuffles and keeps_in_flight(program)
        context = context_layout(
            program,
            facts.uniformity,
            pieces.values(),
            RING_BYTES if delays else 0,
            baseline=variant.baseline,
            memory=facts.memory,
        )
        self.frame = Frame(module, layout, facts, context, pieces)
        self.saved = Saved(self.frame, delays=delays)
        self.lanes, self.b = self.frame.lanes, self.frame.lanes.b
        self.operands = Operands(self.frame)
        self.recording = RecordingCode(self.frame, self.saved) if variant.records else None
        watching = None
        if variant.debugging is not None and variant.debugging.watches:
            watching = WatchingCode(self.frame)
        sanitizing = None
        if variant.sanitizes is not None:
            sanitizing = SanitizingCode(self.operands, variant.sanitizes)
        self.observing: ObservingCode | None = None
        if variant.observes is not None:
            self.observing = ObservingCode(self.frame, variant.observes)
        clusters = ClusterCode(self.frame, several=variant.clusters)
        self.functions = SharedFunctions(module)
        self.memory = MemoryCode(
            self.operands,
            self.recording or watching,
            sanitizing,
            clusters,
            shuffles=shuffles,
            shared=self.functions if variant.baseline else None,
            copy_recording=CopyRecordingCode(self.frame, clusters) if variant.records else None,
            observing=self.observing,
        )
        self.members = MemberCode(self.operands)
        self.guards = Guards(self.frame, self.recording)
        self.reading = Reading(program, variant.warp_layout, facts.shapes)
        self.control = ControlFlow(self.frame, self.saved)
        self.ways = IndexedBranchCode(self.control, self.operands)
        arrivals = sanitizing.events if sanitizing and sanitizing.synchronisation else None
        noting = [one for one in (arrivals, self.observing) if one is not None]
        self.barriers = BarrierCode(self.control, self.operands, noting, clusters)
        self._entries: Mapping[int, ir.Block] = {}
        self.sync = SyncCode(self.control, self.operands)
        self.instructions = InstructionCode(
            self.control, self.barriers, self.memory, self.guards, self.reading
        )
        self.calls: CallCode | None = None
        if variant.baseline:
            self.calls = CallCode(self.memory, self.functions, self.guards, shuffles=shuffles)

    def emit(self, before_block: Callable[[], None]) -> None:
        """Emits the whole function; calls `before_block` before each basic block."""
        for copy, index in self.control.blocks.copies:
            before_block()
            with self._standing(index, convergent=copy is not Copy.DIVERGENT):
                self._block(copy, self.program.blocks[index])
        for copy, index in self.control.blocks.beside:
            with self._standing(index, convergent=True):
                self._predicated_block(copy, self.program.blocks[index])
        self.memory.diverged = False
        batches = StridedLoopCode(
            self.control, self.instructions, self.guards, self._standing, self._control
        )
        for batched in self.facts.strided_loops:
            for copy in (Copy.CONVERGENT, Copy.REGION):
                if (copy, batched.loop.header) in self.control.blocks.batches:
                    batches.emit(copy, batched)
        resumes = self.control.finish()
        region_versions = self.control.suspension.emit_region_versions() if resumes else {}
        if (Copy.REGION, 0) in self.control.blocks.copies:
            region_versions[END] = self._begin(Copy.REGION)
        ways = {END: self._begin(self.control.blocks.main), **resumes}
        WarpSwitch(self.control.warp_order.state).emit(ways, region_versions, self._warp_loops())
        self._enter()
        self._leave()
        if self.calls is not None:
            self.calls.table.finish()

    @property
    def suspends(self) -> bool:
        """True where a warp may leave the function before it ends, and come back."""
        return self.control.suspends

    def _warp_loops(self) -> Mapping[int, ir.Block]:
        """Emits the code that runs all warps of a block at once, where there may be any. Returns
        its entries by site."""
        warp_loops, static_schedule = (
            of(self.program) for of in (self.facts.warp_loops_of, self.facts.static_schedule_of)
        )
        if not (warp_loops or static_schedule):
            return {}
        code = WarpLoopCode(self.saved, self.control.warp_order, self.instructions, self._standing)
        sites = self.control.suspension.sites
        found = code.emit(warp_loops, sites)
        with self.frame.blocks_of(self.facts.variant.size):
            begin = code.emit_static_schedule(static_schedule, sites, found.get(END))
        if begin is not None:
            found[END] = begin
        if found:
            self.control.warp_order.state.warp_loops = code.loop_check.layout.fits()
        return found

    def _enter(self) -> None:
        """Begin the warp, or go on where it left off."""
        entered = self.frame.function.append_basic_block("entered")
        self.b.position_at_end(entered)
        known = self.frame.get(self.frame.context.state(RESUME)) if self.suspends else I64(END)
        self.control.warp_order.enter(known)
        self.frame.prologue.b.branch(entered)

    def _begin(self, copy: Copy) -> ir.Block:
        """Return a warp begins, at the first block with the lanes that exist; in a round, all
        do."""
        b, frame = self.b, self.frame
        begin = frame.function.append_basic_block("begin")
        b.position_at_end(begin)
        self.saved.begin(I32(-1) if copy is Copy.REGION else self.members.existing())
        self.control.layout_recovery.set_stale(False)
        if frame.registers.spilled:
            self.saved.settle()  # a block before may have left its nodes in the table
        if copy is Copy.REGION:
            self.saved.save_head()
        self.control.masked_loops.enter(self.frame.shapes.around(0))
        b.branch(self.control.blocks.copies[copy, 0])
        return begin

    def _leave(self) -> None:
        self.b.position_at_end(self.frame.exit_block)
        self.control.warp_order.state.record()
        self.frame.fuel.record()
        self.frame.emit_return()

    # ---- blocks ---------------------------------------------------------------------------------

    @contextmanager
    def _standing(
        self, index: int, *, convergent: bool, shapes: BlockShapes | None = None
    ) -> Generator[None]:
        """Make code for a block, and read its instructions so; with other `shapes` than it has, if
        there are any."""
        with self.frame.registers.standing(index, convergent=convergent, shapes=shapes):
            self.reading.shapes = self.frame.registers.here
            yield

    def _block(self, copy: Copy, block: Block) -> None:
        self.b.position_at_end(self.control.blocks.copies[copy, block.index])
        self._entries = self.control.divergence.steps if copy is Copy.DIVERGENT else {}
        self.memory.diverged = copy is Copy.DIVERGENT
        if not self.control.blocks.runs(copy, block.index):
            self.b.unreachable()
            return
        self.members.check(block.start, self.program.instructions[block.start])
        if copy is Copy.DIVERGENT:
            self.sync.before(block)
        self.barriers.begin(block)
        self._count_block(block)
        self.instructions.affine_access.begin(block, masked=False)
        self._body(copy, block, block.start)
        self._entries = self.instructions.affine_access.group_guards.slow_path()
        if self._entries:
            first = min(self._entries)
            self.b.position_at_end(self.frame.function.append_basic_block("slow_path"))
            self._body(copy, block, first)

    def _predicated_block(self, copy: Copy, block: Block) -> None:
        """Emit a block that some lanes run under a mask; registers keep their shapes."""
        self.b.position_at_end(self.control.blocks.beside[copy, block.index])
        self._masked(block)
        self.control.leave_predicated_block(copy, block.index)

    def _masked(self, block: Block) -> None:
        """Emits the instructions of a block that some lanes run under a mask."""
        self._entries, self.memory.diverged = {}, True
        self._count_block(block)
        self.instructions.affine_access.begin(block, masked=True)
        self.instructions.shaped.partly = True
        for index in steps(self.program, block):
            self.frame.ahead = block.stop - index
            self._instruction(Copy.DIVERGENT, index, self.program.instructions[index])
        self.instructions.shaped.partly = False

    def _body(self, copy: Copy, block: Block, first: int) -> None:
        """Emit the instructions of a block from one on, and what follows."""
        for index in range(first, block.stop):
            made = self.program.instructions[index]
            self.frame.ahead = block.stop - index
            if self.calls is not None and self.calls.emit(index, made):
                continue
            if not self._control(copy, block, index, made):
                self._instruction(copy, index, made)
        if not self.b.block.is_terminated:
            if self.calls is not None:
                self.calls.flush()
            self.sync.after(block)
            self.control.edges.jump(copy, block.successors[0], block.index)

    def _count_block(self, block: Block) -> None:
        frame = self.frame
        frame.counters.add(2 * block.index, I64(1))
        frame.counters.add(2 * block.index + 1, self.lanes.popcount(frame.active.bits()))
        fuel = self.b.load(frame.fuel.left, typ=I64)
        hidden = sum(i in self.program.hidden for i in range(block.start, block.stop))
        self.b.store(self.b.sub(fuel, I64(block.stop - block.start - hidden)), frame.fuel.left)
        if self.recording:
            self.recording.block(block)

    def _control(self, copy: Copy, block: Block, index: int, made: Instruction) -> bool:
        """Emit what ends a block; False where the instruction does not."""
        name = made.operation.name
        if name not in ("bra", "brx", "ret", "exit", "trap", "bar", "barrier"):
            return False
        if name in ("bar", "barrier") and not self.barriers.ends(made):
            return False
        guard = self.guards.counted(index, made)
        if self.observing:
            self.observing.branch(index, made, guard)
        if name == "bra" and guard is None:
            self.control.edges.jump(copy, block.successors[0], block.index)
        elif name == "bra" and self._is_uniform(copy, block):
            held = self.lanes.lane(self.guards.uniform_value(made), 0)
            self.control.branch_together(copy, block.index, held)
        elif name == "bra":
            self.control.branch(copy, block.index, guard, index)
        elif name == "brx":
            self.ways.branch(copy, block, index, made, guard)
        elif name in ("ret", "exit"):
            self.control.leave_lanes(copy, block.index, guard)
        elif name == "trap":
            self._trap(index, guard)
        else:
            self.barriers.end(copy, block, index, made, guard)
        return True

    def _is_uniform(self, copy: Copy, block: Block) -> bool:
        """Returns whether all lanes go one way at the branch at the end of a block."""
        together = copy is not Copy.DIVERGENT
        return together and self.facts.blocks[block.index].branch is BranchKind.UNIFORM

    def _trap(self, index: int, guard: Value | None) -> None:
        """Stop the launch if some lane gets here."""
        b, mask = self.b, self.frame.active.mask()
        bits = self.lanes.bits(mask if guard is None else b.and_(mask, guard))
        with b.if_then(b.icmp_unsigned("!=", bits, I32(0)), likely=False):
            lane = self.lanes.intrinsic("llvm.cttz.i32", I32, [bits, I1(0)])
            self.frame.fault(TRAP, index, lane, I64(0), I64(0))

    # ---- instructions ---------------------------------------------------------------------------

    def _instruction(self, copy: Copy, index: int, made: Instruction) -> None:
        guard = self.guards.counted(index, made)
        if index in self._entries:
            self.b.branch(self._entries[index])
            self.b.position_at_end(self._entries[index])
            guard = self.guards.held(made)
        mask = self.frame.active.mask()
        on = mask if guard is None else self.b.and_(mask, guard)
        self.members.count_exited(index, made, on)
        self.instructions.emit(copy, index, made, guard, on)
