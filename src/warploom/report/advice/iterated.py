"""Advice about reductions over a warp or a block in each iteration of a loop that only adds up
their results: one reduction after the loop has the same result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from warploom.analysis.linear.intervals import is_barrier_of_all_threads
from warploom.isa.instruction import Instruction, Register, Space, flatten_operands
from warploom.isa.kinds import OpKind
from warploom.program.accesses import accesses
from warploom.program.program import Program, ProgramBlock
from warploom.program.uses import reads, writes
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.loops import FAMILIES, instructions_around
from warploom.report.advice.origins import register_writers

LEAST_STEPS = 3
"""Shuffles and barriers of an iteration from which on they are those of a reduction."""

COPIES = frozenset({"mov", "selp"})


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop whose threads exchange values: its instructions, the shuffles and loads from shared
    memory by which they receive them (`received`), the shuffles and stores to shared memory by
    which they send them (`sent`), and the instructions that write each register (`writers`)."""

    instructions: frozenset[int]
    received: frozenset[int]
    sent: frozenset[int]
    writers: Mapping[str, Sequence[int]]
    carried: Sequence[str]
    """The registers that are written outside of the loop, too."""

    @classmethod
    def of(cls, program: Program, instructions: frozenset[int]) -> _Loop:
        """Finds the exchanges of a loop."""
        ones = {index: program.instructions[index] for index in instructions}
        shuffles = {i for i, one in ones.items() if one.operation.kind is OpKind.SHUFFLE}
        shared = {
            op: {i for i, one in ones.items() if (Space.SHARED, op) in accesses(one)}
            for op in ("load", "store")
        }
        received, sent = shuffles | shared["load"], shuffles | shared["store"]
        everywhere = register_writers(program)
        writers = {
            name: [i for i in everywhere[name] if i in instructions]
            for name in _written(program, instructions)
        }
        carried = sorted(name for name in writers if len(writers[name]) < len(everywhere[name]))
        return cls(instructions, frozenset(received), frozenset(sent), writers, carried)

    def sources(self, program: Program, registers: Iterable[Register]) -> set[int]:
        """Returns the instructions of the loop from whose results some registers are computed,
        without those that compute the addresses of loads, or values in memory."""
        found, waiting = set[int](), [each.name for each in registers]
        while waiting:
            for index in self.writers.get(waiting.pop(), ()):
                if index not in found:
                    found.add(index)
                    one = program.instructions[index]
                    waiting += [] if any(accesses(one)) else _names(reads(one))
        return found

    def of_operations(self, program: Program, names: Set[str]) -> list[int]:
        """Returns the instructions of the loop with some operations."""
        found = (i for i in self.instructions if program.instructions[i].operation.name in names)
        return sorted(found)


def iterated_reductions(case: Case) -> Iterator[Advice]:
    """Yields advice for loops that reduce values of several threads in each iteration, and only add
    up the results."""
    program, executions = case.program, case.counters.executions
    for add, loop in _totals(program):
        entries = (int(executions[block.start]) for block in _entries(program, loop))
        iterations = max(entries, default=0) / case.warps
        steps = [i for i in loop.instructions if _is_step(program.instructions[i])]
        executed = sum(int(executions[index]) for index in steps)
        if iterations < 2 or executed < LEAST_STEPS * iterations * case.warps:
            continue
        saved = 1 - 1 / iterations
        spent = loop.instructions - _own_values(program, loop)
        fewer = int(sum(int(executions[index]) for index in spent) * saved)
        counts = case.counters.by_instruction()
        wavefronts = sum(
            counts[index].get(f"shared_{op}_wavefronts", 0)
            for index in spent
            for op in ("load", "store")
        )
        yield Advice(
            "reduction in each iteration",
            program.line(add),
            f"warps executed {executed:,} barriers and shuffles in a loop that only adds up the "
            "results of its reductions",
            "Let each thread add up its own values in a local variable during the loop, and reduce "
            "these once, after the loop.",
            fewer,
            saves={"issued": fewer, "wavefronts": wavefronts * saved},
        )


def _totals(program: Program) -> Iterator[tuple[int, _Loop]]:
    """Yields for each loop an instruction that adds the result of a reduction to a total, if it has
    one."""
    for loop in _loops(program):
        families = (each for each in FAMILIES if _is_reduction(program, loop, each))
        adds = (_add(program, loop, total, each) for each in families for total in loop.carried)
        found = next((add for add in adds if add is not None), None)
        if found is not None:
            yield found, loop


def _loops(program: Program) -> Iterator[_Loop]:
    """Yields the outermost loops in which threads exchange values."""
    done = set[int]()
    everywhere = _Loop.of(program, frozenset(range(len(program.instructions))))
    for index in sorted(everywhere.received):
        if index not in done and (around := instructions_around(program, index)):
            done |= around
            yield _Loop.of(program, around)


def _add(program: Program, loop: _Loop, total: str, family: Set[str]) -> int | None:
    """Returns an instruction that adds a value that was received to a register which is carried
    from one iteration to the next, if the loop only adds to it: nothing else there reads it."""
    adds = loop.of_operations(program, family | COPIES)
    sums = _passed_on(program, adds, {total})
    readers = {i for i in loop.instructions if sums & _names(reads(program.instructions[i]))}
    if not readers <= set(adds) or total not in _written(program, readers):
        return None
    for index in sorted(readers):
        addends = [each for each in reads(program.instructions[index]) if each.name not in sums]
        if addends and loop.sources(program, addends) & loop.received:
            return index
    return None


def _is_reduction(program: Program, loop: _Loop, family: Set[str]) -> bool:
    """Returns whether threads send on what they received, and combine it by operations of a family
    alone."""
    copies = loop.of_operations(program, COPIES)
    values = _passed_on(program, copies, _written(program, loop.received))
    users = {
        program.instructions[index].operation.name
        for index in loop.instructions - loop.sent
        if values & _names(reads(program.instructions[index]))
    }
    return users <= family | COPIES and any(
        _is_sent_on(program, loop, index) for index in loop.sent
    )


def _is_sent_on(program: Program, loop: _Loop, index: int) -> bool:
    """Returns whether the value that an instruction sends is computed from one that was
    received."""
    values = _sent_values(program.instructions[index])
    return bool((loop.sources(program, values) - {index}) & loop.received)


def _sent_values(one: Instruction) -> list[Register]:
    """Returns the registers of a shuffle or a store whose values are sent, not the address."""
    sent = one.operands[1:2] if one.operation.kind is OpKind.SHUFFLE else one.operands[1:]
    return [each for each in flatten_operands(sent) if isinstance(each, Register)]


def _own_values(program: Program, loop: _Loop) -> set[int]:
    """Returns the instructions that compute what threads send of their own, with their loads."""
    found = set[int]()
    for index in loop.sent:
        if not _is_sent_on(program, loop, index):
            found |= loop.sources(program, _sent_values(program.instructions[index]))
    addresses = [each for index in found for each in reads(program.instructions[index])]
    return found | loop.sources(program, addresses)


def _entries(program: Program, loop: _Loop) -> list[ProgramBlock]:
    """Returns the basic blocks by which a loop is entered."""
    inside = [block for block in program.blocks if block.start in loop.instructions]
    numbers = {block.index for block in inside}
    outside = [block for block in program.blocks if block.index not in numbers]
    entered = {to for block in outside for to in block.successors}
    return [block for block in inside if block.index in entered]


def _is_step(one: Instruction) -> bool:
    return one.operation.kind is OpKind.SHUFFLE or is_barrier_of_all_threads(one)


def _passed_on(program: Program, through: Sequence[int], values: set[str]) -> set[str]:
    """Returns some registers, and those that instructions of `through` compute from them."""
    while True:
        readers = [i for i in through if values & _names(reads(program.instructions[i]))]
        more = _written(program, readers) - values
        if not more:
            return values
        values = values | more


def _written(program: Program, indices: Iterable[int]) -> set[str]:
    return {name for i in indices for name in _names(writes(program.instructions[i]))}


def _names(registers: Iterable[Register]) -> set[str]:
    return {each.name for each in registers}
