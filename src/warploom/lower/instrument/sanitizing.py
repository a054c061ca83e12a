"""Emits calls that pass each access of a warp to the race detector (`detector`), in kernels
compiled for that.

An access that static analysis has found safe is not passed unless it faults. One that is safe if
shared memory is written, or if all threads use one barrier, tests that first:

    written = [low, high) of the access lies in the block's range of written bytes
    br written, access, rare;   rare: call @event.load.shared.b32x1...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.abi.environment import Slot
from warploom.detector.records import DetectorState
from warploom.ir.variant import Sanitizing
from warploom.isa.instruction import Space
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    Lanes,
    Value,
    vector,
)
from warploom.lower.frame.operands import Operands
from warploom.lower.instrument.access_event import AccessEvent, LaneRuns, SpaceMemory
from warploom.lower.instrument.detector_accesses import SPACES, emit_event
from warploom.lower.instrument.sanitizing_events import EventCode
from warploom.lower.instrument.uninitialised import (
    DetectorBlock,
    block_of,
    emit_range_unwritten,
    emit_range_written,
    emit_unwritten,
    is_known_written,
)
from warploom.shapes.vector_shape import VARYING, VectorShape

RANGE = (PTR, I64, I64, I64)
"""The parameters of functions for ranges of shared memory: environment, first byte, end, limit."""


class SanitizingCode:
    """Emits the calls that pass one warp's accesses to the detector; `events` emits all other
    events."""

    def __init__(self, operands: Operands, config: Sanitizing) -> None:
        """Creates the emitter of other events; `config` has the spaces to check, the instructions
        that analysis has found safe, and those that are safe under a condition.
        """
        self.operands, self.frame = operands, operands.frame
        self.synchronisation, self._config = config.synchronisation, config
        self.lanes, self.b = operands.lanes, operands.b
        self.events = EventCode(operands, config)

    @property
    def in_order(self) -> bool:
        """Returns true if accesses must be performed in program order, so that none may be
        deferred."""
        return self._config.in_order

    def must_check(self, index: int, access_type: AccessType) -> bool:
        """Returns true if the detector may have to check an access even if it does not fault: its
        space is checked, and its instruction is not one of `unchecked`, which analysis has found
        safe."""
        return access_type.space in self._config.accesses and index not in self._config.unchecked

    def do_access(self, event: AccessEvent, do_access: Callable[[Value], Value]) -> Value:
        """Emits an access, `do_access`, which reads a mask and returns the fault code (0: none),
        with its event before it; lanes that the detector does not permit are left out, and get
        zeros as results. Where the event may have been omitted (not `must_check`, or safe under a
        condition), an access that faults is repeated after its event. Returns the fault code."""
        # The event comes first, so that the detector sees the memory as it is before the access,
        # and can take lanes out of it.
        mask, index = event.mask, event.index
        if self.must_check(index, event.access_type):
            mask = self.filter(event)
            if index not in self._config.aligned | self._config.written:
                return do_access(mask)
            event = replace(event, mask=mask)

        # An access that was not passed to the detector may fault. It is retried with its event, so
        # that the detector can report the fault and exclude the lane.
        def retry() -> Value:
            """Emits the access again, after its event; returns its fault code."""
            return do_access(self.filter(event))

        fault = do_access(mask)
        return self._select_rarely(self.b.icmp_unsigned("!=", fault, I64(0)), retry, fault)

    def filter(self, event: AccessEvent) -> Value:
        """Emits the event of an access (`access`); returns the mask of lanes that may perform it.
        Before a load or an atomic, zeros are stored to its results in the data buffer, for lanes
        that may not."""
        self._zero_results(event.access_type, event.memory)
        return self.access(event)

    def _select_rarely(
        self, rare_condition: Value, emit: Callable[[], Value], usual: Value
    ) -> Value:
        """Emits a branch to the code of `emit`, taken if `rare_condition` (an i1) holds, and
        returns its value there, else `usual`, as a phi."""
        b, before = self.b, self.b.block
        rare, done = (b.append_basic_block(name) for name in ("rare", "done"))
        b.cbranch(rare_condition, rare, done).set_weights([1, 1 << 20])
        b.position_at_end(rare)
        rare_value, rare_end = emit(), b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(usual.type)
        result.add_incoming(usual, before)
        result.add_incoming(rare_value, rare_end)
        return result

    def access(self, event: AccessEvent) -> Value:
        """Emits the event of an access, whether or not `must_check`, which callers test; at run
        time it is skipped only where analysis has found the access safe under a condition that
        holds (`_violates_condition`). Returns the mask of lanes that may perform the access: the
        event's own mask where none is emitted or it is skipped at run time. Emits nothing for
        spaces that the detector does not know (kernel parameters)."""
        if event.access_type.space not in SPACES:
            return event.mask
        violation = self._violates_condition(event)
        emit = functools.partial(self._call_detector, event)
        return emit() if violation is None else self._select_rarely(violation, emit, event.mask)

    def _violates_condition(self, event: AccessEvent) -> Value | None:
        """Returns true (an i1) if an access that analysis has found safe under a condition violates
        it, so that the detector must check it: threads of a block have waited at different barriers
        (`aligned`), or it touches shared memory that may be unwritten (`written`). None for other
        accesses, which the detector always checks."""
        violations: list[Value] = []
        if event.index in self._config.aligned:
            state = self.frame.pointer(Slot.DETECTOR_AT)
            misaligned = self.b.load(self.lanes.slot(state, DetectorState.not_aligned), typ=I64)
            violations.append(self.b.icmp_signed("!=", misaligned, I64(0)))
        if event.index in self._config.written and event.access_type.space is Space.SHARED:
            violations.append(self._touches_unwritten(event))
        return functools.reduce(self.b.or_, violations) if violations else None

    def _touches_unwritten(self, event: AccessEvent) -> Value:
        """Returns true (an i1) if some lanes access shared memory that may be unwritten, or outside
        of the block's, or the detector has no state of the block. Tests the written range, then the
        access's extent, and lane by lane only if these do not decide, or there is no `extent`. A
        store marks its bytes as written instead of testing them, unless `in_order`."""
        b, environment = self.b, self.frame.environment
        access_type, extent, limit = event.access_type, event.extent, event.memory.limit
        writes = access_type.op == "store" and not self.in_order

        def check_lanes() -> Value:
            """Emits the call of `_lanes_function` for the event's lanes; returns its i1."""
            arguments = environment, event.addresses, self.lanes.bits(event.mask), limit
            return b.call(self._lanes_function(access_type.size, extent is None, writes), arguments)

        if extent is None:
            return check_lanes()

        def check_range() -> Value:
            """Returns true (an i1) if the range may be unwritten and so may some lane's bytes. A
            store of every byte marks the whole range."""
            function: Value = self._range_function()
            if writes:
                write = self._function("write", RANGE, emit_range_written)
                function = b.select(extent.is_dense, write, function)
            some = b.call(function, (environment, extent.low, extent.high, limit))
            return self._select_rarely(some, check_lanes, I1(0))

        is_written = is_known_written(self.lanes, self._detector_block, extent.low, extent.high)
        return self._select_rarely(b.not_(is_written), check_range, I1(0))

    @functools.cached_property
    def _detector_block(self) -> DetectorBlock:
        """Returns the location of the current thread block's state in the detector."""
        return block_of(self.frame.prologue, self.frame.environment)

    def _range_function(self) -> ir.Function:
        """Returns the function that checks a range of shared memory for unwritten bytes."""
        return self._function("unwritten", RANGE, emit_range_unwritten)

    def _lanes_function(self, size: int, ranged: bool, writes: bool) -> ir.Function:
        """Returns the function (`emit_unwritten`) that tests whether some lane's `size` bytes of
        shared memory are unwritten; if `ranged`, it first tests the whole range of all lanes. If
        `writes`, it marks the bytes as written instead."""
        of_range = self._range_function() if ranged else None
        emit = functools.partial(emit_unwritten, size=size, of_range=of_range, writes=writes)
        name = f"{'write' if writes else 'unwritten'}.{'any' if ranged else 'lanes'}.{size}"
        return self._function(name, [PTR, vector(I64), I32, I64], emit)

    def _function(
        self, name: str, arguments: Sequence[ir.Type], emit: Callable[[Lanes], None]
    ) -> ir.Function:
        """Returns a function of the module that tests memory and returns an i1; `emit` emits its
        body at the first use of its name. It is emitted out of line, as it is called rarely."""
        module = self.frame.module
        if name in module.globals:
            return module.globals[name]
        function = ir.Function(module, ir.FunctionType(I1, arguments), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        emit(Lanes(module, FoldingBuilder(function.append_basic_block("entry"))))
        return function

    def _call_detector(self, event: AccessEvent) -> Value:
        """Emits the call of the event function, which passes an access to the detector; returns the
        mask of lanes that may perform it."""
        runs, memory = event.runs or LaneRuns(event.addresses, VARYING), event.memory
        function = self._event_function(event.access_type, runs.layout)
        arguments = self.frame.environment, self.frame.warp, I64(event.index), runs.firsts
        memory_arguments = memory.data, memory.base, memory.limit
        return self.lanes.mask(
            self.b.call(function, [*arguments, self.lanes.bits(event.mask), *memory_arguments])
        )

    def _event_function(self, access_type: AccessType, runs: VectorShape) -> ir.Function:
        """Returns the function that passes accesses of a type, with addresses in the lane runs
        `runs`, to the detector; emits it at its first use in the module.
        """
        module = self.frame.module
        suffix = (
            f"{access_type.op}.{access_type.space.value}"
            f".{access_type.type.name}x{access_type.parts}"
        )
        name = f"event.{suffix}.{runs.width}x{runs.stride}"
        if name in module.globals:
            return module.globals[name]
        arguments = [PTR, I64, I64, ir.VectorType(I64, runs.width), I32, PTR, PTR, I64]
        function = ir.Function(module, ir.FunctionType(I32, arguments), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        lanes = Lanes(module, FoldingBuilder(function.append_basic_block("entry")))
        emit_event(lanes, access_type, runs)
        return function

    def _zero_results(self, access_type: AccessType, memory: SpaceMemory) -> None:
        """Stores zeros in the data buffer, from which lanes that may not perform a load or an
        atomic read its results; nothing for stores. The results of an atomic follow its two
        operands there."""
        size, at = (
            access_type.parts * access_type.part_bytes,
            {"load": 0, "atomic": 2}.get(access_type.op),
        )
        if at is not None:
            address = self.lanes.slot(memory.data, at * size, I8)
            self.b.store(ir.Constant(ir.ArrayType(I8, size), None), address)
