"""The instructions of a warp that compute, move, load, store or act as a warp: each gives values,
which are written under the masks that it needs.

Instructions that compute become the vector code of their terms; the rest is for the modules that
know memory, lanes and moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial

from warploom.abi.nans import is_copy
from warploom.analysis.shape_transfer import Reading
from warploom.asynchronous.tensors.requests import BARRIER_ROW, GLOBAL_ROW, SHARED_ROW, SIZE_ROW
from warploom.core.types import B32, PRED, U64, ScalarType, unsigned
from warploom.ir.kernel_accesses import elements
from warploom.isa.effectless import is_effectless
from warploom.isa.ops.tcgen05 import is_tensor_memory_operation
from warploom.isa.ops.tensors import is_tensor_operation
from warploom.isa.spec import Unit
from warploom.isa.terms import Term
from warploom.llvm.lanes import I64, LANES, Value, splat_constant, vector
from warploom.lower.access.affine_access import AffineAccess
from warploom.lower.access.atomics import AtomicCode
from warploom.lower.access.memory import MemoryCode
from warploom.lower.control.barriers import BarrierCode
from warploom.lower.control.control import ControlFlow
from warploom.lower.frame.blocks import Copy
from warploom.lower.instrument.guards import Guards
from warploom.lower.operations.affine import ShapedCode
from warploom.lower.operations.host_calls import ServiceCode
from warploom.lower.operations.moves import MoveCode, Result
from warploom.lower.operations.preconditions import PreconditionCode
from warploom.lower.operations.prefix_masks import LeadingCode
from warploom.lower.operations.register_pool import emit_register_count
from warploom.lower.operations.routines import RoutineCode
from warploom.lower.operations.shuffle import ShuffleCode
from warploom.lower.operations.warp_votes import WarpwideCode
from warploom.lower.tensor.copies import CopyCode
from warploom.lower.tensor.matrix import MatrixCode
from warploom.lower.tensor.tensor_memory import TensorMemoryCode
from warploom.lower.tensor.tensors import TensorCode, TensorWaitCode
from warploom.lower.tensor.texture import TextureCode
from warploom.lower.terms.terms import ignores_nan_bits
from warploom.program.accesses import bytes_of, is_bulk_fill
from warploom.program.effects.completions import completion
from warploom.program.effects.tensor_waits import completes_later, late_copy
from warploom.program.services import service_of
from warploom.ptx.ir import Instruction, Operand, Pair, Register, Symbol, spread


class InstructionCode:
    """Emits single instructions at the place where code goes now."""

    def __init__(
        self,
        control: ControlFlow,
        barriers: BarrierCode,
        memory: MemoryCode,
        guards: Guards,
        reading: Reading,
    ) -> None:
        self.control, self.barriers, self.memory, self.guards = control, barriers, memory, guards
        self.frame, self.b = control.frame, control.b
        self.operands = memory.operands
        self.atomics = AtomicCode(memory)
        self.preconditions = PreconditionCode(self.operands)
        self.routines = RoutineCode(self.operands)
        self.services = ServiceCode(self.operands)
        self.matrix = MatrixCode(memory)
        self.texture = TextureCode(memory)
        self.tensors = TensorCode(memory)
        self.tensor_memory = TensorMemoryCode(self.tensors, delays=memory.functions.shuffles)
        delays = memory.functions.shuffles and completes_later(memory.frame.program)
        self.tensor_waits = TensorWaitCode(self.tensors, delays=delays)
        self.copies = CopyCode(self.atomics, self.tensor_waits)
        self.warpwide = WarpwideCode(self.operands)
        self.shuffles = ShuffleCode(self.operands)
        self.moves = MoveCode(self.operands)
        self.shaped = ShapedCode(self.operands, reading)
        self.leading = LeadingCode(self.operands, reading)
        self.affine_access = AffineAccess(memory, reading)

    def emit(
        self, copy: Copy, index: int, made: Instruction, guard: Value | None, on: Value
    ) -> None:
        """Emit an instruction that does not end a block; `on` are the lanes that execute it, by its
        guard, if it has one."""
        if self.memory.sanitizing and self.memory.sanitizing.synchronisation:
            self.memory.sanitizing.events.instruction(index, made, on)
        self.preconditions.check(index, made, on)
        self.tensor_waits.emit(made, on)
        self.tensor_memory.wait(made, on)
        if _has_no_code(made) or self._stores(index, made, on):
            return
        if self._by_shape(index, made, on):
            self.routines.count(index, made, on)
            return
        with self.tensor_waits.deferring(late_copy(made), self._sent(made), on):
            self.write(copy, guard, self._results(index, made, on))
            if made.operation.spec.unit is Unit.ATOMIC:
                self._complete(index, made, on)
        self.routines.count(index, made, on)

    def write(self, copy: Copy, guard: Value | None, results: Iterable[Result]) -> None:
        """Write what an instruction gives."""
        writer = _Writer(self, copy, guard)
        for operand, value, type in results:
            writer(operand, value, type)

    def _stores(self, index: int, made: Instruction, on: Value) -> bool:
        """Emit a store or a copy; False where the instruction is none."""
        name = made.operation.name
        if name == "st":
            store = self.copies.fill if is_bulk_fill(made.operation) else self.affine_access.store
            with self.tensor_waits.deferring(late_copy(made), self._sent(made), on):
                store(index, made, on)
                self._complete(index, made, on)
        elif is_tensor_operation(made.operation):
            self.tensors.emit(index, made, on)
        elif name == "setmaxnreg":
            emit_register_count(self.memory.frame, index, made, on)
        elif name == "cp" and made.operation.spec.unit is not Unit.ATOMIC:
            self.copies.copy(index, made, on)
        else:
            return False
        return True

    def _results(self, index: int, made: Instruction, on: Value) -> Sequence[Result]:
        """Returns what an instruction gives which destination; all is there before any is
        written."""
        match made.operation.spec.unit:
            case Unit.ATOMIC:
                return self.atomics.emit(index, made, on)
            case Unit.MATRIX:
                code = (
                    self.tensor_memory
                    if is_tensor_memory_operation(made.operation)
                    else self.matrix
                )
                return code.emit(index, made, on)
            case Unit.TEXTURE:
                return self.texture.emit(index, made, on)
            case Unit.BARRIER:
                return [(made.operands[0], *self.barriers.count_result(made))]
            case _:
                return self._named_results(index, made, on)

    def _named_results(self, index: int, made: Instruction, on: Value) -> Sequence[Result]:
        """Return the same for instructions that go by their names."""
        match made.operation.name:
            case "ld" | "ldu":
                return self._loaded(index, made, on)
            case "call":
                return [(target, v, U64) for target, v in self.services.call(index, made, on)]
            case "shfl":
                value, inside = self.shuffles.shuffle(made, on)
                first, second = pair(made.operands[0])
                shuffled = [(first, value, B32)]
                return shuffled if second is None else [*shuffled, (second, inside, PRED)]
            case "vote" | "match" | "redux" | "elect":
                found = self.warpwide.grouped(made, on)
                targets = spread(made.operands[:1])
                return [(t, *given) for t, given in zip(targets, found, strict=False)]
            case "activemask":
                return [(made.operands[0], self.warpwide.active_lanes(on), B32)]
            case "cvta":
                type, value = self.moves.converted_address(made, LANES)
                return [(made.operands[0], value, type)]
            case "isspacep" if made.operation.spec.semantics is None:
                return [self.moves.is_parameter(made)]
            case "mov" if not is_copy(made):
                return self.moves.moved(made)
            case "getctarank":
                address = self.operands.read(made.operands[1], U64)
                return [(made.operands[0], self.memory.clusters.rank_of(address), B32)]
            case "setp":
                return self._compared(made)
            case _:
                return self._computed(made)

    def _compared(self, made: Instruction) -> list[Result]:
        """Returns what a comparison gives: whether it holds, and where there is a second target the
        opposite."""
        held = self.leading.compare(made, lambda: self._computed(made)[0][1])
        if held is None:
            return self._computed(made)
        targets = spread(made.operands[:1])
        return [(t, v, PRED) for t, v in zip(targets, (held, self.b.not_(held)), strict=False)]

    def _loaded(self, index: int, made: Instruction, on: Value) -> list[Result]:
        type = made.operation.modifiers.scalar()
        values = self.affine_access.load(index, made, on)
        if values is None:
            values = self.memory.load(index, made, on)
        return [(t, v, type) for t, v in zip(elements(made.operands[0]), values, strict=True)]

    def _by_shape(self, index: int, made: Instruction, on: Value) -> bool:
        """Emit an instruction whose results all have shapes; False where it is none."""
        if self.shaped.results(made) is None:
            return False
        leave = self.affine_access.group_guards.exit_fast_path
        self.by_shape(
            index,
            made,
            on,
            lambda wraps: self.control.divergence.diverge_within(index, wraps, leave),
        )
        return True

    def by_shape(
        self, index: int, made: Instruction, on: Value, wrapped: Callable[[Value], None]
    ) -> None:
        """Emit an instruction whose results all have shapes; what to do is `wrapped`, where a lane
        wraps around that must not."""
        guard, name = self.guards.uniform_value(made), made.operation.name
        found: list[Result] = []
        if name in ("ld", "ldu"):
            values = self.affine_access.load_uniform_runs(index, made, on)
            type = made.operation.modifiers.scalar()
            found = [(t, v, type) for t, v in zip(elements(made.operands[0]), values, strict=True)]
        elif name == "cvta":
            type, value = self.moves.converted_address(made, self.shaped.width(made))
            found = [(made.operands[0], value, type)]
        elif name == "mov" and not is_copy(made):
            type = made.operation.modifiers.scalar()
            if isinstance(made.operands[1], Symbol):
                type = unsigned(type.bits)
            value = self.operands.read(made.operands[1], type, width=self.shaped.width(made))
            found = [(made.operands[0], value, type)]
        else:
            found = self._computed_by_shape(made, wrapped)
        for target, value, type in found:
            self.shaped.write(target, value, type, guard)

    def _computed_by_shape(
        self, made: Instruction, wrapped: Callable[[Value], None]
    ) -> list[Result]:
        """Returns what the terms of an instruction give; all are computed before the first is
        written."""
        sources, types = self._sources(made)
        found: list[Result] = []
        for target, term, root, blind in self._roots(made):
            given = [
                partial(self.operands.read, source, type, blind=number in blind)
                for number, (source, type) in enumerate(zip(sources, types, strict=False))
                if type is not None
            ]
            value, wraps = self.shaped.compute(made, root, given)
            if wraps is not None:
                wrapped(wraps)
            found.append((target, value, term.type))
        return found

    def _sent(self, made: Instruction) -> dict[int, Value]:
        """Returns the operands of `asynchronous.late_copies` of an `st.async` or a `red.async`;
        none of other instructions."""
        if late_copy(made) is None or not self.tensor_waits.delays:
            return {}
        target, barrier = (self.operands.address(made.operands[place]) for place in (0, 2))
        size = splat_constant(bytes_of(made), I64)
        rows = {SHARED_ROW: target, SIZE_ROW: size, BARRIER_ROW: barrier}
        if made.operation.name == "red":
            type = made.operation.modifiers.scalar()
            given = self.operands.bits(made.operands[1], type)
            rows[GLOBAL_ROW] = given if type.bits == 64 else self.b.zext(given, vector(I64))
        return rows

    def _complete(self, index: int, made: Instruction, on: Value) -> None:
        """Tell an mbarrier of the bytes of an access, where it names one."""
        told = completion(made)
        if told is None:
            return
        recording = self.memory.copy_recording
        with nullcontext() if recording is None else recording.completing():
            self.atomics.emit(index, told, on)

    def _computed(self, made: Instruction) -> list[Result]:
        """Returns what the terms of an instruction give."""
        sources, types = self._sources(made)
        results: list[Result] = []
        for target, term, root, blind in self._roots(made):
            values = [
                self.operands.read(source, type, blind=number in blind)
                for number, (source, type) in enumerate(zip(sources, types, strict=False))
                if type is not None
            ]
            results.append((target, self.operands.lower(root, values), term.type))
        return results

    def _sources(
        self, made: Instruction
    ) -> tuple[tuple[Operand, ...], tuple[ScalarType | None, ...]]:
        """Return the operands that an instruction reads, one by one, and as which types."""
        first = len(made.operation.spec.destinations)
        return tuple(spread(made.operands[first:])), made.operation.source_types

    def _roots(self, made: Instruction) -> Iterator[tuple[Operand, Term, Term, frozenset[int]]]:
        """Return, by target, its term, what is computed of it, and the sources whose NaNs cannot
        show."""
        first = len(made.operation.spec.destinations)
        terms = made.operation.terms_for(len(self._sources(made)[0]))
        for target, term in zip(spread(made.operands[:first]), terms, strict=False):
            root = self._root(target, term, made)
            blind = ignores_nan_bits(term)
            if root is not term or is_copy(made):
                blind = blind | self._copied(target, made)
            yield target, term, root, blind

    def _root(self, target: Operand, term: Term, made: Instruction) -> Term:
        """Return the term without its last `canonical`, where the register may hold any NaN."""
        if term.op == "canonical" and target in self.frame.open_nans:
            return term.args[0]
        return term

    def _copied(self, target: Operand, made: Instruction) -> frozenset[int]:
        """Emit a move from one register that may hold any NaN to another, which keeps it as it
        is."""
        copies = is_copy(made) and target in self.frame.open_nans
        return frozenset({0}) if copies else frozenset()


def _has_no_code(made: Instruction) -> bool:
    """Returns whether an instruction does nothing where it stands."""
    name = made.operation.name
    inlined = name == "call" and service_of(made) is None
    meets = name == "bar" and "warp" in made.operation.modifiers
    return inlined or meets or is_effectless(made.operation)


class _Writer:
    """Writes results under the masks that one instruction needs.

    In the convergent copies only the guard matters: lanes that are off have exited or never were.
    In the divergent copy lanes that are elsewhere must keep what they will read again; a register
    that no block reads before writing it has nothing to keep.
    """

    def __init__(self, code: InstructionCode, copy: Copy, guard: Value | None) -> None:
        self.code, self.copy, self.guard = code, copy, guard

    def __call__(self, operand: Operand, value: Value, type: ScalarType) -> None:
        self.code.operands.write(operand, value, type, self._mask(operand))

    def _mask(self, operand: Operand) -> Value | None:
        frame = self.code.frame
        kept = isinstance(operand, Register) and operand in frame.shared_over_blocks
        if self.copy is not Copy.DIVERGENT or not kept:
            return self.guard
        return (
            frame.active.mask()
            if self.guard is None
            else self.code.b.and_(frame.active.mask(), self.guard)
        )


def pair(operand: Operand) -> tuple[Operand, Operand | None]:
    """Return both destinations of `d|p`, or one and None."""
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand, None
