"""Emits loads and stores at addresses that have a shape: no lane has to be compared with another.

Where the first lane of each run reaches says everything. An access that is like an earlier one
(`lower.access.range_cache`) is moved at once (`lower.access.transfers`); any other goes the general
way.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.abi.access_type import record_memory_change
from warploom.analysis.shape_transfer import OperandShapes
from warploom.analysis.vector_shape import VectorShape
from warploom.ir.access_plans import Guard, Move, Pattern
from warploom.ir.kernel_accesses import elements
from warploom.llvm.lanes import I64, LANES, Value
from warploom.lower.access.group_addresses import GroupAddresses
from warploom.lower.access.group_guards import GroupGuards
from warploom.lower.access.groups import Group
from warploom.lower.access.loads import load
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.stores import store
from warploom.lower.access.transfers import AHEAD, LaneAddresses, Transfers
from warploom.lower.frame.registers import values_by_shape
from warploom.lower.instrument.access_events import Runs
from warploom.lower.instrument.extents import extent_of
from warploom.lower.instrument.sanitizing import Memory
from warploom.program.accesses import space_of
from warploom.program.program import ProgramBlock
from warploom.ptx.ir import Instruction, Operand, Space

NEIGHBOURS = 4
"""Warps for which the first of them asks for lines. Sums of two arrays of 16 MiB, in a loop over
the grid, took 22 ns an iteration so, 28 without, 23 with 8 warps; 17 without the loop."""


def _is_global_line(group: Group) -> bool:
    """Returns whether the lanes of a warp access consecutive elements of global memory."""
    follow = group.plan.pattern is Pattern.CONSECUTIVE and group.base.width == 1
    return follow and group.shape.space is Space.GLOBAL


class ShapedAccess:
    """Emits the accesses of code whose registers have shapes."""

    def __init__(self, memory: MemoryCode, reading: OperandShapes) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self.operands = memory.operands
        self.transfers = Transfers(memory.lanes, memory.places.pointer)
        self.ways, self.group_addresses = GroupGuards(memory, reading), GroupAddresses(memory.lanes)

    def begin(self, block: ProgramBlock, *, masked: bool) -> None:
        """Begin a block, before its code; `masked`: some lanes run it while others wait."""
        self.ways.begin(block, masked=masked)

    # ---- loads ----------------------------------------------------------------------------------

    def load_agreed(self, index: int, made: Instruction, on: Value) -> list[Value]:
        """Emit a load in which the lanes of each run read one place: what it gives, part by part,
        in as many lanes as there are runs."""
        type, parts = made.operation.modifiers.scalar(), len(elements(made.operands[0]))
        if space_of(made) is Space.PARAM:
            given = made.operands[1], type, parts, on
            return self.memory.load_parameter(index, *given, width=1)
        shape = self.memory.accesses.access_type_of("load", index, made)
        width = self.reading.address(made.operands[1]).width

        def load_any() -> list[Value]:
            addresses = self.operands.address(made.operands[1])
            found = self.memory.load_any(index, shape, addresses, on)
            bits = self.lanes.bits(on)
            return [values_by_shape(self.lanes, value, bits, VectorShape(width)) for value in found]

        return self._load(index, made, on, load_any, width)

    def load(self, index: int, made: Instruction, on: Value) -> list[Value] | None:
        """Returns what a load gives, part by part; None where it has no group."""
        group = self.ways.groups.get(index)
        if group is None:
            return None

        def load_any() -> list[Value]:
            addresses = self.operands.address(made.operands[1])
            return self.memory.load_any(index, group.shape, addresses, on)

        return self._load(index, made, on, load_any, LANES)

    def _load(
        self,
        index: int,
        made: Instruction,
        on: Value,
        load_any: Callable[[], list[Value]],
        width: int,
    ) -> list[Value]:
        """Emit a load at once where its group is known, else in any way; in so many lanes."""
        group = self.ways.groups.get(index)
        if group is None:
            return load_any()
        b = self.b
        known = self.ways.known(index, group, made, on)
        if self.ways.leaves(group):
            return self._load_known(index, group, made, on, width)
        short, other, done = (b.append_basic_block(n) for n in ("known", "any", "loaded"))
        b.cbranch(known, short, other).set_weights([99, 1])
        b.position_at_end(short)
        found = self._load_known(index, group, made, on, width)
        after_short = b.block
        b.branch(done)
        b.position_at_end(other)
        others = load_any()
        after_other = b.block
        b.branch(done)
        b.position_at_end(done)
        return [
            self._either((one, after_short), (two, after_other))
            for one, two in zip(found, others, strict=True)
        ]

    def _load_known(
        self, index: int, group: Group, made: Instruction, on: Value, width: int
    ) -> list[Value]:
        self._observe(index, group, made.operands[1], on, [])
        self.ways.count(index, group)
        if self.ways.fetches_ahead and _is_global_line(group):
            first = self.group_addresses.places(group, index)[0]
            self.transfers.fetch(group.shape, first, range(AHEAD, AHEAD + LANES * group.shape.size))
        self._fetch_for_neighbours(index, group)
        lane_addresses = self._lane_addresses(index, group, made, on)
        found = load(self.transfers, group.plan.move, lane_addresses)
        return [self.lanes.expand(value, 0, width) for value in found]

    def _fetch_for_neighbours(self, index: int, group: Group) -> None:
        """Ask, in a batch of iterations whose places are far apart, for what the next warps are
        going to access there: else the host's processor finds no order in which lines follow."""
        if group.fetches is None or not _is_global_line(group):
            return
        with self.b.if_then(group.fetches):
            first, extent = self.group_addresses.places(group, index)[0], LANES * group.shape.size
            self.transfers.fetch(group.shape, first, range(extent, NEIGHBOURS * extent))

    def _either(self, *ways: tuple[Value, ir.Block]) -> Value:
        result = self.b.phi(ways[0][0].type)
        for value, block in ways:
            result.add_incoming(value, block)
        return result

    # ---- stores ---------------------------------------------------------------------------------

    def store(self, index: int, made: Instruction, on: Value) -> None:
        """Emit a store, at whatever addresses."""
        group = self.ways.groups.get(index)
        if group is None:
            self.memory.store(index, made, on)
            return
        type = made.operation.modifiers.scalar()
        values = [self.operands.bits(s, type) for s in elements(made.operands[1])]
        if group.plan.move is Move.DEFERRED:
            self._observe(index, group, made.operands[0], on, values)
            self.ways.batch_store(index, group, made, on)
            self.ways.puts.keep(values[0])
            return
        known = self.ways.known(index, group, made, on)
        if self.ways.leaves(group):
            self._store_known(index, group, made, values, on)
            return
        with self.b.if_else(known, likely=True) as (short, other):
            with short:
                self._store_known(index, group, made, values, on)
            with other:
                addresses = self.operands.address(made.operands[0])
                self.memory.store_any(index, group.shape, addresses, values, on)

    def _store_known(
        self, index: int, group: Group, made: Instruction, values: list[Value], on: Value
    ) -> None:
        self._observe(index, group, made.operands[0], on, values)
        self.ways.count(index, group)
        self._fetch_for_neighbours(index, group)
        lane_addresses = self._lane_addresses(index, group, made, on)
        store(self.transfers, group.plan.move, lane_addresses, values)
        if not group.batched:
            record_memory_change(self.lanes, self.frame.environment, I64(1))

    def _observe(
        self, index: int, group: Group, address: Operand, on: Value, values: list[Value]
    ) -> None:
        """Emit the event of a known access for the detector, if it is to see it; `values` are what
        a store writes."""
        sanitizing, shape = self.memory.sanitizing, group.shape
        if sanitizing is None or not sanitizing.takes(index, shape):
            return
        places = self.memory.places
        for number, value in enumerate(values):
            self.b.store(value, places.at(number * shape.part_bytes), align=16)
        memory = Memory(*places.space(shape.space), places.at(0))
        addresses = self.operands.address(address)
        extent = runs = None
        if group.plan.guard is not Guard.COMPARED and group.base.is_affine:
            step = I64(group.base.stride) if group.step is None else group.step
            extent = extent_of(self.lanes, shape.size, group.base.width, step, addresses, on)
        if group.plan.guard is Guard.CACHE:
            runs = Runs(self.operands.address(address, group.base.width), group.base)
        sanitizing.access(index, shape, addresses, on, memory, extent, runs)

    def _lane_addresses(
        self, index: int, group: Group, made: Instruction, on: Value
    ) -> LaneAddresses:
        """Returns where a known access reaches."""
        shared = group.shape.space is Space.SHARED
        base = self.memory.places.space(Space.SHARED)[0] if shared else None
        pointers = begins = None
        if group.plan.move is Move.BY_STEP or group.accesses.is_laid_out:
            addresses = self.operands.address(made.operands[0 if group.shape.op == "store" else 1])
            pointers = self.operands.host_pointers(base, addresses)
        elif group.base.width == LANES // 2:
            begins = self.operands.host_pointers(base, self.group_addresses.begins(group, index))
        firsts, mask = self.group_addresses.places(group, index), self.ways.mask(group, on)
        stride, step = group.base.stride, group.step
        return LaneAddresses(group.shape, firsts, mask, stride, step, pointers, begins)
