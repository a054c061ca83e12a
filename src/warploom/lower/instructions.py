"""Emits instructions that do not end a basic block: dispatches each to the emitter of its kind, and
writes its results under the mask that the copy of the block needs.

Instructions that compute are lowered from their terms (`lower.terms`), in one value for each run of
lanes if all results are uniform or affine (`lower.operations.affine`). Loads, stores and atomics
are emitted by `lower.access`, matrix, tensor and texture instructions by `lower.tensor`,
instructions of a whole warp by `lower.operations`. Branches and barriers are emitted by
`lower.control`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import TypeVar

from warploom.abi.nans import is_copy
from warploom.core.types import B32, PRED, U64, ScalarType, unsigned
from warploom.ir.kernel_accesses import elements
from warploom.isa.instruction import Instruction, Operand, Pair, Register, Symbol, flatten_operands
from warploom.isa.kinds import Effect, Needs, OpKind
from warploom.isa.spec import Unit
from warploom.llvm.lanes import LANES, Value
from warploom.lower.access.affine_access import AffineAccess
from warploom.lower.access.atomics import AtomicCode
from warploom.lower.access.memory import MemoryCode
from warploom.lower.control.barriers import BarrierCode
from warploom.lower.control.control import ControlFlow
from warploom.lower.frame.blocks import Copy
from warploom.lower.instrument.guards import Guards
from warploom.lower.operations.affine import AffineCode
from warploom.lower.operations.host_calls import HostCallCode
from warploom.lower.operations.moves import MoveCode, Result
from warploom.lower.operations.preconditions import PreconditionCode
from warploom.lower.operations.prefix_masks import PrefixMaskCode
from warploom.lower.operations.register_pool import emit_register_count
from warploom.lower.operations.routines import RoutineCode
from warploom.lower.operations.shuffle import ShuffleCode
from warploom.lower.operations.term_code import TermCode
from warploom.lower.operations.warp_votes import WarpVoteCode
from warploom.lower.tensor.copies import CopyCode
from warploom.lower.tensor.matrix import MatrixCode
from warploom.lower.tensor.tensor_memory import TensorMemoryCode
from warploom.lower.tensor.tensors import TensorCode, TensorWaitCode
from warploom.lower.tensor.texture import TextureCode
from warploom.program.effects.completions import completion
from warploom.program.effects.tensor_waits import late_copy
from warploom.program.services import service_of
from warploom.shapes.vector_shape import UNIFORM


class InstructionCode:
    """Emits single instructions at the builder's position; holds the emitters of all kinds. `index`
    is an instruction's number in the program, a result is (destination, value, type).

    Methods that emit one kind of instruction all have the parameters (`index`, `instruction`,
    `on`), by which the tables WITH_RESULTS and WITHOUT_RESULTS call them; `on` is the mask of
    executing lanes. Many use only some of them."""

    def __init__(
        self, control: ControlFlow, barriers: BarrierCode, memory: MemoryCode, guards: Guards
    ) -> None:
        """Creates the emitters of all kinds of instructions, which share the frame and its
        operands; some allocate stack slots at the function's entry. Under an order policy
        (`memory.functions.shuffles`) they are created with `delays` for loads of tensor memory,
        which may complete late, and, if the program needs a completion queue, for asynchronous
        copies."""
        self.control, self.barriers, self.memory, self.guards = control, barriers, memory, guards
        self.frame, self.b = control.frame, control.b
        self.operands = memory.operands
        self.atomics = AtomicCode(memory)
        self.preconditions = PreconditionCode(self.operands)
        self.routines = RoutineCode(self.operands)
        self.services = HostCallCode(self.operands)
        self.matrix = MatrixCode(memory)
        self.texture = TextureCode(memory)
        self.tensors = TensorCode(memory)
        self.tensor_memory = TensorMemoryCode(self.tensors, delays=memory.functions.shuffles)
        delays = memory.functions.shuffles and Needs.COMPLETION_QUEUE in memory.frame.program.needs
        self.tensor_waits = TensorWaitCode(self.tensors, delays=delays)
        self.copies = CopyCode(self.atomics, self.tensor_waits)
        self.warpwide = WarpVoteCode(self.operands)
        self.shuffles = ShuffleCode(self.operands)
        self.moves = MoveCode(self.operands)
        self.shaped = AffineCode(self.operands)
        self.terms = TermCode(self.operands, self.shaped)
        self.leading = PrefixMaskCode(self.operands)
        self.affine_access = AffineAccess(memory)

    def emit(
        self, copy: Copy, index: int, instruction: Instruction, guard: Value | None, on: Value
    ) -> None:
        """Emits an instruction that does not end a basic block. First emits the race detector's
        event (if it observes synchronization), checks of operands, and waits for copies; for a
        fence also one of the host, if other threads of the host run at the same time
        (`KernelVariant.concurrent`). That is all of an instruction for which `_has_no_code` holds.
        Then emits an instruction without results (`_emit_without_results`), or the results and
        their count of routines called (`operations.routines`). Results have one value for each lane
        run if all are uniform or affine, else 32 lanes, and are written under the mask that the
        block's copy (`copy`) needs. An atomic with an mbarrier (`red.async`) also signals that, and
        may complete late.

        `guard` is the mask of its guard, None without one; `on` are the executing lanes: the active
        mask and the guard.
        """
        if self.memory.instruments.detector and self.memory.instruments.detector.synchronisation:
            self.memory.instruments.detector.events.instruction(index, instruction, on)
        self.preconditions.check(index, instruction, on)
        self.tensor_waits.emit(instruction, on)
        self.tensor_memory.wait(instruction, on)
        # Blocks that run on one thread of the host see its accesses in program order, which is more
        # than a fence demands; only workers that run at the same time need the host's fence.
        if instruction.operation.kind is OpKind.FENCE and self.memory.frame.variant.concurrent:
            self.memory.b.fence("seq_cst")
        if _has_no_code(instruction) or self._emit_without_results(index, instruction, on):
            return
        if self._emit_affine(index, instruction, on):
            self.routines.count(index, instruction, on)
            return
        with self.tensor_waits.deferring(
            late_copy(instruction), self.tensor_waits.lane_operands(instruction), on
        ):
            self.write(copy, guard, self._results(index, instruction, on))
            if instruction.operation.spec.unit is Unit.ATOMIC:
                self._signal_mbarrier(index, instruction, on)
        self.routines.count(index, instruction, on)

    def write(self, copy: Copy, guard: Value | None, results: Iterable[Result]) -> None:
        """Writes the results of an instruction to their registers, under the mask that the copy of
        its block needs (`_Writer`)."""
        writer = _Writer(self, copy, guard)
        for operand, value, type in results:
            writer(operand, value, type)

    def _emit_without_results(self, index: int, instruction: Instruction, on: Value) -> bool:
        """Emits an instruction without results, and returns True: a store (`st.async` also signals
        its mbarrier), a copy, a tensor operation or `setmaxnreg`. Returns False, and emits nothing,
        for another kind, such as a `cp` that is executed as an atomic."""
        emit = WITHOUT_RESULTS.get(instruction.operation.kind)
        if emit is None:
            return False
        emit(self, index, instruction, on)
        return True

    def store(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits a store, or a `st.bulk`, which zeroes bytes. An `st.async` may complete late, and
        signals its mbarrier."""
        fills = instruction.operation.kind is OpKind.FILL
        store = self.copies.fill if fills else self.affine_access.store
        with self.tensor_waits.deferring(
            late_copy(instruction), self.tensor_waits.lane_operands(instruction), on
        ):
            store(index, instruction, on)
            # After the store: a thread that finds the phase complete reads the bytes.
            self._signal_mbarrier(index, instruction, on)

    def _results(self, index: int, instruction: Instruction, on: Value) -> Sequence[Result]:
        """Emits an instruction and returns its results. All are computed before any is written, as
        a destination may also be a source.
        """
        return WITH_RESULTS[instruction.operation.kind](self, index, instruction, on)

    def call(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a call of the host, and the exit with a fault if it fails; returns its results, as
        .u64."""
        return [(target, v, U64) for target, v in self.services.call(index, instruction, on)]

    def shuffle(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a `shfl`; returns its word, and, if it has that destination, the predicate that is
        true where the source lane is in range."""
        value, inside = self.shuffles.shuffle(instruction, on)
        target, predicate = pair(instruction.operands[0])
        shuffled: list[Result] = [(target, value, B32)]
        return shuffled if predicate is None else [*shuffled, (predicate, inside, PRED)]

    def vote(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a `vote`, `match`, `redux` or `elect`; returns its results."""
        results = self.warpwide.grouped(instruction, on)
        targets = flatten_operands(instruction.operands[:1])
        return [(t, *value) for t, value in zip(targets, results, strict=False)]

    def convert_address(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a `cvta` in all lanes; returns its result."""
        type, value = self.moves.convert_address(instruction, LANES)
        return [(instruction.operands[0], value, type)]

    def block_rank(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a `getctarank` in all lanes: returns one result, the rank in the cluster of the
        block that each lane's shared address belongs to, the own block's for an address that
        belongs to none."""
        address = self.operands.read(instruction.operands[1], U64)
        return [(instruction.operands[0], self.memory.clusters.rank_of(address), B32)]

    def move(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a `mov`; returns its results."""
        emit = self.terms.compute if is_copy(instruction) else self.moves.move
        return emit(instruction)

    def compare(self, instruction: Instruction) -> list[Result]:
        """Emits a `setp` as a prefix mask (`PrefixMaskCode`), if in convergent code one 32-bit
        integer rises by 1 from lane to lane, the other is uniform, and there is no Boolean operand.
        All others are emitted by their terms, which a prefix mask also falls back to at run time if
        a lane's value wraps around. Returns its predicate, and for a second destination that of the
        opposite comparison."""
        holds = self.leading.compare(instruction, lambda: self.terms.compute(instruction)[0][1])
        if holds is None:
            return self.terms.compute(instruction)
        targets = flatten_operands(instruction.operands[:1])
        return [(t, v, PRED) for t, v in zip(targets, (holds, self.b.not_(holds)), strict=False)]

    def load(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a load, inline if it belongs to an access group, else as a call; returns its
        results.
        """
        type = instruction.operation.modifiers.scalar()
        values = self.affine_access.load(index, instruction, on)
        if values is None:
            values = self.memory.load(index, instruction, on)
        return [
            (t, v, type) for t, v in zip(elements(instruction.operands[0]), values, strict=True)
        ]

    def _emit_affine(self, index: int, instruction: Instruction, on: Value) -> bool:
        """Emits an instruction whose results are all uniform or affine, and returns True. If a run
        wraps around at run time, lanes exit to the divergent copy at this instruction. Returns
        False, and emits nothing, for any other instruction."""
        if self.shaped.results(instruction) is None:
            return False
        leave = self.affine_access.group_guards.exit_fast_path
        self.emit_affine(
            index,
            instruction,
            on,
            lambda wraps: self.control.divergence.diverge_within(index, wraps, leave),
        )
        return True

    def emit_affine(
        self, index: int, instruction: Instruction, on: Value, on_wrap: Callable[[Value], None]
    ) -> None:
        """Emits an instruction whose results are all uniform or affine, in one value for each lane
        run, and writes them where its guard holds. It is a load of equal addresses in each run, a
        `cvta`, a `mov` of an address or special register, or an instruction computed by its terms.
        `on_wrap` emits the code for an i1 that is true if a run wraps around, so that a result is
        not affine."""
        guard, kind = self.guards.uniform_value(instruction), instruction.operation.kind
        results: list[Result] = []
        if kind is OpKind.LOAD:
            values = self.affine_access.load_uniform_runs(index, instruction, on)
            type = instruction.operation.modifiers.scalar()
            results = [
                (t, v, type) for t, v in zip(elements(instruction.operands[0]), values, strict=True)
            ]
        elif kind is OpKind.CONVERT_ADDRESS:
            type, value = self.moves.convert_address(instruction, self.shaped.width(instruction))
            results = [(instruction.operands[0], value, type)]
        elif kind is OpKind.MOVE and not is_copy(instruction):
            type = instruction.operation.modifiers.scalar()
            if isinstance(instruction.operands[1], Symbol):
                type = unsigned(type.bits)
            value = self.operands.read(
                instruction.operands[1], type, width=self.shaped.width(instruction)
            )
            results = [(instruction.operands[0], value, type)]
        else:
            results = self.terms.compute_by_shape(instruction, on_wrap)
        shapes = self.shaped.results(instruction) or {}
        for target, value, type in results:
            shape = shapes.get(target, UNIFORM) if isinstance(target, Register) else UNIFORM
            self.shaped.write(target, value, type, guard, shape)

    def _signal_mbarrier(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits the arrival (`complete_tx`) of the bytes of an `st.async` or `red.async` at the
        mbarrier that it names, in a recorded launch as a completion; nothing for other
        instructions."""
        arrival = completion(instruction)
        if arrival is None:
            return
        recording = self.memory.instruments.copies
        with nullcontext() if recording is None else recording.completing():
            self.atomics.emit(index, arrival, on)


def _has_no_code(instruction: Instruction) -> bool:
    """Returns whether no code is emitted for an instruction: it has no effect, is a `call` that is
    no host call, or is `bar.warp.sync`, whose wait is emitted with its basic block
    (`lower.control.sync`)."""
    operation = instruction.operation
    if operation.kind is OpKind.CALL:
        return service_of(instruction) is None
    return operation.kind is OpKind.WARP_BARRIER or operation.has(Effect.ISSUE_ONLY)


class _Writer:
    """Writes the results of one instruction under the mask that it needs.

    In convergent copies that is the guard alone: inactive lanes have exited or have no thread, so
    that their values are not read again. In the divergent copy, inactive lanes may read a register
    later, so it is blended under the active mask; but a register that no basic block reads before
    it writes it is not live in them.
    """

    def __init__(self, code: InstructionCode, copy: Copy, guard: Value | None) -> None:
        self.code, self.copy, self.guard = code, copy, guard

    def __call__(self, operand: Operand, value: Value, type: ScalarType) -> None:
        """Writes one result to an operand."""
        self.code.operands.write(operand, value, type, self._mask(operand))

    def _mask(self, operand: Operand) -> Value | None:
        """Returns the mask under which a register is written, None for all lanes: in the divergent
        copy the active mask and the guard, for a register that basic blocks share; else the guard.
        """
        frame = self.code.frame
        is_shared = isinstance(operand, Register) and operand in frame.shared_over_blocks
        if self.copy is not Copy.DIVERGENT or not is_shared:
            return self.guard
        return (
            frame.active.mask()
            if self.guard is None
            else self.code.b.and_(frame.active.mask(), self.guard)
        )


def pair(operand: Operand) -> tuple[Operand, Operand | None]:
    """Returns both destinations of a pair `d|p`, or an operand and None."""
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand, None


T = TypeVar("T")
_Emit = Callable[[InstructionCode, int, Instruction, Value], T]
"""A function that emits an instruction: its arguments are the emitters, the number of the
instruction, the instruction, and the executing lanes."""


def _of_effect(effect: Effect, emit: _Emit[T]) -> dict[OpKind, _Emit[T]]:
    """Returns a table that maps each kind of operation that has an effect to `emit`."""
    return {kind: emit for kind in OpKind if kind.has(effect)}


def _of_kinds(emit: _Emit[T], *kinds: OpKind) -> dict[OpKind, _Emit[T]]:
    """Returns a table that maps each of some kinds of operations to `emit`."""
    return dict.fromkeys(kinds, emit)


WITHOUT_RESULTS: dict[OpKind, _Emit[None]] = {
    **_of_kinds(InstructionCode.store, OpKind.STORE, OpKind.FILL, OpKind.ASYNC_STORE),
    **_of_kinds(
        lambda code, index, instruction, on: code.copies.copy(index, instruction, on),
        OpKind.COPY,
        OpKind.BULK_COPY,
    ),
    **_of_effect(
        Effect.USES_TMA,
        lambda code, index, instruction, on: code.tensors.emit(index, instruction, on),
    ),
    OpKind.REGISTER_COUNT: lambda code, index, instruction, on: emit_register_count(
        code.frame, index, instruction, on
    ),
}
"""The functions that emit the instructions without results, by kind. All have the parameters
(`code`, `index`, `instruction`, `on`), and many use only some of them (`InstructionCode`)."""

WITH_RESULTS: dict[OpKind, _Emit[Sequence[Result]]] = {
    **_of_kinds(
        lambda code, index, instruction, on: code.atomics.emit(index, instruction, on),
        *(OpKind.ATOMIC, OpKind.REDUCTION, OpKind.ASYNC_REDUCTION, OpKind.COPY_ARRIVE),
        *(OpKind.MBARRIER, OpKind.MBARRIER_INIT, OpKind.MBARRIER_WAIT),
    ),
    **_of_kinds(
        lambda code, index, instruction, on: code.matrix.emit(index, instruction, on),
        *(OpKind.MATRIX_PRODUCT, OpKind.WARP_MATRIX_PRODUCT, OpKind.GROUP_PRODUCT),
        *(OpKind.WARP_MATRIX_LOAD, OpKind.WARP_MATRIX_STORE),
        *(OpKind.MATRIX_LOAD, OpKind.MATRIX_STORE, OpKind.MATRIX_TRANSPOSE),
        *(OpKind.GROUP_COMMIT, OpKind.GROUP_WAIT),
    ),
    **_of_effect(
        Effect.USES_TENSOR_MEMORY,
        lambda code, index, instruction, on: code.tensor_memory.emit(index, instruction, on),
    ),
    **_of_kinds(
        lambda code, index, instruction, on: code.texture.emit(index, instruction, on),
        *(OpKind.TEXTURE_LOAD, OpKind.TEXTURE_GATHER, OpKind.TEXTURE_QUERY),
        *(OpKind.SURFACE_LOAD, OpKind.SURFACE_STORE, OpKind.SURFACE_REDUCTION),
        OpKind.SURFACE_QUERY,
    ),
    **_of_kinds(
        InstructionCode.vote,
        *(OpKind.VOTE, OpKind.MATCH, OpKind.WARP_REDUCTION, OpKind.ELECT),
    ),
    **_of_kinds(
        lambda code, _, instruction, on: code.terms.compute(instruction),
        *(OpKind.COMPUTE, OpKind.MAP_ADDRESS),
    ),
    OpKind.BLOCK_BARRIER: lambda code, _, instruction, on: [
        (instruction.operands[0], *code.barriers.count_result(instruction))
    ],
    OpKind.LOAD: InstructionCode.load,
    OpKind.CALL: InstructionCode.call,
    OpKind.SHUFFLE: InstructionCode.shuffle,
    OpKind.ACTIVE_MASK: lambda code, _, instruction, on: [
        (instruction.operands[0], code.warpwide.active_lanes(on), B32)
    ],
    OpKind.CONVERT_ADDRESS: InstructionCode.convert_address,
    OpKind.TEST_PARAMETER: lambda code, _, instruction, on: [
        code.moves.test_parameter_window(instruction)
    ],
    OpKind.MOVE: InstructionCode.move,
    OpKind.BLOCK_RANK: InstructionCode.block_rank,
    OpKind.COMPARE: lambda code, _, instruction, on: code.compare(instruction),
}
"""The functions that emit the instructions with results, or that are emitted like these, by kind.
They have the parameters of those in WITHOUT_RESULTS."""
