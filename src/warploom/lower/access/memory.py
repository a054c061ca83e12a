"""Emits memory instructions in their general form: calls of access functions
(`lower.access.access_functions`), one for each state space that a generic address may belong to.

    ld.u32 %r1, [%rd1]   ->   lanes in the shared window:  call @access.load.shared...
                              lanes in the local window:   call @access.load.local...
                              all others:                  call @access.load.global...

Accesses at uniform or affine addresses have faster code (`lower.access.affine_access`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.abi.environment import SPACE_CODES, Slot
from warploom.abi.pieces import frame_access
from warploom.core.types import ScalarType
from warploom.ir.access_plans import AccessPlan, general
from warploom.ir.kernel_accesses import elements
from warploom.isa.instruction import Address, Instruction, Operand, Space, Symbol
from warploom.llvm.lanes import (
    I8,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    splat_constant,
    vector,
)
from warploom.lower.access.access_functions import AccessFunctions
from warploom.lower.access.shared_functions import SharedFunctions
from warploom.lower.access.storage import AccessStorage
from warploom.lower.control.clusters import ClusterCode
from warploom.lower.frame.call_parameters import CallParameterCode
from warploom.lower.frame.faults import FaultExit
from warploom.lower.frame.operands import Operands
from warploom.lower.instrument.access_event import AccessEvent, SpaceMemory
from warploom.lower.instrument.instruments import Instruments
from warploom.program.accesses import space_of
from warploom.program.effects.clusters import accesses_cluster
from warploom.simt.address_windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS
from warploom.simt.clusters import MOST_BLOCKS

EachSpace = Callable[[Space, Value, Value], None]
"""Emits code for the lanes in one space: gets the space, their addresses in it, and their mask."""


class MemoryCode:
    """Emits the memory instructions of one warp function by calls of access functions, and passes
    each access to the kernel's `instruments`. `clusters` translates addresses in other blocks.
    `mask` has an instruction's executing lanes, `index` is its number."""

    def __init__(
        self,
        operands: Operands,
        instruments: Instruments,
        clusters: ClusterCode,
        *,
        shuffles: bool,
        shared: SharedFunctions | None = None,
    ) -> None:
        """Creates the access functions and their storage. `shuffles`: an order policy may choose
        among lanes; `shared`: access functions are shared ones, in baseline code.
        """
        self.operands, self.frame = operands, operands.frame
        self.lanes, self.b = operands.lanes, operands.b
        rules = self.frame.layout.rules
        self.functions = AccessFunctions(
            self.frame.module,
            rules,
            shuffles=shuffles,
            concurrent=self.frame.variant.concurrent,
            shared=shared,
        )
        self.storage = AccessStorage(self.frame)
        self.pieces, self.faults = CallParameterCode(operands), FaultExit(self.frame)
        self.instruments, self.clusters = instruments, clusters
        self.accesses = self.frame.warp_ir.accesses

    def plan(self, index: int, access_type: AccessType) -> AccessPlan:
        """Returns the plan of an access that is in no group, or whose group's guard has failed:
        that of its operation and space in the Warp IR (`WarpIR.plans`), but `general` of its type,
        as in access functions, in divergent code and in predicated blocks."""
        if self.frame.position.is_diverged:
            return general(access_type)
        return self.frame.warp_ir.plans[index, access_type.space]

    # ---- loads and stores -----------------------------------------------------------------------

    def load(self, index: int, instruction: Instruction, mask: Value) -> list[Value]:
        """Emits a load: of a parameter of an inlined call from the registers that hold it, of a
        kernel parameter, or of memory (`load_at`). Returns its values in 32 lanes, one for each
        destination, as integers of the access's width; inactive lanes may hold anything."""
        type, parts = (
            instruction.operation.modifiers.scalar(),
            len(elements(instruction.operands[0])),
        )
        frame_accesses = frame_access(self.frame.program, instruction)
        if frame_accesses is not None:
            return self.pieces.load(frame_accesses[0], type, parts)
        space = space_of(instruction)
        if space is Space.PARAM:
            return self.load_parameter(index, instruction.operands[1], type, parts, mask)
        access_type = self.accesses.access_type_of("load", index, instruction)
        return self.load_at(
            index, access_type, self.operands.address(instruction.operands[1]), mask
        )

    def load_at(
        self, index: int, access_type: AccessType, addresses: Value, mask: Value
    ) -> list[Value]:
        """Emits a load of an access type at `addresses`; if it is in the generic space, one for
        each space that some lanes are in. Returns the elements, part by part; inactive lanes may
        hold anything.
        """
        if access_type.space is not Space.GENERIC:
            return self.load_any(index, access_type, addresses, mask)
        type, parts = access_type.type, access_type.parts
        results = [self.frame.variable(vector(ir.IntType(type.bits))) for _ in range(parts)]

        def load_some(part: Space, offsets: Value, active: Value) -> None:
            """Emits the load of the lanes `active` in one space, and blends it into the results."""
            values = self.load_any(index, replace(access_type, space=part), offsets, active)
            for result, value in zip(results, values, strict=True):
                # Lanes of other spaces keep the value that their own load gave.
                old = self.b.load(result, typ=value.type)
                self.b.store(self.lanes.blend(active, value, old), result)

        self.by_space(addresses, mask, load_some)
        return [self.b.load(r, typ=vector(ir.IntType(type.bits))) for r in results]

    def store(self, index: int, instruction: Instruction, mask: Value) -> None:
        """Emits a store: of a parameter of an inlined call to the registers that hold it, or to
        memory (`store_at`)."""
        type = instruction.operation.modifiers.scalar()
        sources = elements(instruction.operands[1])
        values = [self.operands.bits(source, type) for source in sources]
        frame_accesses = frame_access(self.frame.program, instruction)
        if frame_accesses is not None:
            self.pieces.store(frame_accesses[0], type, values, mask)
            return
        access_type = self.accesses.access_type_of("store", index, instruction)
        self.store_at(
            index, access_type, self.operands.address(instruction.operands[0]), values, mask
        )

    def store_at(
        self,
        index: int,
        access_type: AccessType,
        addresses: Value,
        values: list[Value],
        mask: Value,
    ) -> None:
        """Emits a store of an access type at `addresses`; if it is in the generic space, one
        for each space that some lanes are in."""
        if access_type.space is not Space.GENERIC:
            self.store_any(index, access_type, addresses, values, mask)
            return

        def store_some(part: Space, offsets: Value, active: Value) -> None:
            """Emits the store of the lanes `active` in one space."""
            self.store_any(index, replace(access_type, space=part), offsets, values, active)

        self.by_space(addresses, mask, store_some)

    def load_any(
        self, index: int, access_type: AccessType, addresses: Value, mask: Value
    ) -> list[Value]:
        """Emits the call of the access function of a load, and returns its elements from the data
        buffer, part by part; those of inactive lanes are undefined. The access type's space is not
        generic."""
        self.call(index, access_type, self.functions.plain(access_type), addresses, mask)
        at = [
            self.storage.at(number * access_type.part_bytes) for number in range(access_type.parts)
        ]
        return [self.b.load(a, typ=vector(access_type.element), align=16) for a in at]

    def store_any(
        self,
        index: int,
        access_type: AccessType,
        addresses: Value,
        values: list[Value],
        mask: Value,
    ) -> None:
        """Writes the elements to the data buffer and emits the call of the access function of a
        store. The access type's space is not generic."""
        for number, value in enumerate(values):
            self.b.store(value, self.storage.at(number * access_type.part_bytes), align=16)
        self.call(index, access_type, self.functions.plain(access_type), addresses, mask)

    # ---- any other access -----------------------------------------------------------------------

    def call(
        self, index: int, access_type: AccessType, function: Value, addresses: Value, mask: Value
    ) -> None:
        """Emits the call of `function`, the access function of an access type in one space, for the
        lanes of `mask` and their `addresses`. Data pass through the data buffer (`storage.at`): a
        caller stores them there before, or loads them after.

        The instruments' recordings come before the call; the exit if it returns a fault, and the
        instruments' observations, after it. In sanitized kernels the race detector leaves lanes
        out. An access that may be to another block's shared memory gets addresses relative to the
        cluster's first block, and the bounds of the whole cluster; an address in no running block
        exits before the call."""
        event = self.event(index, access_type, addresses, mask)
        detector, in_cluster = self.instruments.detector, self._is_in_cluster(index, access_type)
        if in_cluster:
            if detector is not None:
                event = replace(event, mask=detector.filter(event))
            event = self._in_cluster(event)
        self.instruments.before(event)

        def do_access(lanes: Value) -> Value:
            """Emits the call for some lanes; returns its fault code."""
            arguments = [
                self.frame.environment,
                self.storage.record_address(index, access_type.space),
                self.storage.cache(index, access_type.space),
                event.addresses,
                self.lanes.bits(lanes),
                event.memory.data,
                event.memory.base,
                event.memory.limit,
            ]
            return self.b.call(function, arguments)

        if detector is not None and not in_cluster:
            fault = detector.do_access(event, do_access)
        else:
            fault = do_access(event.mask)
        self.faults.leave(I64(index), fault, I64(SPACE_CODES[access_type.space]))
        self.instruments.after(event)

    def event(
        self, index: int, access_type: AccessType, addresses: Value, mask: Value
    ) -> AccessEvent:
        """Returns the description of an access by the lanes of `mask` (instruction, addresses, data
        buffer) to the running warp's own memory of the space, that instruments receive."""
        memory = SpaceMemory(*self.storage.space(access_type.space), self.storage.at(0))
        return AccessEvent(index, access_type, addresses, mask, memory)

    def _in_cluster(self, event: AccessEvent) -> AccessEvent:
        """Returns an access to shared memory, with addresses relative to the start of the cluster's
        first block's, and with the bytes of MOST_BLOCKS blocks from there as bounds; emits the exit
        with a fault at an invalid address (`ClusterCode.offsets_in_cluster`)."""
        addresses = self.clusters.offsets_in_cluster(
            event.index, event.addresses, event.mask, event.access_type.size
        )
        base = self.b.inttoptr(self.clusters.start(), PTR)
        limit = self.b.mul(self.frame.slot(Slot.SHARED_STRIDE), I64(MOST_BLOCKS))
        memory = SpaceMemory(base, limit, event.memory.data)
        return replace(event, addresses=addresses, memory=memory)

    def _is_in_cluster(self, index: int, access_type: AccessType) -> bool:
        """Returns true if an access is to shared memory and may be to another block of the cluster:
        the launch's clusters may have several blocks, and the instruction can address them
        (`accesses_cluster`)."""
        if not self.clusters.several or access_type.space is not Space.SHARED:
            return False
        return accesses_cluster(self.frame.program.instructions[index])

    def by_space(self, addresses: Value, mask: Value, emit: EachSpace) -> None:
        """Calls the function `by_space` of this module: splits lanes by the space of their generic
        addresses, and calls `emit` for global, shared and local memory."""
        by_space(self.lanes, addresses, mask, emit)

    # ---- parameters -----------------------------------------------------------------------------

    def load_parameter(
        self,
        index: int,
        address: Operand,
        type: ScalarType,
        parts: int,
        mask: Value,
        width: int = LANES,
    ) -> list[Value]:
        """Returns `parts` elements of a kernel parameter, in `width` lanes: scalar loads in the
        prologue and splats if the address is a parameter's name with a constant offset, else (in 32
        lanes, whatever `width` is) by the access function, with each lane's address."""
        assert isinstance(address, Address)
        element = ir.IntType(type.bits)
        if isinstance(address.base, Symbol):
            values = [self.parameter(address, type, number) for number in range(parts)]
            return [self.frame.prologue.splat(value, width) for value in values]
        access_type = AccessType("load", Space.PARAM, type, parts)
        self.call(
            index,
            access_type,
            self.functions.plain(access_type),
            self.operands.address(address),
            mask,
        )
        return [
            self.b.load(self.storage.at(k * access_type.part_bytes), typ=vector(element), align=16)
            for k in range(parts)
        ]

    def parameter(self, address: Address, type: ScalarType, number: int) -> Value:
        """Returns element `number` of the kernel parameter that an address names, as a scalar
        loaded in the prologue; the address's constant offset is added."""
        assert isinstance(address.base, Symbol)
        offset = self.frame.program.slots[address.base.name].offset
        offset += address.base.offset + address.offset + number * type.bytes
        p = self.frame.prologue.b
        at = p.gep(self.storage.space(Space.PARAM)[0], [I64(offset)], source_etype=I8)
        return p.load(at, typ=ir.IntType(type.bits), align=1)


def by_space(lanes: Lanes, addresses: Value, mask: Value, emit: EachSpace) -> None:
    """Splits lanes by the state space of their generic addresses (shared and local are windows, all
    else is global), and calls `emit` for global, shared and local memory in turn, in a branch that
    is taken if some lane of `mask` is in the space. `emit` gets the space, offsets in its window
    (global addresses as they are), and the mask of its lanes."""
    b = lanes.b
    window = b.lshr(addresses, splat_constant(WINDOW_BITS, I64))
    inside = {
        space: b.and_(
            mask,
            b.icmp_unsigned("==", window, splat_constant(start >> WINDOW_BITS, I64)),
        )
        for space, start in ((Space.SHARED, SHARED_WINDOW), (Space.LOCAL, LOCAL_WINDOW))
    }
    elsewhere = b.and_(mask, b.not_(b.or_(*inside.values())))
    offsets = b.and_(addresses, splat_constant((1 << WINDOW_BITS) - 1, I64))
    for space, active in ((Space.GLOBAL, elsewhere), *inside.items()):
        with b.if_then(lanes.any(active)):
            emit(space, addresses if space is Space.GLOBAL else offsets, active)
