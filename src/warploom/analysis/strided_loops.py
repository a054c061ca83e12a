"""Finds loops whose addresses advance by a constant stride from iteration to iteration.

    loop:                               blocks: this one
        mul.wide.s32 %rd7, %r10, 4;     advances; widened: its operand 0 must not wrap around
        add.s64 %rd8, %rd1, %rd7;       advances
        ld.global.f32 %f1, [%rd8];      accesses: 4 * %r3 bytes behind the iteration before
        add.f32 %f2, %f2, %f1;
        add.s32 %r10, %r10, %r3;        advances
        setp.lt.s32 %p2, %r10, %r6;     compared: for how many iterations it holds is known
        @%p2 bra loop;

Two iterations of the instructions that advance say where all further ones access memory. So one
check serves a batch of iterations (`lower.loops.strided_loops`). A loop qualifies if its blocks
follow each other in one order, and no lane waits for others, calls or diverges but by leaving it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.analysis.predicated_blocks import may_wrap
from warploom.analysis.regions import natural_loops, predecessors
from warploom.analysis.shape_transfer import OperandShapes, RegisterShapes, computes
from warploom.analysis.vector_shape import TermShapes
from warploom.core.types import U64, ScalarType
from warploom.isa.spec import Unit
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.isa.terms import Term
from warploom.program.program import Program
from warploom.program.uses import leaf_operands, may_wait_before, reads, writes
from warploom.ptx.ir import Address, Instruction, Operand, Register, Special, Symbol, spread

COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
"""Comparisons of unsigned numbers by those of the same relation (PTX ISA, "setp")."""

OPPOSITES = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
BOUNDING = ("lt", "le", "gt", "ge", "ne")
"""Relations of two linear values that hold for a number of iterations, then no more."""


@dataclass(frozen=True)
class StridedLoop:
    """A loop, its `blocks` in the order of an iteration; the first is its header.

    `advances` are the instructions, in their order, that compute addresses and bounds. All give
    what is linear in the number of iterations as long as no operand in `widened` (an instruction
    and the number of a source) wraps around. `compared` are the comparisons of linear values by
    which lanes leave. `accesses` are the accesses, the first of each group, at linear addresses.
    """

    blocks: tuple[int, ...]
    advances: tuple[int, ...]
    widened: tuple[tuple[int, int], ...]
    compared: tuple[int, ...]
    accesses: tuple[int, ...]

    @property
    def header(self) -> int:
        """Returns the block that each iteration begins with."""
        return self.blocks[0]


@dataclass(frozen=True)
class Motion:
    """Says how a value changes from iteration to iteration. Not linear: in any way. `moves`: by the
    same amount each time, else it stays. `base`: the register of which it is what that held as the
    iteration began plus what stays, if it is known to be."""

    linear: bool = True
    moves: bool = False
    base: Register | None = None


STAYS, ADVANCES, ANYHOW = Motion(), Motion(moves=True), Motion(linear=False)


def staying_relation(program: Program, loop: Iterable[int], index: int, compared: int) -> str:
    """Returns the relation of the operands of comparison `compared` with which lanes stay in a loop
    at the branch that ends block `index`."""
    block = program.blocks[index]
    guard = program.instructions[block.stop - 1].guard
    assert guard is not None
    relation = str(program.instructions[compared].operation.modifiers["cmp"])
    relation = COMPARISONS.get(relation, relation)
    stays_if_taken = block.successors[0] in loop
    return relation if stays_if_taken != guard.negated else OPPOSITES[relation]


def chain_loops(program: Program, shapes: RegisterShapes) -> Iterator[tuple[int, ...]]:
    """Yields the blocks of each loop that qualifies, in the order of an iteration."""
    if program.depth is not None:
        return
    for header, inside in natural_loops(program, predecessors(program)).items():
        blocks = _chain(program, header, inside)
        if blocks is not None and len({shapes.around(block) for block in blocks}) == 1:
            yield blocks


def _chain(program: Program, header: int, inside: set[int]) -> tuple[int, ...] | None:
    """Returns the blocks of a loop in the order in which each iteration runs all of them; None
    where they have no such order, or an instruction may stop a lane."""
    found = [header]
    while True:
        block = program.blocks[found[-1]]
        further = [to for to in block.successors if to in inside]
        made = program.instructions[block.start : block.stop]
        if len(further) != 1 or not all(map(_is_plain, made)):
            return None
        if further[0] == header:
            return tuple(found) if len(found) == len(inside) else None
        if further[0] in found:
            return None
        found.append(further[0])


def _is_plain(made: Instruction) -> bool:
    """Returns whether an instruction neither waits for lanes nor reads the clock, and goes on in
    the program."""
    if may_wait_before(made) or made.operation.name in ("brx", "ret", "exit", "trap", "call"):
        return False
    units = (Unit.BARRIER, Unit.MATRIX, Unit.TEXTURE)
    return made.operation.spec.unit not in units and not any(map(_reads_clock, made.operands))


def _reads_clock(operand: Operand) -> bool:
    specials = (leaf for leaf in leaf_operands(operand) if isinstance(leaf, Special))
    return any(SPECIAL_REGISTERS[one.name].clock_bit is not None for one in specials)


def strided_loop(
    reading: OperandShapes, blocks: tuple[int, ...], among: Sequence[int]
) -> StridedLoop | None:
    """Returns the loop of some blocks with those accesses `among` given ones that have linear
    addresses; None where it has none, or a lane may diverge in an instruction. `reading` has the
    shapes of registers in all of its blocks."""
    program, motions = reading.program, _Motions(reading, blocks)
    found: list[int] = []
    needed: set[int] = set()
    for index in among:
        behind = motions.slice_of(index, [_base_of(program.instructions[index])])
        if behind is not None:
            found.append(index)
            needed |= behind
    if not found:
        return None
    compared: list[int] = []
    for block in blocks:
        index = motions.comparison(block)
        operands = () if index is None else program.instructions[index].operands[1:3]
        behind = None if index is None else motions.slice_of(index, operands)
        if index is not None and behind is not None:
            compared.append(index)
            needed |= behind
    widened = tuple(one for one in motions.widened if one[0] in needed)
    for block in blocks:
        for index in range(program.blocks[block].start, program.blocks[block].stop):
            if index not in needed and may_wrap(program.instructions[index], reading):
                return None
    order = [i for b in blocks for i in range(program.blocks[b].start, program.blocks[b].stop)]
    advances = tuple(index for index in order if index in needed)
    return StridedLoop(blocks, advances, widened, tuple(compared), tuple(found))


def _base_of(made: Instruction) -> Operand:
    """Returns what the address of a load or store begins with."""
    address = next(one for one in made.operands if isinstance(one, Address))
    assert address.base is not None
    return address.base


def _holds(target: Operand, term: Term) -> bool:
    """Returns whether a register takes the value of a term as it is."""
    return isinstance(target, Register) and target.type.bits == term.type.bits


class _Motions:
    """Finds how the registers of one loop change. `widened` are operands that must not wrap."""

    def __init__(self, reading: OperandShapes, blocks: tuple[int, ...]) -> None:
        self.program, self._reading, self._blocks = reading.program, reading, blocks
        inside = (self.program.blocks[block] for block in blocks)
        self._order = [index for block in inside for index in range(block.start, block.stop)]
        self._writers: dict[Register, list[int]] = {}
        for index in self._order:
            for register in writes(self.program.instructions[index]):
                self._writers.setdefault(register, []).append(index)
        self.widened: dict[tuple[int, int], None] = {}
        self._linear: set[int] = set()
        self._states: dict[int, Mapping[Register, Motion]] = {}
        """The registers that an instruction finds, by those that access memory or compare."""
        self._solve()

    def _solve(self) -> None:
        """Assumes that each register advances by a constant, until no assumption is wrong."""
        live = self.program.live_in[self._blocks[0]]
        begins = {r: Motion(moves=True, base=r) for r in self._writers if r in live}
        while True:
            self.widened.clear()
            self._linear.clear()
            state = dict(begins)
            for index in self._order:
                self._step(index, state)
            wrong = [r for r, was in begins.items() if was.linear and state[r].base != r]
            if not wrong:
                return
            begins = begins | dict.fromkeys(wrong, ANYHOW)

    def _step(self, index: int, state: dict[Register, Motion]) -> None:
        """Enters what an instruction leaves in its destinations."""
        made = self.program.instructions[index]
        targets = tuple(spread(made.operands[: len(made.operation.spec.destinations)]))
        if made.operation.name in ("ld", "ldu", "st", "setp"):
            self._states[index] = dict(state)
        here, results = self._reading.shapes, dict(self._reading.results(made))
        shaped = all(shape.is_known and register in here for register, shape in results.items())
        plain = shaped and made.guard is None
        motions = self._results(index, made, state) if plain else ()
        for number, target in enumerate(targets):
            if isinstance(target, Register):
                state[target] = motions[number] if number < len(motions) else ANYHOW
        if motions and all(one.linear for one in motions):
            self._linear.add(index)

    def _results(
        self, index: int, made: Instruction, state: Mapping[Register, Motion]
    ) -> Sequence[Motion]:
        """Returns how what an instruction gives changes, by its destinations."""
        operation = made.operation
        sources = tuple(spread(made.operands[len(operation.spec.destinations) :]))
        if operation.name == "cvta":
            [given] = [self._operand(one, U64, state) for one in sources[:1]]
            return [Motion(given.linear, given.moves)]
        if operation.name == "mov" and not computes(made):
            return [STAYS] if isinstance(made.operands[1], Special | Symbol) else []
        if not computes(made) or operation.spec.preconditions:
            return []
        types = operation.source_types
        given = [
            STAYS if type is None else self._operand(source, type, state)
            for source, type in zip(sources, types, strict=False)
        ]
        shapes, terms = self._reading.terms(made), operation.terms_for(len(sources))
        found = [self._term(index, term, given, shapes) for term in terms]
        targets = spread(made.operands[: len(operation.spec.destinations)])
        return [
            motion if not motion.moves or _holds(target, term) else ANYHOW
            for motion, target, term in zip(found, targets, terms, strict=False)
        ]

    def _operand(
        self, operand: Operand, type: ScalarType, state: Mapping[Register, Motion]
    ) -> Motion:
        if not isinstance(operand, Register):
            return STAYS
        found = state.get(operand, ANYHOW if operand in self._writers else STAYS)
        if not found.moves or operand.type.bits == type.bits:
            return found
        return ADVANCES if operand.type.bits > type.bits else ANYHOW

    def _term(self, index: int, term: Term, given: Sequence[Motion], shapes: TermShapes) -> Motion:
        """Returns how a term of an instruction changes whose arguments change so."""
        if term.op == "const":
            return STAYS
        if term.op == "arg":
            return given[int(str(term.attr))]
        if term.op == "select" and (side := shapes.chosen(term)) is not None:
            return self._term(index, side, given, shapes)
        args = [self._term(index, one, given, shapes) for one in term.args]
        if not any(one.moves or not one.linear for one in args):
            return STAYS
        if not term.type.is_integer or not all(one.linear for one in args):
            return ANYHOW
        match term.op:
            case "add" | "sub":
                bases = [one.base for one in args if one.moves]
                kept = bases[0] if len(bases) == 1 and (term.op == "add" or args[0].moves) else None
                return Motion(moves=True, base=kept)
            case "neg" | "truncate":
                return ADVANCES
            case "reinterpret" if term.args[0].type.is_integer:
                return args[0]
            case "mul" if not (args[0].moves and args[1].moves):
                return ADVANCES
            case "shl" if not args[1].moves:
                return ADVANCES
            case "extend" if term.args[0].op == "arg":
                self.widened[index, int(str(term.args[0].attr))] = None
                return ADVANCES
            case _:
                return ANYHOW

    def comparison(self, block: int) -> int | None:
        """Returns the comparison by which lanes leave at the end of a block, if its relation may
        hold for a number of iterations that is known."""
        inside = self.program.blocks[block]
        guard = self.program.instructions[inside.stop - 1].guard
        if guard is None:
            return None
        for index in reversed(range(inside.start, inside.stop - 1)):
            made = self.program.instructions[index]
            if guard.register not in writes(made):
                continue
            modifiers = made.operation.modifiers
            if made.operation.name != "setp" or made.guard is not None or "bool" in modifiers:
                return None
            type = modifiers.scalar()
            if not type.is_integer or type.bits < 32 or made.operands[0] != guard.register:
                return None
            relation = staying_relation(self.program, self._blocks, block, index)
            shapes = [self._reading.shape(one, type) for one in made.operands[1:3]]
            known = all(shape.is_known for shape in shapes)
            if relation == "ne":
                known = known and all(shape.width == 1 and not shape.stride for shape in shapes)
            return index if known and relation in BOUNDING else None
        return None

    def slice_of(self, index: int, operands: Iterable[Operand]) -> set[int] | None:
        """Returns the instructions of the loop that compute operands of an instruction, iteration
        by iteration; None where these are not linear."""
        found: set[int] = set()
        pending = [one for one in operands if isinstance(one, Register)]
        state = self._states[index]
        if not all(state.get(one, STAYS).linear for one in pending):
            return None
        while pending:
            for index in self._writers.get(pending.pop(), ()):
                if index in found:
                    continue
                if index not in self._linear:
                    return None
                found.add(index)
                pending.extend(reads(self.program.instructions[index]))
        return found
