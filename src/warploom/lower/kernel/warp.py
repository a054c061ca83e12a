"""Emits `warp`, the function of a kernel that runs one warp, from its Warp IR.

The function has every basic block in its copies (`lower.frame.blocks`), batches of strided loops,
warp loops, and a switch at the entry that resumes a suspended warp:

    entry:  load the warp's state; switch over its resume point
    begin:  set the active mask; branch to the convergent copy of block 0
    c0..cN  convergent copies     d0..dN  divergent copies     r0..rN  region copies
    exit:   store fuel and variables of warp order; return the status
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from llvmlite import ir

from warploom.abi.context_layout import context_layout
from warploom.abi.pieces import frame_pieces
from warploom.helpers.checks import TRAP
from warploom.ir.warp_ir import BranchKind, WarpIR
from warploom.isa.instruction import Instruction
from warploom.isa.kinds import Effect, Needs, OpKind
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
from warploom.lower.frame.in_flight import RING_BYTES
from warploom.lower.frame.operands import Operands
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instructions import InstructionCode
from warploom.lower.instrument.guards import Guards
from warploom.lower.instrument.instruments import Instruments
from warploom.lower.loops.strided_loops import StridedLoopCode
from warploom.lower.loops.warp_loop_schedule import WarpLoopCode
from warploom.lower.operations.member_masks import MemberMaskCode
from warploom.program.cfg import ProgramBlock, range_without_branch
from warploom.simt.schedule_layout import WarpState


class WarpFunction:
    """Emits `warp` into a module; holds the emitters of all kinds of code in it. `_entries`: the
    LLVM blocks, by instruction, at which other code may enter the basic block being emitted in its
    middle."""

    def __init__(self, module: ir.Module, warp_ir: WarpIR) -> None:
        """Creates the frame and the emitters that the kernel variant needs: those of recording,
        watchpoints, sanitizing, observers and calls of baseline code are None if it does not have
        them. Emits nothing but the frame's variables."""
        program, variant = warp_ir.program, warp_ir.variant
        self.program, self.warp_ir = program, warp_ir
        shuffles, pieces = variant.shuffles, frame_pieces(program)
        delays = variant.has_policy_layout and Needs.IN_FLIGHT_RING in program.needs
        context = context_layout(
            program,
            warp_ir.uniformity,
            pieces.values(),
            RING_BYTES if delays else 0,
            baseline=variant.baseline,
        )
        self.frame = Frame(module, warp_ir, context, pieces)
        self.spills = SpillCode(self.frame, delays=delays)
        self.lanes, self.b = self.frame.lanes, self.frame.lanes.b
        self.operands = Operands(self.frame)
        clusters = ClusterCode(self.frame, several=variant.clusters)
        self.instruments = Instruments.of(variant, self.operands, self.spills, clusters)
        self.functions = SharedFunctions(module)
        self.memory = MemoryCode(
            self.operands,
            self.instruments,
            clusters,
            shuffles=shuffles,
            shared=self.functions if variant.baseline else None,
        )
        self.members = MemberMaskCode(self.operands)
        self.guards = Guards(self.frame, self.instruments.log)
        self.control = ControlFlow(self.frame, self.spills)
        self.indexed_branches = IndexedBranchCode(self.control, self.operands)
        detector, observer = self.instruments.detector, self.instruments.observer
        arrivals = detector.events if detector and detector.synchronisation else None
        listeners = [listener for listener in (arrivals, observer) if listener is not None]
        self.barriers = BarrierCode(self.control, self.operands, listeners, clusters)
        self._entries: Mapping[int, ir.Block] = {}
        self.sync = SyncCode(self.control, self.operands)
        self.instructions = InstructionCode(self.control, self.barriers, self.memory, self.guards)
        self.calls: CallCode | None = None
        if variant.baseline:
            self.calls = CallCode(self.memory, self.functions, self.guards, shuffles=shuffles)

    def emit(self, before_block: Callable[[], None]) -> None:
        """Emits the whole function, in the order: copies of blocks, predicated blocks, batches,
        control flow that they share, warp loops, entry and exit. Calls `before_block` before each
        copy of a basic block, so that the caller can stop a slow emission (deadline,
        interrupts)."""
        for copy, index in self.control.blocks.copies:
            before_block()
            with self.frame.at_block(index, convergent=copy is not Copy.DIVERGENT):
                self._emit_block(copy, self.program.blocks[index])
        for copy, index in self.control.blocks.predicated_copies:
            with self.frame.at_block(index, convergent=True):
                self._emit_predicated_block(copy, self.program.blocks[index])
        batches = StridedLoopCode(
            self.control, self.spills, self.instructions, self.guards, self._emit_control
        )
        for batched in self.warp_ir.strided_loops:
            for copy in (Copy.CONVERGENT, Copy.REGION):
                if (copy, batched.loop.header) in self.control.blocks.batches:
                    batches.emit(copy, batched)
        resumes = self.control.finish()
        region_versions = self.control.suspension.emit_region_versions() if resumes else {}
        if (Copy.REGION, 0) in self.control.blocks.copies:
            region_versions[END] = self._emit_begin(Copy.REGION)
        entries = {END: self._emit_begin(self.control.blocks.main), **resumes}
        entries |= batches.interleaved.emit_resumes()
        all_at_once = self._emit_warp_loops() | batches.interleaved.emit()
        WarpSwitch(self.control.warp_order.state).emit(entries, region_versions, all_at_once)
        self._emit_entry()
        self._emit_exit()
        if self.calls is not None:
            self.calls.table.finish()

    @property
    def suspends(self) -> bool:
        """Returns whether `warp` may return before its warp ends, and be called again to resume."""
        return self.control.suspends

    def _emit_warp_loops(self) -> dict[int, ir.Block]:
        """Emits the warp loops, which run all warps of a thread block through a barrier region, or
        the static schedule, which begins at END. Returns their entries by the site where warps
        wait, END for the begin; none if the kernel has neither. If the launch's blocks do not have
        the layout that they need, the entries begin the first warp's turn."""
        warp_ir = self.warp_ir
        warp_loops = warp_ir.along(warp_ir.warp_loops)
        static_schedule = warp_ir.along(warp_ir.static_schedule)
        if not (warp_loops or static_schedule):
            return {}
        code = WarpLoopCode(self.spills, self.control.warp_order, self.instructions)
        sites = self.control.suspension.sites
        entries = code.emit(warp_loops, sites)
        with self.frame.blocks_of(self.warp_ir.variant.size):
            begin = code.emit_static_schedule(static_schedule, sites)
        if begin is not None:
            entries[END] = begin
        if not entries:
            return {}
        has_layout = code.loop_check.layout.matches_launch()
        return {site: self._entry_if(has_layout, entry) for site, entry in entries.items()}

    def _entry_if(self, condition: Value, entry: ir.Block) -> ir.Block:
        """Returns an LLVM block that jumps to `entry` if a condition holds, else to the turn of the
        running warp."""
        block = self.control.blocks.append("warp_loop.entry")
        with self.b.goto_block(block):
            self.b.cbranch(condition, entry, self.control.warp_order.state.turn)
        return block

    def _emit_entry(self) -> None:
        """Emits the jump from the entry block to the code of warp order, which begins the warp
        (END, always where warps cannot suspend) or resumes it at the resume point in its state
        (`resume`)."""
        entered = self.frame.function.append_basic_block("entered")
        self.b.position_at_end(entered)
        resume_point = (
            self.frame.get(self.frame.context.state(WarpState.resume))
            if self.suspends
            else I64(END)
        )
        self.control.warp_order.enter(resume_point)
        self.frame.prologue.b.branch(entered)

    def _emit_begin(self, copy: Copy) -> ir.Block:
        """Emits the begin of a warp, which branches to block 0 of a copy with all lanes that have a
        thread; in the region copy all 32 have, and the head of the warp's table is saved, as region
        barriers save registers alone. Registers are zero, so have their shapes (*stale* is
        cleared), and the SIMT stack is empty. Returns the LLVM block."""
        b, frame = self.b, self.frame
        begin = frame.function.append_basic_block("begin")
        b.position_at_end(begin)
        self.spills.begin(I32(-1) if copy is Copy.REGION else self.members.existing())
        self.control.layout_recovery.set_stale(False)
        if frame.position.spilled:
            # The context may hold SIMT stack nodes of an earlier thread block.
            self.spills.store_empty_stack()
        # Barriers in region versions save registers alone (`Suspension.wait_in_region`).
        if copy is Copy.REGION:
            self.spills.save_head()
        self.control.masked_loops.enter(self.frame.shapes.around(0))
        b.branch(self.control.blocks.copies[copy, 0])
        return begin

    def _emit_exit(self) -> None:
        """Emits the exit block, to which `FunctionFrame.leave` branches: it stores in the
        environment the variables of warp order (WARP, SITE, START), the fuel left and whether a
        wait has failed, and returns the status that `leave` has stored in the frame's variable.
        The warp's registers, lanes and table have been saved before."""
        self.b.position_at_end(self.frame.exit_block)
        self.control.warp_order.state.record()
        self.frame.fuel.record()
        self.frame.emit_return()

    # ---- blocks ---------------------------------------------------------------------------------

    def _emit_block(self, copy: Copy, block: ProgramBlock) -> None:
        """Emits a copy of a basic block: the check of its first instruction's member mask, the
        waits at its begin (for lanes, in the divergent copy, and of `bar.red`), its count, and its
        instructions. Its slow version and its masked version follow, if guards of its fast version
        may jump to them. A copy that cannot run (`Blocks.can_run`) is `unreachable`."""
        self.b.position_at_end(self.control.blocks.copies[copy, block.index])
        self._entries = self.control.divergence.steps if copy is Copy.DIVERGENT else {}
        if not self.control.blocks.can_run(copy, block.index):
            self.b.unreachable()
            return
        self.members.check(block.start, self.program.instructions[block.start])
        if copy is Copy.DIVERGENT:
            self.sync.before(block)
        self.barriers.begin(block)
        self._count_block(block)
        self.instructions.affine_access.begin(block, masked=False)
        self._emit_body(copy, block, block.start)
        guards = self.instructions.affine_access.group_guards
        # These versions begin at the first instruction whose guard may jump to them: the fast
        # version has done what stands before it, and each later guard enters at its own
        # instruction.
        for name, version in (("slow_path", guards.slow_path), ("masked", guards.masked)):
            self._entries = version()
            if self._entries:
                self.b.position_at_end(self.frame.function.append_basic_block(name))
                self._emit_body(copy, block, min(self._entries))

    def _emit_predicated_block(self, copy: Copy, block: ProgramBlock) -> None:
        """Emits the masked version of a basic block that some lanes run (if-conversion), and its
        end, which restores the mask and continues in `copy`; registers retain their vector
        shapes."""
        self.b.position_at_end(self.control.blocks.predicated_copies[copy, block.index])
        self._emit_masked(block)
        self.control.leave_predicated_block(copy, block.index)

    def _emit_masked(self, block: ProgramBlock) -> None:
        """Emits the count and the instructions of a predicated block as those of the divergent
        copy, which leave the registers of inactive lanes as they are, but with vector shapes."""
        self._entries = {}
        self._count_block(block)
        self.instructions.affine_access.begin(block, masked=True)
        # Inactive lanes keep their values: a uniform result must not be expanded over all 32.
        position = replace(self.frame.position, masked=True)
        for index in range_without_branch(self.program.instructions, block):
            with self.frame.at(replace(position, remaining=block.stop - index)):
                self._emit_instruction(Copy.DIVERGENT, index, self.program.instructions[index])

    def _emit_body(self, copy: Copy, block: ProgramBlock, start: int) -> None:
        """Emits the instructions of a basic block from number `start` on, each as an entry of the
        call table in baseline code if it can be. If no instruction ends the block, ends the open
        call table, suspends if `SyncCode.after` does, and jumps to the next block."""
        for index in range(start, block.stop):
            instruction = self.program.instructions[index]
            with self.frame.at(replace(self.frame.position, remaining=block.stop - index)):
                if self.calls is not None and self.calls.emit(index, instruction):
                    continue
                if not self._emit_control(copy, block, index, instruction):
                    self._emit_instruction(copy, index, instruction)
        if not self.b.block.is_terminated:
            if self.calls is not None:
                self.calls.flush()
            self.sync.after(block)
            self.control.edges.jump(copy, block.successors[0], block.index)

    def _count_block(self, block: ProgramBlock) -> None:
        """Adds 1 to the count of a basic block's executions and its active lanes to their sum,
        subtracts its instructions, but for hidden ones, from the fuel of the turn, and records the
        block if the launch is recorded."""
        frame = self.frame
        frame.counters.add(2 * block.index, I64(1))
        frame.counters.add(2 * block.index + 1, self.lanes.popcount(frame.active.bits()))
        fuel = self.b.load(frame.fuel.left, typ=I64)
        # Hidden instructions are not in the user's program: they use up no turn.
        hidden = sum(i in self.program.hidden for i in range(block.start, block.stop))
        self.b.store(self.b.sub(fuel, I64(block.stop - block.start - hidden)), frame.fuel.left)
        if self.instruments.log:
            self.instruments.log.block(block)

    def _emit_control(
        self, copy: Copy, block: ProgramBlock, index: int, instruction: Instruction
    ) -> bool:
        """Emits a branch, exit, trap or barrier that ends a basic block, after the count of its
        guard and the observer's event, and returns True; returns False, and emits nothing, for
        another instruction, and for barriers of a warp and those that return a count. `index` is
        the instruction's in the program, `copy` the copy of the block that is being emitted."""
        operation = instruction.operation
        barrier = operation.has(Effect.SYNCHRONISES_BLOCK)
        if barrier and not self.barriers.ends(instruction):
            return False
        if not operation.has(Effect.ENDS_BASIC_BLOCK) or operation.kind is OpKind.WARP_BARRIER:
            return False
        guard = self.guards.counted(index, instruction)
        if self.instruments.observer:
            self.instruments.observer.branch(index, instruction, guard)
        match operation.kind:
            case OpKind.BRANCH if guard is None:
                self.control.edges.jump(copy, block.successors[0], block.index)
            case OpKind.BRANCH if self._is_uniform(copy, block):
                taken = self.lanes.lane(self.guards.uniform_value(instruction), 0)
                self.control.branch_together(copy, block.index, taken)
            case OpKind.BRANCH:
                self.control.branch(copy, block.index, guard, index)
            case OpKind.INDEXED_BRANCH:
                self.indexed_branches.branch(copy, block, index, instruction, guard)
            case OpKind.RETURN | OpKind.EXIT:
                self.control.leave_lanes(copy, block.index, guard)
            case OpKind.TRAP:
                self._emit_trap(index, guard)
            case _:
                self.barriers.end(copy, block, index, instruction, guard)
        return True

    def _is_uniform(self, copy: Copy, block: ProgramBlock) -> bool:
        """Returns whether all lanes agree on the branch at the end of a basic block: analysis has
        found it, and the copy is not the divergent one.
        """
        together = copy is not Copy.DIVERGENT
        return together and self.warp_ir.blocks[block.index].branch is BranchKind.UNIFORM

    def _emit_trap(self, index: int, guard: Value | None) -> None:
        """Emits a `trap`: the fault TRAP of the lowest active lane in which the guard holds, if
        there is one.
        """
        b, mask = self.b, self.frame.active.mask()
        bits = self.lanes.bits(mask if guard is None else b.and_(mask, guard))
        with b.if_then(b.icmp_unsigned("!=", bits, I32(0)), likely=False):
            lane = self.lanes.intrinsic("llvm.cttz.i32", I32, [bits, I1(0)])
            self.frame.fault(TRAP, index, lane, I64(0), I64(0))

    # ---- instructions ---------------------------------------------------------------------------

    def _emit_instruction(self, copy: Copy, index: int, instruction: Instruction) -> None:
        """Emits an instruction that does not end a basic block, for the active lanes in which its
        guard holds, and the count of member masks that name exited lanes. If other code enters the
        block there (`_entries`), it begins a new LLVM block, where the guard is read again but not
        counted: the entering code has counted it."""
        guard = self.guards.counted(index, instruction)
        if index in self._entries:
            self.b.branch(self._entries[index])
            self.b.position_at_end(self._entries[index])
            guard = self.guards.held(instruction)
        mask = self.frame.active.mask()
        on = mask if guard is None else self.b.and_(mask, guard)
        self.members.count_exited(index, instruction, on)
        self.instructions.emit(copy, index, instruction, guard, on)
