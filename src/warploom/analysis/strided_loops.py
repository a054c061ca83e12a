"""Finds loops whose accesses advance by a constant stride from iteration to iteration, so that
emitted code checks and counts them once per batch of iterations.

    loop:                               blocks: this one
      mul.wide.s32 %rd7, %r10, 4;     advances; widened: its operand 0 must not wrap around
      add.s64 %rd8, %rd1, %rd7;       advances
      ld.global.f32 %f1, [%rd8];      accesses: at 4 * %r3 bytes after the previous iteration's
      add.f32 %f2, %f2, %f1;
      add.s32 %r10, %r10, %r3;        advances
      setp.lt.s32 %p2, %r10, %r6;     compared: holds for a computable number of iterations
      @%p2 bra loop;

Two iterations of the instructions that advance determine the addresses of all further ones. So one
check covers a batch of iterations (`lower.loops.strided_loops`). A loop qualifies if its blocks run
in one fixed order. Not handled: loops in which lanes wait for others, call, read the clock, execute
matrix or texture instructions, or diverge other than by exits; addresses with a step that changes
(`x[i * i]`), or that are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.analysis.predicated_blocks import may_wrap
from warploom.core.types import U64, ScalarType
from warploom.ir.loops import StridedLoop
from warploom.isa.instruction import (
    Address,
    Instruction,
    Operand,
    Register,
    Special,
    Symbol,
    flatten_operands,
)
from warploom.isa.kinds import ACCESSES_BY_LANE, Effect, OpKind
from warploom.isa.spec import Unit
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.isa.terms import Term
from warploom.program.program import Program
from warploom.program.regions import natural_loops, predecessors
from warploom.program.uses import leaf_operands, may_wait_before, reads, writes
from warploom.shapes.operand_shapes import OperandShapes, RegisterShapes, computes
from warploom.shapes.vector_shape import TermShapes

COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
"""Maps comparisons of unsigned numbers to those of the same relation (PTX ISA, "setp")."""

OPPOSITES = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
"""Maps relations to their negations."""
BOUNDING = ("lt", "le", "gt", "ge", "ne")
"""Relations of two linear values that hold for a number of iterations, then no more."""


RECORDED = ACCESSES_BY_LANE | {OpKind.COMPARE}
"""Kinds of operations before which the recurrences of registers are recorded."""


@dataclass(frozen=True)
class Recurrence:
    """The change of a value from iteration to iteration, as in scalar evolution: unless `linear`,
    it is arbitrary; it `advances` by the same amount each time, or is loop-invariant. `base`: the
    register whose value at the start of the iteration plus an invariant is the value, if there is
    one."""

    linear: bool = True
    advances: bool = False
    base: Register | None = None


INVARIANT, ADVANCING, NONLINEAR = Recurrence(), Recurrence(advances=True), Recurrence(linear=False)


def staying_relation(program: Program, loop: Iterable[int], index: int, compared: int) -> str:
    """Returns the relation (`lt`, `ge`, ..., also of unsigned numbers) that the operands of a
    comparison have in the lanes that stay in a loop at the guarded branch that ends block `index`.
    `compared` is the number of the comparison. The relation is its own, or its negation if lanes
    for which it holds leave."""
    block = program.blocks[index]
    guard = program.instructions[block.stop - 1].guard
    assert guard is not None
    relation = str(program.instructions[compared].operation.modifiers["cmp"])
    relation = COMPARISONS.get(relation, relation)
    stays_if_taken = block.successors[0] in loop
    return relation if stays_if_taken != guard.negated else OPPOSITES[relation]


def straight_line_loops(program: Program, shapes: RegisterShapes) -> Iterator[tuple[int, ...]]:
    """Yields the blocks of each loop that qualifies, in the order of an iteration: all of its
    blocks run one after the other in each, and lie in the same masked regions, and all of its
    instructions can be in a batch (`_is_lane_independent`). Yields nothing for programs with calls
    that are not inlined."""
    if program.depth is not None:
        return
    for header, inside in natural_loops(program, predecessors(program)).items():
        blocks = _batchable_block_order(program, header, inside)
        if blocks is not None and len({shapes.around(block) for block in blocks}) == 1:
            yield blocks


def _batchable_block_order(
    program: Program, header: int, inside: set[int]
) -> tuple[int, ...] | None:
    """Returns the blocks of a loop in the order in which each iteration runs all of them; None if
    some block has not exactly one successor in the loop (it branches inside), if blocks are left
    over, or if an instruction cannot be in a batch (`_is_lane_independent`)."""
    order = [header]
    while True:
        block = program.blocks[order[-1]]
        further = [to for to in block.successors if to in inside]
        instructions = program.instructions[block.start : block.stop]
        if len(further) != 1 or not all(map(_is_lane_independent, instructions)):
            return None
        if further[0] == header:
            return tuple(order) if len(order) == len(inside) else None
        if further[0] in order:
            return None
        order.append(further[0])


def _is_lane_independent(instruction: Instruction) -> bool:
    """Returns whether an instruction can be in a batch of iterations: its lanes do not wait for
    others, it does not read the clock or call, is no matrix or texture instruction, and ends a
    basic block only by a `bra`."""
    operation = instruction.operation
    if may_wait_before(instruction) or operation.spec.unit in (Unit.MATRIX, Unit.TEXTURE):
        return False
    if operation.has(Effect.CALLS) or any(map(_reads_clock, instruction.operands)):
        return False
    return operation.kind is OpKind.BRANCH or not operation.has(Effect.ENDS_BASIC_BLOCK)


def _reads_clock(operand: Operand) -> bool:
    """Returns whether an operand is or contains a special register that depends on the time."""
    specials = (leaf for leaf in leaf_operands(operand) if isinstance(leaf, Special))
    return any(SPECIAL_REGISTERS[special.name].clock_bit is not None for special in specials)


def strided_loop(
    operand_shapes: OperandShapes, blocks: tuple[int, ...], candidates: Sequence[int]
) -> StridedLoop | None:
    """Returns the strided loop of `blocks`: those of the `candidates` (loads and stores) whose
    addresses are linear, the comparisons with linear operands by which lanes leave, and the
    instructions that both are computed by (`advances`). None if no candidate is linear, or if an
    instruction outside of `advances` would need a check for wrap-around. `operand_shapes` has the
    shapes that registers have in all of its blocks."""
    program, recurrences = operand_shapes.program, _Recurrences(operand_shapes, blocks)
    linear_accesses: list[int] = []
    slice_union: set[int] = set()
    # A candidate that is not linear stays in the loop, as an ordinary access in every iteration.
    for index in candidates:
        slice = recurrences.slice_of(index, [_address_base(program.instructions[index])])
        if slice is not None:
            linear_accesses.append(index)
            slice_union |= slice
    if not linear_accesses:
        return None
    compared: list[tuple[int, str]] = []
    for block in blocks:
        index = recurrences.comparison(block)
        operands = () if index is None else program.instructions[index].operands[1:3]
        slice = None if index is None else recurrences.slice_of(index, operands)
        if index is not None and slice is not None:
            relation = staying_relation(program, blocks, block, index)
            compared.append((index, relation))
            slice_union |= slice
    widened = tuple(
        conversion for conversion in recurrences.widened if conversion[0] in slice_union
    )
    for block in blocks:
        for index in range(program.blocks[block].start, program.blocks[block].stop):
            # Outside of `advances` nothing checks that the lanes of a widened operand do not wrap
            # around.
            if index not in slice_union and may_wrap(program.instructions[index], operand_shapes):
                return None
    order = [i for b in blocks for i in range(program.blocks[b].start, program.blocks[b].stop)]
    advances = tuple(index for index in order if index in slice_union)
    return StridedLoop(blocks, advances, widened, tuple(compared), tuple(linear_accesses))


def _address_base(instruction: Instruction) -> Operand:
    """Returns the operand that the address of a load or store begins with; it must have one."""
    address = next(operand for operand in instruction.operands if isinstance(operand, Address))
    assert address.base is not None
    return address.base


def _same_width(target: Operand, term: Term) -> bool:
    """Returns whether a register gets the value of a term without extension or truncation."""
    return isinstance(target, Register) and target.type.bits == term.type.bits


class _Recurrences:
    """Computes, by a fixed point, how the registers of a loop change from iteration to iteration
    (`Recurrence`). `widened` are the operands (instruction, source) that must not wrap around for
    that to hold."""

    def __init__(self, operand_shapes: OperandShapes, blocks: tuple[int, ...]) -> None:
        """Runs the fixed point for a loop whose blocks are `blocks`, in the order of an
        iteration."""
        self.program, self._operand_shapes, self._blocks = (
            operand_shapes.program,
            operand_shapes,
            blocks,
        )
        inside = (self.program.blocks[block] for block in blocks)
        self._order = [index for block in inside for index in range(block.start, block.stop)]
        self._writers: dict[Register, list[int]] = {}
        for index in self._order:
            for register in writes(self.program.instructions[index]):
                self._writers.setdefault(register, []).append(index)
        self.widened: dict[tuple[int, int], None] = {}
        self._linear: set[int] = set()
        self._states: dict[int, Mapping[Register, Recurrence]] = {}
        """The recurrences of registers before each instruction of RECORDED kinds, by its number."""
        self._solve()

    def _solve(self) -> None:
        """Assumes that each register which is live at the header and written in the loop advances
        by a constant; interprets one iteration, makes the registers NONLINEAR whose assumption it
        refutes, and repeats until none is refuted. The last interpretation leaves the results."""
        # Optimistic: `i` in `i = i + 4` is linear because it is assumed to be and nothing refutes
        # that; nothing could prove it from the start. Each round refutes at least one register and
        # restores none, so this ends.
        live = self.program.live_in[self._blocks[0]]
        begins = {r: Recurrence(advances=True, base=r) for r in self._writers if r in live}
        while True:
            self.widened.clear()
            self._linear.clear()
            state = dict(begins)
            for index in self._order:
                self._transfer(index, state)
            # An assumption fails if the register after an iteration is not its own value plus an
            # invariant.
            wrong = [r for r, was in begins.items() if was.linear and state[r].base != r]
            if not wrong:
                return
            begins = begins | dict.fromkeys(wrong, NONLINEAR)

    def _transfer(self, index: int, state: dict[Register, Recurrence]) -> None:
        """Sets in `state` the recurrences of an instruction's destinations: NONLINEAR for guarded
        instructions and those of which a result has no shape. Records the state before loads,
        stores, copies by lane and comparisons (`_states`), and the instruction as linear if all its
        results are (`_linear`)."""
        instruction = self.program.instructions[index]
        targets = tuple(
            flatten_operands(instruction.operands[: len(instruction.operation.spec.destinations)])
        )
        if instruction.operation.kind in RECORDED:
            self._states[index] = dict(state)
        here, results = self._operand_shapes.shapes, dict(self._operand_shapes.results(instruction))
        shaped = all(shape.is_affine and register in here for register, shape in results.items())
        # A guarded instruction may leave its register as it was, in some iterations or lanes.
        plain = shaped and instruction.guard is None
        recurrences = self._results(index, instruction, state) if plain else ()
        for number, target in enumerate(targets):
            if isinstance(target, Register):
                state[target] = recurrences[number] if number < len(recurrences) else NONLINEAR
        if recurrences and all(recurrence.linear for recurrence in recurrences):
            self._linear.add(index)

    def _results(
        self, index: int, instruction: Instruction, state: Mapping[Register, Recurrence]
    ) -> Sequence[Recurrence]:
        """Returns the recurrences of an instruction's results: its source's, without base, for
        `cvta`; invariant for a move of a special register or an address; those of its terms if it
        computes. One that advances is NONLINEAR where its register has another width. Empty if they
        are unknown: for other moves and instructions, or with a precondition."""
        operation = instruction.operation
        sources = tuple(flatten_operands(instruction.operands[len(operation.spec.destinations) :]))
        if operation.kind is OpKind.CONVERT_ADDRESS:
            [recurrences] = [self._operand(data_source, U64, state) for data_source in sources[:1]]
            return [Recurrence(recurrences.linear, recurrences.advances)]
        if operation.kind is OpKind.MOVE and not computes(instruction):
            return [INVARIANT] if isinstance(instruction.operands[1], Special | Symbol) else []
        if not computes(instruction) or operation.spec.preconditions:
            return []
        types = operation.source_types
        recurrences = [
            INVARIANT if type is None else self._operand(source, type, state)
            for source, type in zip(sources, types, strict=False)
        ]
        shapes, terms = self._operand_shapes.terms(instruction), operation.terms_for(len(sources))
        term_recurrences = [self._term(index, term, recurrences, shapes) for term in terms]
        targets = flatten_operands(instruction.operands[: len(operation.spec.destinations)])
        return [
            recurrence if not recurrence.advances or _same_width(target, term) else NONLINEAR
            for recurrence, target, term in zip(term_recurrences, targets, terms, strict=False)
        ]

    def _operand(
        self, operand: Operand, type: ScalarType, state: Mapping[Register, Recurrence]
    ) -> Recurrence:
        """Returns the recurrence of an operand that is read as `type`: invariant if it is no
        register or not written in the loop, NONLINEAR if it is written there but has none in
        `state` yet. An advancing register that is truncated loses its base register; one that is
        extended becomes NONLINEAR."""
        if not isinstance(operand, Register):
            return INVARIANT
        recurrence = state.get(operand, NONLINEAR if operand in self._writers else INVARIANT)
        if not recurrence.advances or operand.type.bits == type.bits:
            return recurrence
        return ADVANCING if operand.type.bits > type.bits else NONLINEAR

    def _term(
        self, index: int, term: Term, arguments: Sequence[Recurrence], shapes: TermShapes
    ) -> Recurrence:
        """Returns the recurrence of a term, given those of the instruction's arguments: invariant
        if all its arguments are, that of the chosen side for a selection by a constant. Of linear
        integers it is advancing for sums, negations, truncations, and products and shifts to the
        left by an invariant; also for the extension of an operand, which it adds to `widened`. A
        reinterpretation has that of its argument; all other terms are NONLINEAR. A sum retains its
        base only if one argument advances and is not subtracted."""
        if term.op == "const":
            return INVARIANT
        if term.op == "arg":
            return arguments[int(str(term.attr))]
        if term.op == "select" and (side := shapes.chosen(term)) is not None:
            return self._term(index, side, arguments, shapes)
        args = [self._term(index, argument, arguments, shapes) for argument in term.args]
        if not any(argument.advances or not argument.linear for argument in args):
            return INVARIANT
        if not term.type.is_integer or not all(argument.linear for argument in args):
            return NONLINEAR
        match term.op:
            case "add" | "sub":
                # `i + 4` is `i` plus an invariant. `4 - i` is not, nor is `i + j` where `j`
                # advances as well: they advance, but have no base.
                bases = [argument.base for argument in args if argument.advances]
                base = (
                    bases[0] if len(bases) == 1 and (term.op == "add" or args[0].advances) else None
                )
                return Recurrence(advances=True, base=base)
            case "neg" | "truncate":
                return ADVANCING
            case "reinterpret" if term.args[0].type.is_integer:
                return args[0]
            case "mul" if not (args[0].advances and args[1].advances):
                return ADVANCING
            case "shl" if not args[1].advances:
                return ADVANCING
            case "extend" if term.args[0].op == "arg":
                self.widened[index, int(str(term.args[0].attr))] = None
                return ADVANCING
            case _:
                return NONLINEAR

    def comparison(self, block: int) -> int | None:
        """Returns the index of the `setp` by which lanes leave at the end of a block, if the number
        of iterations for which they stay can be computed. It can if the last write of the branch's
        guard in this block is an unguarded comparison, without a Boolean operand, of affine
        integers of 32 bits or more. Lanes must stay by a relation in BOUNDING (any but `eq`), by
        `ne` only if both sides are uniform. None otherwise."""
        inside = self.program.blocks[block]
        guard = self.program.instructions[inside.stop - 1].guard
        if guard is None:
            return None
        for index in reversed(range(inside.start, inside.stop - 1)):
            instruction = self.program.instructions[index]
            if guard.register not in writes(instruction):
                continue
            modifiers = instruction.operation.modifiers
            if (
                instruction.operation.kind is not OpKind.COMPARE
                or instruction.guard is not None
                or "bool" in modifiers
            ):
                return None
            type = modifiers.scalar()
            if not type.is_integer or type.bits < 32 or instruction.operands[0] != guard.register:
                return None
            relation = staying_relation(self.program, self._blocks, block, index)
            shapes = [
                self._operand_shapes.shape(operand, type) for operand in instruction.operands[1:3]
            ]
            bounded = all(shape.is_affine for shape in shapes)
            # With `!=` each lane leaves in an iteration of its own unless both sides are uniform.
            if relation == "ne":
                bounded = bounded and all(shape.width == 1 and not shape.stride for shape in shapes)
            return index if bounded and relation in BOUNDING else None
        return None

    def slice_of(self, index: int, operands: Iterable[Operand]) -> set[int] | None:
        """Returns the backward slice of operands of instruction `index`, a recorded one
        (`_transfer`): the instructions of the loop, by number, that compute them, in any iteration.
        None if an operand, or a value that it is computed from, is not linear."""
        members: set[int] = set()
        pending = [register for register in operands if isinstance(register, Register)]
        state = self._states[index]
        if not all(state.get(register, INVARIANT).linear for register in pending):
            return None
        while pending:
            # All writers, also those after the use: the value that is live at the header comes from
            # them, in the iteration before.
            for index in self._writers.get(pending.pop(), ()):
                if index in members:
                    continue
                if index not in self._linear:
                    return None
                members.add(index)
                pending.extend(reads(self.program.instructions[index]))
        return members
