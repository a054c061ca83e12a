"""The function that runs one warp: every block of a program in both copies.

Instructions that compute become the vector code of their terms; the rest is for the modules that
know memory, lanes and control.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from llvmlite import ir

from warploom.analysis.accesses import is_bulk_fill
from warploom.analysis.asides import asides, steps
from warploom.analysis.completions import completion
from warploom.analysis.program import Block, Program
from warploom.analysis.services import service_of
from warploom.analysis.shapes import Formation, Reading, Shapes, shapes_of
from warploom.analysis.uses import member_mask
from warploom.codegen.barriers import BarrierCode
from warploom.codegen.blocks import Copy
from warploom.codegen.checks import TRAP
from warploom.codegen.control import Control
from warploom.codegen.copies import CopyCode
from warploom.codegen.environment import CountLayout, Slot, Status
from warploom.codegen.frame import ALL_NODES, Frame
from warploom.codegen.lanes import I1, I32, I64, LANES, Value
from warploom.codegen.lower import ignores_nan_bits
from warploom.codegen.matrix import MatrixCode
from warploom.codegen.members import MemberCode
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.nans import is_copy
from warploom.codegen.operands import WINDOWS, Operands
from warploom.codegen.recording import RecordingCode
from warploom.codegen.relay import END
from warploom.codegen.saved import Saved
from warploom.codegen.service import ServiceCode
from warploom.codegen.shaped import ShapedCode
from warploom.codegen.shaped_access import ShapedAccess
from warploom.codegen.sizes import is_long
from warploom.codegen.texture import TextureCode
from warploom.codegen.warpwide import WarpwideCode
from warploom.codegen.ways import WaysCode
from warploom.core.types import B32, PRED, U64, ScalarType, unsigned
from warploom.isa.effectless import is_effectless
from warploom.isa.spec import Unit
from warploom.isa.terms import Term
from warploom.ptx.ir import Instruction, Operand, Pair, Register, Space, Symbol, Vector, spread
from warploom.rules.convergence import ADVERSARIAL, ARGUMENT, NONE, PASS
from warploom.rules.plan_words import (
    INSTRUCTION,
    POLICY,
    RESUME,
)

Result = tuple[Operand, Value, ScalarType]
"""What an instruction gives: to which operand, the value, and its type."""


class WarpFunction:
    """Emits `warp` into a module."""

    def __init__(
        self,
        module: ir.Module,
        program: Program,
        layout: CountLayout,
        *,
        formation: Formation,
        independent: bool,
        mixes: bool,
        shuffles: bool,
        records: bool,
    ) -> None:
        self.program, self.layout = program, layout
        plain = mixes or records or is_long(program)
        shapes: Shapes = {} if plain else shapes_of(program, formation)
        self.frame = Frame(module, program, layout, shapes)
        self.saved = Saved(self.frame)
        self.lanes, self.b = self.frame.lanes, self.frame.lanes.b
        self.operands = Operands(self.frame)
        self.recording = RecordingCode(self.frame, self.saved) if records else None
        self.memory = MemoryCode(self.operands, self.recording, shuffles=shuffles)
        self.copies = CopyCode(self.memory)
        self.services = ServiceCode(self.operands)
        self.matrix = MatrixCode(self.memory)
        self.texture = TextureCode(self.memory)
        self.members = MemberCode(self.operands)
        self.warpwide = WarpwideCode(self.operands)
        reading = Reading(program, formation, shapes)
        self.control = Control(
            self.frame,
            self.saved,
            asides(program, reading) if shapes else {},
            independent=independent,
            mixes=mixes,
            chooses=shuffles and not independent,
        )
        self.ways = WaysCode(self.control, self.operands)
        self.barriers = BarrierCode(self.control, self.operands)
        self._entries: Mapping[int, ir.Block] = {}
        self.shaped = ShapedCode(self.operands, reading)
        self.shaped_access = ShapedAccess(self.memory, reading)

    def emit(self) -> None:
        """The whole function."""
        for copy in Copy:
            for block in self.program.blocks:
                self._block(copy, block)
        for index in self.control.blocks.beside:
            self._aside(self.program.blocks[index])
        self.frame.convergent = False
        resumes = self.control.finish()
        self.control.relay.emit({END: self._begin(), **resumes})
        self._enter()
        self._leave()

    @property
    def suspends(self) -> bool:
        """Whether a warp may come back before it ends."""
        return self.control.suspends

    def _enter(self) -> None:
        """The warp begins, or goes on where it left off."""
        entered = self.frame.function.append_basic_block("entered")
        self.b.position_at_end(entered)
        known = self.frame.get(self.frame.state(RESUME)) if self.suspends else I64(END)
        self.control.relay.enter(known)
        self.frame.prologue.b.branch(entered)

    def _begin(self) -> ir.Block:
        """A warp begins, at the first block with the lanes that exist."""
        b, frame = self.b, self.frame
        begin = frame.function.append_basic_block("begin")
        b.position_at_end(begin)
        frame.clear()
        self.control.reshaping.set_stale(False)
        bits = self.members.existing()
        b.store(self.lanes.mask(bits), frame.active)
        b.store(bits, frame.live)
        b.store(I64(NONE), frame.top)
        b.store(I64(NONE), frame.point)
        b.store(I64(ALL_NODES), frame.free)
        b.branch(self.control.blocks.copies[Copy.CONVERGENT, 0])
        return begin

    def _leave(self) -> None:
        self.b.position_at_end(self.frame.leaving)
        self.control.relay.record()
        self.frame.emit_leaving()

    # ---- blocks ---------------------------------------------------------------------------------

    def _block(self, copy: Copy, block: Block) -> None:
        self.b.position_at_end(self.control.blocks.copies[copy, block.index])
        self._entries = self.control.steps if copy is Copy.DIVERGENT else {}
        self.memory.apart = copy is Copy.DIVERGENT
        self.frame.convergent = copy is Copy.CONVERGENT
        if not self.control.blocks.runs(copy, block.index):
            self.b.unreachable()
            return
        self.members.check(block.start, self.program.instructions[block.start])
        if copy is Copy.DIVERGENT:
            self._synchronise(block)
        self.barriers.begin(block)
        self._count_block(block)
        self.shaped_access.begin(block)
        self._body(copy, block, block.start)
        self._entries = self.shaped_access.careful(block)
        if self._entries:
            first = min(self._entries)
            self.b.position_at_end(self.frame.function.append_basic_block("careful"))
            self._body(copy, block, first)

    def _aside(self, block: Block) -> None:
        """A block that some lanes run under a mask; registers keep their shapes."""
        self.b.position_at_end(self.control.blocks.beside[block.index])
        self._entries, self.memory.apart, self.frame.convergent = {}, True, True
        self._count_block(block)
        self.shaped_access.begin_masked()
        self.shaped.partly = True
        for index in steps(self.program, block):
            self.frame.ahead = block.stop - index
            self._instruction(Copy.DIVERGENT, index, self.program.instructions[index])
        self.control.step_back(block.index)
        self.shaped.partly = False

    def _body(self, copy: Copy, block: Block, first: int) -> None:
        """The instructions of a block from one on, and what follows."""
        for index in range(first, block.stop):
            made = self.program.instructions[index]
            self.frame.ahead = block.stop - index
            if not self._control(copy, block, index, made):
                self._instruction(copy, index, made)
        if not self.b.block.is_terminated:
            self._drift(block)
            self.control.go(copy, block.successors[0], block.index)

    def _synchronise(self, block: Block) -> None:
        """Wait before an instruction for the lanes that its member mask names and that live. In the
        convergent copy they are all here."""
        made = self.program.instructions[block.start]
        mask = member_mask(made)
        if mask is None or made.guard is not None or not self.control.independent:
            return
        b, frame = self.b, self.frame
        members = self.operands.uniform(mask, frame.mask())
        live = b.zext(b.load(frame.live, typ=I32), I64)
        here = b.zext(self.lanes.bits(frame.mask()), I64)
        missing = b.and_(b.and_(members, live), b.not_(here))
        waited = frame.get(frame.table(PASS))
        b.store(I64(0), frame.table(PASS))
        must = b.and_(b.icmp_unsigned("!=", missing, I64(0)), b.icmp_unsigned("==", waited, I64(0)))
        with b.if_then(must, likely=False):
            b.store(members, frame.table(ARGUMENT))
            frame.set_state(INSTRUCTION, I64(block.start))
            self.control.suspension.give_way(Status.SYNC_WAIT, block.index)

    def _drift(self, block: Block) -> None:
        """Lanes that an instruction brought together may go their own ways again behind it."""
        if not self.control.mixes or member_mask(self.program.instructions[block.start]) is None:
            return
        b, frame = self.b, self.frame
        policy = frame.get(self.lanes.slot(frame.pointer(Slot.PLAN_AT), POLICY))
        adversarial = b.icmp_unsigned("==", policy, I64(ADVERSARIAL))
        count = self.lanes.popcount(self.lanes.bits(frame.mask()))
        several = b.icmp_unsigned(">", count, I64(1))
        with b.if_then(b.and_(adversarial, several)):
            self.control.suspension.give_way(Status.PARTED, block.successors[-1])

    def _count_block(self, block: Block) -> None:
        frame = self.frame
        frame.count(2 * block.index, I64(1))
        frame.count(2 * block.index + 1, self.lanes.popcount(self.lanes.bits(frame.mask())))
        fuel = self.b.load(frame.fuel, typ=I64)
        hidden = sum(i in self.program.hidden for i in range(block.start, block.stop))
        self.b.store(self.b.sub(fuel, I64(block.stop - block.start - hidden)), frame.fuel)
        if self.recording:
            self.recording.block(block)

    def _guard(self, index: int, made: Instruction) -> Value | None:
        """The guard's value, counted; None where there is none."""
        held = self._held(made)
        if held is not None:
            on = self.lanes.bits(self.b.and_(held, self.frame.mask()))
            agrees = self._agrees(made)
            count = self._counted_together(made) if agrees else self.lanes.popcount(on)
            self.frame.count(self.layout.guarded[index], count)
            if self.recording:
                self.recording.guard(index, on)
        return held

    def _agrees(self, made: Instruction) -> bool:
        """Whether all lanes are known to agree on an instruction's guard."""
        return made.guard is not None and self.frame.has_shape(made.guard.register)

    def _counted_together(self, made: Instruction) -> Value:
        """How many lanes execute an instruction on whose guard all agree."""
        living = self.lanes.popcount(self.lanes.bits(self.frame.mask()))
        return self.b.select(self.lanes.lane(self._agreed(made), 0), living, I64(0))

    def _held(self, made: Instruction) -> Value | None:
        """The guard's value; None where there is none."""
        if made.guard is None:
            return None
        held = self.frame.load(made.guard.register)
        return self.b.not_(held) if made.guard.negated else held

    def _agreed(self, made: Instruction) -> Value | None:
        """The guard's value in 1 lane, where all lanes agree on it; None where there is none."""
        if made.guard is None:
            return None
        held = self.frame.load(made.guard.register, 1)
        return self.b.not_(held) if made.guard.negated else held

    def _control(self, copy: Copy, block: Block, index: int, made: Instruction) -> bool:
        """Emit what ends a block; False where the instruction does not."""
        name = made.operation.name
        if name not in ("bra", "brx", "ret", "exit", "trap", "bar", "barrier"):
            return False
        if name in ("bar", "barrier") and not self.barriers.ends(made):
            return False
        guard = self._guard(index, made)
        if name == "bra" and guard is None:
            self.control.go(copy, block.successors[0], block.index)
        elif name == "bra" and self._agrees(made):
            held = self.lanes.lane(self._agreed(made), 0)
            self.control.branch_together(copy, block.index, held)
        elif name == "bra":
            taken = self.b.and_(guard, self.frame.mask())
            self.control.branch(copy, block.index, taken, index)
        elif name == "brx":
            self.ways.branch(copy, block, index, made, guard)
        elif name in ("ret", "exit"):
            self.control.leave_lanes(copy, block.index, guard)
        elif name == "trap":
            self._trap(index, guard)
        else:
            self.barriers.end(copy, block, index, made, guard)
        return True

    def _trap(self, index: int, guard: Value | None) -> None:
        """Stop the launch if some lane gets here."""
        b, mask = self.b, self.frame.mask()
        bits = self.lanes.bits(mask if guard is None else b.and_(mask, guard))
        with b.if_then(b.icmp_unsigned("!=", bits, I32(0)), likely=False):
            lane = self.lanes.intrinsic("llvm.cttz.i32", I32, [bits, I1(0)])
            self.frame.fault(TRAP, index, lane, I64(0), I64(0))

    # ---- instructions ---------------------------------------------------------------------------

    def _instruction(self, copy: Copy, index: int, made: Instruction) -> None:
        guard = self._guard(index, made)
        if index in self._entries:
            self.b.branch(self._entries[index])
            self.b.position_at_end(self._entries[index])
            guard = self._held(made)
        mask = self.frame.mask()
        on = mask if guard is None else self.b.and_(mask, guard)
        self.members.count_exited(index, made, on)
        if _has_no_code(made) or self._stores(index, made, on):
            return
        if not self._by_shape(index, made, on):
            write = _Writer(self, copy, guard)
            for operand, value, type in self._results(index, made, on):
                write(operand, value, type)
            if made.operation.spec.unit is Unit.ATOMIC:
                self._complete(index, made, on)

    def _stores(self, index: int, made: Instruction, on: Value) -> bool:
        """Emit a store or a copy; False where the instruction is none."""
        name = made.operation.name
        if name == "st":
            store = self.copies.fill if is_bulk_fill(made.operation) else self.shaped_access.store
            store(index, made, on)
            self._complete(index, made, on)
        elif name == "cp" and made.operation.spec.unit is not Unit.ATOMIC:
            self.copies.copy(index, made, on)
        else:
            return False
        return True

    def _results(self, index: int, made: Instruction, on: Value) -> Sequence[Result]:
        """What an instruction gives which destination; all is there before any is written."""
        match made.operation.spec.unit:
            case Unit.ATOMIC:
                return self.memory.atomic(index, made, on)
            case Unit.MATRIX:
                return self.matrix.emit(index, made, on)
            case Unit.TEXTURE:
                return self.texture.emit(index, made, on)
            case Unit.BARRIER:
                return [(made.operands[0], *self.barriers.told(made))]
            case _:
                return self._named_results(index, made, on)

    def _named_results(self, index: int, made: Instruction, on: Value) -> Sequence[Result]:
        """The same for instructions that go by their names."""
        match made.operation.name:
            case "ld" | "ldu":
                return self._loaded(index, made, on)
            case "call":
                return [(target, v, U64) for target, v in self.services.call(index, made, on)]
            case "shfl":
                value, inside = self.warpwide.shuffle(made, on)
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
                type, value = self._converted_address(made, LANES)
                return [(made.operands[0], value, type)]
            case "isspacep" if made.operation.spec.semantics is None:
                return [self._is_parameter(made)]
            case "mov" if not is_copy(made):
                return self._moved(made)
            case _:
                return self._computed(made)

    def _loaded(self, index: int, made: Instruction, on: Value) -> list[Result]:
        type = made.operation.modifiers.scalar()
        values = self.shaped_access.load(index, made, on)
        if values is None:
            values = self.memory.load(index, made, on)
        return [(t, v, type) for t, v in zip(elements(made.operands[0]), values, strict=True)]

    def _by_shape(self, index: int, made: Instruction, on: Value) -> bool:
        """Emit an instruction whose results all have shapes; False where it is none."""
        if self.shaped.results(made) is None:
            return False
        guard, name = self._agreed(made), made.operation.name
        found: list[Result] = []
        if name in ("ld", "ldu"):
            values = self.shaped_access.load_agreed(index, made, on)
            type = made.operation.modifiers.scalar()
            found = [(t, v, type) for t, v in zip(elements(made.operands[0]), values, strict=True)]
        elif name == "cvta":
            type, value = self._converted_address(made, self.shaped.width(made))
            found = [(made.operands[0], value, type)]
        elif name == "mov" and not is_copy(made):
            type = made.operation.modifiers.scalar()
            if isinstance(made.operands[1], Symbol):
                type = unsigned(type.bits)
            value = self.operands.read(made.operands[1], type, width=self.shaped.width(made))
            found = [(made.operands[0], value, type)]
        else:
            found = self._computed_by_shape(index, made)
        for target, value, type in found:
            self.shaped.write(target, value, type, guard)
        return True

    def _computed_by_shape(self, index: int, made: Instruction) -> list[Result]:
        """What the terms of an instruction give; all are computed before the first is written."""
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
                self.control.step_apart(index, wraps)
            found.append((target, value, term.type))
        return found

    def _complete(self, index: int, made: Instruction, on: Value) -> None:
        """Tell an mbarrier of the bytes of an access, where it names one."""
        told = completion(made)
        if told is not None:
            self.memory.atomic(index, told, on)

    def _converted_address(self, made: Instruction, width: int) -> tuple[ScalarType, Value]:
        """Between a space's own addresses and generic ones: add or take the window's start."""
        modifiers = made.operation.modifiers
        type = modifiers.scalar("size")
        space = Space(modifiers.text("space", "").partition("::")[0])
        value = self.operands.read(made.operands[1], type, width=width)
        window = self.operands.lowerings[width].constant(WINDOWS.get(space, 0), type)
        if space is Space.PARAM:
            window = self.operands.parameters(type, width)
        change = self.b.sub if "to" in modifiers else self.b.add
        return type, change(value, window)

    def _is_parameter(self, made: Instruction) -> Result:
        """`isspacep.param`."""
        target, source = made.operands
        behind = self.b.sub(self.operands.read(source, U64), self.operands.parameters(U64))
        size = self.operands.lower.constant(self.program.parameter_bytes, U64)
        return target, self.b.icmp_unsigned("<", behind, size), PRED

    def _moved(self, made: Instruction) -> list[Result]:
        """`mov` between a vector and its parts, or of an address or a special register."""
        target, source = made.operands
        type = made.operation.modifiers.scalar()
        if isinstance(source, Vector):
            return [(target, self._packed(source, type), type)]
        if isinstance(target, Vector):
            return self._unpacked(target, source, type)
        if isinstance(source, Symbol):
            type = unsigned(type.bits)
        return [(target, self.operands.read(source, type), type)]

    def _unpacked(self, target: Vector, source: Operand, type: ScalarType) -> list[Result]:
        """The parts of a value, the lowest first."""
        lower, part = self.operands.lower, unsigned(type.bits // len(target.elements))
        whole = self.operands.read(source, unsigned(type.bits))
        found: list[Result] = []
        for number, element in enumerate(target.elements):
            moved = self.b.lshr(whole, lower.constant(number * part.bits, unsigned(type.bits)))
            found.append((element, self.b.trunc(moved, lower.type(part)), part))
        return found

    def _packed(self, source: Vector, type: ScalarType) -> Value:
        """The elements side by side, the first lowest."""
        part = unsigned(type.bits // len(source.elements))
        whole = self.operands.lower.type(unsigned(type.bits))
        value = self.operands.lower.constant(0, unsigned(type.bits))
        for number, element in enumerate(source.elements):
            wide = self.b.zext(self.operands.read(element, part), whole)
            shift = self.operands.lower.constant(number * part.bits, unsigned(type.bits))
            value = self.b.or_(value, self.b.shl(wide, shift))
        return value

    def _computed(self, made: Instruction) -> list[Result]:
        """What the terms of an instruction give."""
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
        """The operands that an instruction reads, one by one, and as which types."""
        first = len(made.operation.spec.destinations)
        return tuple(spread(made.operands[first:])), made.operation.source_types

    def _roots(self, made: Instruction) -> Iterator[tuple[Operand, Term, Term, frozenset[int]]]:
        """By target, its term, what is computed of it, and the sources whose NaNs cannot show."""
        first = len(made.operation.spec.destinations)
        terms = made.operation.terms_for(len(self._sources(made)[0]))
        for target, term in zip(spread(made.operands[:first]), terms, strict=False):
            root = self._root(target, term, made)
            blind = ignores_nan_bits(term)
            if root is not term or is_copy(made):
                blind = blind | self._copied(target, made)
            yield target, term, root, blind

    def _root(self, target: Operand, term: Term, made: Instruction) -> Term:
        """The term without its last `canonical`, where the register may hold any NaN."""
        if term.op == "canonical" and target in self.frame.open_nans:
            return term.args[0]
        return term

    def _copied(self, target: Operand, made: Instruction) -> frozenset[int]:
        """A move from one register that may hold any NaN to another keeps it as it is."""
        copies = is_copy(made) and target in self.frame.open_nans
        return frozenset({0}) if copies else frozenset()


def _has_no_code(made: Instruction) -> bool:
    """Whether an instruction does nothing where it stands."""
    name = made.operation.name
    inlined = name == "call" and service_of(made) is None
    meets = name == "bar" and "warp" in made.operation.modifiers
    return inlined or meets or is_effectless(made.operation)


class _Writer:
    """Writes results under the masks that one instruction needs.

    In the convergent copy only the guard matters: lanes that are off have exited or never existed.
    In the divergent copy lanes that are elsewhere must keep what they will read again; a register
    that no block reads before writing it has nothing to keep.
    """

    def __init__(self, code: WarpFunction, copy: Copy, guard: Value | None) -> None:
        self.code, self.copy, self.guard = code, copy, guard

    def __call__(self, operand: Operand, value: Value, type: ScalarType) -> None:
        self.code.operands.write(operand, value, type, self._mask(operand))

    def _mask(self, operand: Operand) -> Value | None:
        frame = self.code.frame
        kept = isinstance(operand, Register) and operand in frame.shared_over_blocks
        if self.copy is Copy.CONVERGENT or not kept:
            return self.guard
        return frame.mask() if self.guard is None else self.code.b.and_(frame.mask(), self.guard)


def pair(operand: Operand) -> tuple[Operand, Operand | None]:
    """Both destinations of `d|p`, or one and None."""
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand, None
