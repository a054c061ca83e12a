"""Emits loads and stores whose addresses are uniform or affine, inlined in the code of a warp.

For such an access the address of the first lane of each lane run determines those of all lanes, so
no lane has to be compared with another. `ld.global.f32 %f1, [%rd2]` with affine addresses (stride
4) becomes

    hit = range cache has an entry for %rd2 of lane 0   (`lower.access.range_cache`)
    hit:  v = load <32 x i32>, ptr %rd2[0]; count += 1  (`lower.access.loads`)
    miss: v = call @access.load.global.f32x1.(...)      (`lower.access.memory`)

Where a basic block has a slow version, the miss branches there instead (`group_guards`). Accesses
at any other addresses call the access function at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir

from warploom.abi.access_type import record_memory_change
from warploom.ir.access_plans import Guard, Move, Pattern
from warploom.ir.kernel_accesses import elements
from warploom.isa.instruction import Instruction, Operand, Space
from warploom.llvm.lanes import I64, LANES, Value
from warploom.lower.access.group_addresses import GroupAddresses
from warploom.lower.access.group_guards import GroupGuards
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.loads import load
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.stores import store
from warploom.lower.access.transfers import PREFETCH_DISTANCE, LaneAddresses, Transfers
from warploom.lower.frame.registers import values_by_shape
from warploom.lower.instrument.access_event import LaneRuns
from warploom.lower.instrument.extents import extent_of
from warploom.program.accesses import space_of
from warploom.program.cfg import ProgramBlock
from warploom.shapes.vector_shape import VectorShape


def _is_global_line(group: GroupValues) -> bool:
    """Returns true if the lanes of a warp access consecutive elements of global memory, in one lane
    run: the only accesses that are prefetched."""
    follow = group.plan.pattern is Pattern.CONSECUTIVE and group.base.runs == 1
    return follow and group.access_type.space is Space.GLOBAL


class AffineAccess:
    """Emits the loads and stores of convergent code: inlined by the plan of their access group
    (accesses of the block from one base register, which share a guard), else as calls. `index`
    numbers the instruction, `on` has its executing lanes."""

    def __init__(self, memory: MemoryCode) -> None:
        """Creates the group guards, the addresses of groups and the moves that accesses use."""
        self.memory = memory
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self.operands = memory.operands
        self.transfers = Transfers(memory.lanes, memory.storage.pointer)
        self.group_guards, self.group_addresses = (
            GroupGuards(memory),
            GroupAddresses(memory.lanes),
        )

    def begin(self, block: ProgramBlock, *, masked: bool) -> None:
        """Begins a basic block, before its code: reads its access groups from the Warp IR, none in
        divergent code. `masked`: the block is predicated."""
        self.group_guards.begin(block, masked=masked)

    # ---- loads ----------------------------------------------------------------------------------

    def load_uniform_runs(self, index: int, instruction: Instruction, on: Value) -> list[Value]:
        """Emits a load in which the lanes of each lane run read one address. A kernel parameter's
        elements are returned as one lane each; those of memory with a lane for each run: loaded by
        the group's plan if there is a group and its guard holds, else by a call."""
        type, parts = (
            instruction.operation.modifiers.scalar(),
            len(elements(instruction.operands[0])),
        )
        if space_of(instruction) is Space.PARAM:
            arguments = instruction.operands[1], type, parts, on
            return self.memory.load_parameter(index, *arguments, width=1)
        access_type = self.memory.accesses.access_type_of("load", index, instruction)
        width = self.frame.position.operand_shapes.address(instruction.operands[1]).width

        def load_any() -> list[Value]:
            """Emits the call for 32 lanes, and uses one active lane's value of each run."""
            addresses = self.operands.address(instruction.operands[1])
            values = self.memory.load_any(index, access_type, addresses, on)
            bits = self.lanes.bits(on)
            return [
                values_by_shape(self.lanes, value, bits, VectorShape(width)) for value in values
            ]

        return self._load(index, instruction, on, load_any, width)

    def load(self, index: int, instruction: Instruction, on: Value) -> list[Value] | None:
        """Emits a load that belongs to an access group, by the group's plan if its guard holds,
        else by a call of the access function; returns its elements, each in 32 lanes. Returns None,
        and emits nothing, for a load without a group."""
        group = self.group_guards.groups.get(index)
        if group is None:
            return None

        def load_any() -> list[Value]:
            """Emits the call of the access function for the load, and returns its elements in 32
            lanes."""
            addresses = self.operands.address(instruction.operands[1])
            return self.memory.load_any(index, group.access_type, addresses, on)

        return self._load(index, instruction, on, load_any, LANES)

    def _load(
        self,
        index: int,
        instruction: Instruction,
        on: Value,
        load_any: Callable[[], list[Value]],
        width: int,
    ) -> list[Value]:
        """Emits a load by its group's plan if the guard holds, else by `load_any`; without a group
        always by the latter. On the fast path, where a failed guard has left the block, only the
        plan's code is emitted. Returns elements of `width` lanes."""
        group = self.group_guards.groups.get(index)
        if group is None:
            return load_any()
        b = self.b
        hit = self.group_guards.check(index, group, instruction, on)
        if self.group_guards.hit_is_certain(group):
            return self._load_hit(index, group, instruction, on, width)
        on_hit, on_miss, done = (b.append_basic_block(n) for n in ("hit", "general", "loaded"))
        b.cbranch(hit, on_hit, on_miss).set_weights([99, 1])
        b.position_at_end(on_hit)
        values = self._load_hit(index, group, instruction, on, width)
        after_short = b.block  # not `on_hit`, if the move has branches of its own
        b.branch(done)
        b.position_at_end(on_miss)
        miss_values = load_any()
        after_other = b.block
        b.branch(done)
        b.position_at_end(done)
        return [
            self._either((hit_value, after_short), (miss_value, after_other))
            for hit_value, miss_value in zip(values, miss_values, strict=True)
        ]

    def _load_hit(
        self, index: int, group: GroupValues, instruction: Instruction, on: Value, width: int
    ) -> list[Value]:
        """Emits a load whose guard holds: the race detector's event, its count, prefetches, and the
        data movement of its plan. In blocks with batched stores, a load of consecutive elements of
        global memory prefetches the lines of the 32 elements that begin PREFETCH_DISTANCE bytes
        after its own. Returns its elements in `width` lanes."""
        self._report(index, group, instruction.operands[1], on, [])
        self.group_guards.count(index, group)
        if self.group_guards.prefetches_lines and _is_global_line(group):
            first_address = self.group_addresses.firsts(group, index)[0]
            self.transfers.prefetch(
                group.access_type,
                first_address,
                range(PREFETCH_DISTANCE, PREFETCH_DISTANCE + LANES * group.access_type.size),
            )
        lane_addresses = self._lane_addresses(index, group, instruction, on)
        values = load(self.transfers, group.plan.move, lane_addresses)
        # Moves give all lanes, or one element for each run with one address: stride 0.
        return [self.lanes.expand(value, width) for value in values]

    def _either(self, *incoming: tuple[Value, ir.Block]) -> Value:
        """Emits a phi node from pairs of a value and the LLVM block that it comes from, and returns
        it."""
        result = self.b.phi(incoming[0][0].type)
        for value, block in incoming:
            result.add_incoming(value, block)
        return result

    # ---- stores ---------------------------------------------------------------------------------

    def store(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits a store: by its group's plan if the guard holds, else by a call; without a group by
        the general path (`MemoryCode.store`). Where the plan defers it, only the race detector's
        event is emitted and the value stored in the store batch, which stores all at the group's
        last store; the guard is emitted at the first."""
        group = self.group_guards.groups.get(index)
        if group is None:
            self.memory.store(index, instruction, on)
            return
        type = instruction.operation.modifiers.scalar()
        values = [
            self.operands.bits(element, type) for element in elements(instruction.operands[1])
        ]
        if group.plan.move is Move.DEFERRED:
            self._report(index, group, instruction.operands[0], on, values)
            self.group_guards.batch_store(index, group, instruction, on)
            self.group_guards.store_batch.append(values[0])
            return
        hit = self.group_guards.check(index, group, instruction, on)
        if self.group_guards.hit_is_certain(group):
            self._store_hit(index, group, instruction, values, on)
            return
        with self.b.if_else(hit, likely=True) as (on_hit, on_miss):
            with on_hit:
                self._store_hit(index, group, instruction, values, on)
            with on_miss:
                addresses = self.operands.address(instruction.operands[0])
                self.memory.store_any(index, group.access_type, addresses, values, on)

    def _store_hit(
        self,
        index: int,
        group: GroupValues,
        instruction: Instruction,
        values: list[Value],
        on: Value,
    ) -> None:
        """Emits a store whose guard holds: the race detector's event, its count, prefetches for the
        next warps, and the data movement of its plan; outside of batches of loop iterations also
        the count of memory changes."""
        self._report(index, group, instruction.operands[0], on, values)
        self.group_guards.count(index, group)
        lane_addresses = self._lane_addresses(index, group, instruction, on)
        store(self.transfers, group.plan.move, lane_addresses, values)
        # A batch adds all stores of its iterations at once, after their loop (`strided_loops`).
        if not group.batched:
            record_memory_change(self.lanes, self.frame.environment, I64(1))

    def _report(
        self, index: int, group: GroupValues, address: Operand, on: Value, values: list[Value]
    ) -> None:
        """Emits the event of an inlined access for the race detector, after it stores `values`,
        those that a store writes, to the data buffer, and for the worker's access set. The event
        has the extent of strided addresses (none of deferred stores, nor if each lane is a run),
        and the lane runs of affine ones (guard CACHE). Emits nothing without these instruments, or
        if the access needs no check (`must_check`) and is not tracked."""
        instruments, access_type = self.memory.instruments, group.access_type
        detector, tracker = instruments.detector, instruments.tracker
        checks = detector is not None and detector.must_check(index, access_type)
        if not checks and (tracker is None or not tracker.tracks(index)):
            return
        storage = self.memory.storage
        for number, value in enumerate(values if checks else ()):
            self.b.store(value, storage.at(number * access_type.part_bytes), align=16)
        addresses = self.operands.address(address)
        extent = runs = None
        if group.plan.guard is not Guard.COMPARED and group.base.is_affine:
            step = I64(group.base.stride) if group.step is None else group.step
            extent = extent_of(self.lanes, access_type.size, group.base.runs, step, addresses, on)
        if group.plan.guard is Guard.CACHE:
            layout = group.base.without_repeats
            runs = LaneRuns(self.operands.address(address, layout.width), layout)
        event = self.memory.event(index, access_type, addresses, on)
        event = replace(event, extent=extent, runs=runs)
        if detector is not None and checks:
            detector.access(event)
        if tracker is not None:
            tracker.access(event)

    def _lane_addresses(
        self, index: int, group: GroupValues, instruction: Instruction, on: Value
    ) -> LaneAddresses:
        """Returns the addresses of an access whose guard holds, in the form that its move needs:
        always the first one of each lane run (where each lane is a run, lane 0's alone) and the
        mask. Adds the host pointers of all lanes for the move BY_STEP and where each lane is a run;
        else, for 16 runs of two lanes, those of each run's first lane."""
        shared = group.access_type.space is Space.SHARED
        base = self.memory.storage.space(Space.SHARED)[0] if shared else None
        pointers = first_vector = None
        if group.plan.move is Move.BY_STEP or group.accesses.is_laid_out:
            addresses = self.operands.address(
                instruction.operands[0 if group.access_type.op == "store" else 1]
            )
            pointers = self.operands.host_pointers(base, addresses)
        elif group.base.width == LANES // 2:
            first_vector = self.operands.host_pointers(
                base, self.group_addresses.first_vector(group, index)
            )
        firsts, mask = self.group_addresses.firsts(group, index), self.group_guards.mask(group, on)
        stride, step = group.base.stride, group.step
        return LaneAddresses(
            group.access_type,
            firsts,
            mask,
            stride,
            step,
            pointers,
            first_vector,
            group.base.repeats,
            group.splits_pairs,
        )
