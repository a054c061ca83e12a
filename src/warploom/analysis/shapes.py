"""Which registers hold the same for all lanes of a warp, or differ by a fixed stride.

It holds where all living lanes run together. Shapes are a fixed point over all writers of a
register, whatever way leads from one to the other. Where lanes part and meet again, those that took
one way may hold other values than those that took the other, or have been round a loop more often:
what a side writes and is read behind the meeting has no shape (Coutinho et al., "Divergence
Analysis and Optimizations", 2011, on sync and temporal divergence).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from warploom.analysis.accesses import space_of
from warploom.analysis.cfg import splits
from warploom.analysis.program import Program
from warploom.analysis.strides import UNIFORM, VECTOR, Known, Shape, TermShapes, strided
from warploom.analysis.uses import leaves, reads, writes
from warploom.core.types import PRED, U32, ScalarType
from warploom.isa.spec import Unit
from warploom.isa.special import SPECIAL_REGISTERS, Varies
from warploom.ptx.ir import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Space,
    Special,
    Symbol,
    Vector,
    spread,
)

Shapes = Mapping[Register, Shape]
"""The shapes of registers; of those that are not named nothing is known."""


class Formation(Enum):
    """How the threads of a block lie in its warps (CUDA C++ Programming Guide, "Thread
    Hierarchy"). LINE: a warp is 32 threads along x. ROWS: each of its halves is 16 along x. BLOCK:
    what is asked is not how lanes differ but whether all threads of a block agree. ALONG_X: how
    those of a block differ that has all its threads along x; IN_ROWS: that has 16 along x, the
    others along y. What lies in two rows goes on in the rows behind them by the same steps."""

    LINE = "line"
    ROWS = "rows"
    ANY = "any"
    BLOCK = "block"
    ALONG_X = "along x"
    IN_ROWS = "in rows"


BLOCK_WIDE = frozenset({Formation.BLOCK, Formation.ALONG_X, Formation.IN_ROWS})
"""Formations that say something of a whole block."""

WHOLE = {Formation.LINE: Formation.ALONG_X, Formation.ROWS: Formation.IN_ROWS}
"""What a block may be of whose warps so much is known."""


def formation_of(block: tuple[int, int, int]) -> Formation:
    """The formation of the warps of a block of that shape."""
    x, y, z = block
    if x % 32 == 0 or y * z == 1:
        return Formation.LINE
    return Formation.ROWS if x % 16 == 0 else Formation.ANY


def special_shape(name: str, formation: Formation) -> Shape:
    """The shape of a special register."""
    special = SPECIAL_REGISTERS[name]
    name = special.same_as or name
    if name == "%tid.x" and formation in WHOLE.values():
        return Shape(1, 1)
    if name == "%tid.y" and formation is Formation.IN_ROWS:
        return Shape(2)
    if formation in BLOCK_WIDE:
        agreed = special.varies in (Varies.BLOCK, Varies.LAUNCH) and special.clock_bit is None
        return UNIFORM if agreed else VECTOR
    if name == "%laneid":
        return Shape(1, 1)
    if name.startswith("%tid"):
        width = {Formation.LINE: 1, Formation.ROWS: 2}.get(formation)
        return VECTOR if width is None else Shape(width, int(name == "%tid.x"))
    varies = SPECIAL_REGISTERS[name].varies is Varies.LANE or special.clock_bit is not None
    return VECTOR if varies else UNIFORM


class Reading:
    """What is known of operands, where registers have given shapes."""

    def __init__(self, program: Program, formation: Formation, shapes: Shapes) -> None:
        self.program, self.formation, self.shapes = program, formation, shapes

    def shape(self, operand: Operand, type: ScalarType) -> Shape:
        return self.known(operand, type).shape

    def known(self, operand: Operand, type: ScalarType) -> Known:
        """An operand that is read as a type."""
        match operand:
            case Immediate(value):
                whole = None if type.is_float else value & ((1 << type.bits) - 1)
                return Known(UNIFORM, whole)
            case Negated(register):
                return Known(self.shapes.get(register, VECTOR))
            case Register():
                shape = self.shapes.get(operand, VECTOR)
                return Known(_resized(shape, operand.type.bits, type.bits))
            case Special(name):
                shape = special_shape(name, self.formation)
                return Known(_resized(shape, SPECIAL_REGISTERS[name].type.bits, type.bits))
            case Symbol():
                return Known(UNIFORM)
            case _:
                return Known(VECTOR)

    def address(self, operand: Operand) -> Shape:
        """The shape of an address, if no row of it wraps around."""
        assert isinstance(operand, Address)
        if isinstance(operand.base, Register):
            return self.shapes.get(operand.base, VECTOR)
        return UNIFORM

    def terms(self, made: Instruction) -> TermShapes:
        """The shapes of the terms of an instruction that computes."""
        operation = made.operation
        given = spread(made.operands[len(operation.spec.destinations) :])
        types = operation.source_types
        return TermShapes(
            [
                Known(VECTOR) if type is None else self.known(operand, type)
                for operand, type in zip(given, types, strict=False)
            ],
            linear=self.formation is Formation.IN_ROWS,
        )

    def guard(self, made: Instruction) -> Shape:
        """The shape of what decides whether an instruction is executed."""
        return UNIFORM if made.guard is None else self.shapes.get(made.guard.register, VECTOR)

    def results(self, made: Instruction) -> Iterator[tuple[Register, Shape]]:
        """The shape of what an instruction gives each register, as wide as the register."""
        agreed = self.guard(made) == UNIFORM
        for place, target in enumerate(_targets(made)):
            if target is None:
                continue
            shape = VECTOR
            if agreed:
                shape = (
                    self._term(made, place, target) if computes(made) else self._other(made, target)
                )
            if target.type == PRED and shape != UNIFORM:
                shape = VECTOR
            yield target, shape

    def _term(self, made: Instruction, place: int, target: Register) -> Shape:
        sources = tuple(spread(made.operands[len(made.operation.spec.destinations) :]))
        terms = made.operation.terms_for(len(sources))
        if place >= len(terms):
            return VECTOR
        term = terms[place]
        return _resized(self.terms(made).shape(term), term.type.bits, target.type.bits)

    def _other(self, made: Instruction, target: Register) -> Shape:
        match made.operation.name:
            case "mov" | "cvta":
                source = made.operands[1]
                if isinstance(source, Vector) or not isinstance(made.operands[0], Register):
                    return VECTOR
                slot = "size" if made.operation.name == "cvta" else "type"
                type = made.operation.modifiers.scalar(slot)
                return _resized(self.shape(source, type), type.bits, target.type.bits)
            case "ld" | "ldu":
                return self._loaded(made)
            case _:
                return VECTOR

    def _loaded(self, made: Instruction) -> Shape:
        """Lanes that load from one place at once get the same; warps are not there at once."""
        space, address = space_of(made), made.operands[1]
        if space is Space.PARAM:
            assert isinstance(address, Address)
            base = address.base
            named = isinstance(base, Symbol) and not self.program.places[base.name].frame
            return UNIFORM if named else VECTOR
        shared = space in (Space.GLOBAL, Space.CONST, Space.SHARED)
        if not shared or self.formation in BLOCK_WIDE:
            return VECTOR
        shape = self.address(address)
        return shape if shape.is_known and shape.stride == 0 else VECTOR


def computes(made: Instruction) -> bool:
    """Whether an instruction does nothing but compute terms."""
    operation = made.operation
    if operation.name == "mov":
        whole = isinstance(made.operands[0], Register)
        return whole and isinstance(made.operands[1], Register | Immediate)
    if operation.name in NO_TERMS or operation.spec.unit in NO_TERM_UNITS:
        return False
    return operation.spec.semantics is not None and bool(operation.spec.destinations)


NO_TERMS = frozenset(
    {"ld", "ldu", "st", "cp", "call", "cvta", "shfl", "vote", "match", "redux", "elect"}
)
NO_TERM_UNITS = (Unit.ATOMIC, Unit.MATRIX, Unit.TEXTURE, Unit.BARRIER)
"""Instructions that look at memory, at control, or at lanes beside their own."""


def shapes_of(program: Program, formation: Formation) -> Shapes:
    """The shapes of a program's registers in a launch whose warps are formed so."""
    apart: set[Register] = set()
    while True:
        shapes = _fixed_point(program, formation, apart)
        met = _met_apart(program, formation, shapes)
        if met <= apart:
            return {r: s for r, s in shapes.items() if s.is_known}
        apart |= met


def _fixed_point(program: Program, formation: Formation, apart: set[Register]) -> Shapes:
    """What all writers of each register give together. Registers begin as zeros."""
    begun = program.live_in[0] if program.live_in else frozenset[Register]()
    shapes: dict[Register, Shape] = dict.fromkeys(begun, UNIFORM) | dict.fromkeys(apart, VECTOR)
    reading = Reading(program, formation, shapes)
    pending = True
    while pending:
        pending = False
        for made in program.instructions:
            if not _is_reached(made, shapes):
                continue
            for register, shape in reading.results(made):
                old = shapes.get(register)
                new = shape if old is None else old.join(shape)
                if new != old:
                    shapes[register] = new
                    pending = True
    return shapes


def _is_reached(made: Instruction, shapes: Shapes) -> bool:
    """Whether something is known by now of all registers that an instruction reads."""
    return all(register in shapes for register in reads(made))


def _met_apart(program: Program, formation: Formation, shapes: Shapes) -> set[Register]:
    """The registers that lanes write apart and read together."""
    reading = Reading(program, formation, shapes)
    found: set[Register] = set()
    for block in program.blocks:
        last = program.instructions[block.stop - 1]
        if splits(last) and not _goes_together(last, reading):
            point = program.reconvergence[block.index]
            if point == program.exit:
                continue
            for index in between(program, block.successors, point):
                inside = program.blocks[index]
                for made in program.instructions[inside.start : inside.stop]:
                    found.update(r for r in writes(made) if r in program.live_in[point])
    return found


def _goes_together(branch: Instruction, reading: Reading) -> bool:
    """Whether all lanes go one way at a branch."""
    agrees = reading.guard(branch) == UNIFORM
    if branch.operation.name == "brx":
        return agrees and reading.shape(branch.operands[0], U32) == UNIFORM
    return agrees


def between(program: Program, ways: tuple[int, ...], point: int) -> set[int]:
    """The blocks that ways lead through before they come to a point."""
    seen: set[int] = set()
    pending = [way for way in ways if way not in (point, program.exit)]
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            further = program.blocks[block].successors
            pending.extend(way for way in further if way not in (point, program.exit))
    return seen


def _targets(made: Instruction) -> Iterator[Register | None]:
    """What an instruction writes, place by place; None where it is nothing."""
    count = 1 if made.operation.name == "call" else len(made.operation.spec.destinations)
    for operand in made.operands[:count]:
        for leaf in leaves(operand):
            yield leaf if isinstance(leaf, Register) else None


def _resized(shape: Shape, have: int, want: int) -> Shape:
    """A value of one width as one of another: cut off, or extended by what it needs."""
    if shape.stride == 0 or want == have:
        return shape
    return strided(shape.width, shape.stride, want) if want < have else VECTOR
