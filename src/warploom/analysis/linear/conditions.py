"""Computes the linear inequalities (facts, `predicates`) that hold at each instruction, from the
branches that lead to it and from its guard.

    if (i < n) x[i] = 0;           the store has the fact n - 1 - i (at least 0)

A forward data-flow analysis: a block has the facts that hold on all of its incoming edges. Where an
edge advances an iteration count, facts of it are rewritten to its new value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from warploom.analysis.linear.affine import LinearAnalysis
from warploom.analysis.linear.forms import Form, IndexVariable
from warploom.analysis.linear.predicates import (
    NO_FACTS,
    NO_IMPLICATIONS,
    Facts,
    Implications,
    PredicateExpression,
    guard_facts,
    implications_of,
    predicate_expressions,
    written_predicates,
)
from warploom.isa.instruction import flatten_operands
from warploom.program.cfg import ProgramBlock

MOST_VISITS = 8
"""Visits of a block after which its facts are dropped if they still change, to bound the
analysis."""


@dataclass(frozen=True, slots=True)
class PointFacts:
    """The facts at a point of the program, and by register name the implications of the predicates
    that have been written on the way to it."""

    facts: Facts = NO_FACTS
    implications: Mapping[str, Implications] = field(default_factory=dict[str, Implications])


@dataclass(frozen=True, slots=True)
class _IncomingEdge:
    """An edge to basic block `block`: the facts and implications at its end (`state`), and the
    values of that block's iteration counts after the edge, as forms of the variables before it
    (`iterations`; counts with an unknown change are missing)."""

    block: int
    state: PointFacts
    iterations: Mapping[IndexVariable, Form]

    def after(self, variable: IndexVariable) -> Form | None:
        """Returns a variable's value after the edge in terms of those before: from `iterations` if
        it is there; else itself, or None (unknown) if `block` is one where it may change."""
        stays = None if self.block in variable.at else Form(0, ((variable, 1),))
        return self.iterations.get(variable, stays)


def facts_by_instruction(analysis: LinearAnalysis) -> dict[int, Facts]:
    """Returns the facts (forms that are at least 0) at each reachable instruction, by its number:
    those at the start of its block and those that its guard implies. Instructions that write
    predicates are left out."""
    return _Conditions(analysis).of_instructions()


class _Conditions:
    """Propagates facts (forms that are at least 0) through a program whose registers have known
    forms. `written` are the expressions that instructions give predicates, by block, then
    instruction; `after` the register values at the ends of blocks; `states` the facts and the
    implications of predicates at starts of blocks, the result; `incoming_edges` the edges seen so
    far, by block, then by (predecessor, number of its successor)."""

    def __init__(self, analysis: LinearAnalysis) -> None:
        """Runs the analysis of facts on the results of the linear analysis; results are in `states`
        afterwards."""
        self.analysis, self.program = analysis, analysis.program
        self.written: dict[int, dict[int, dict[str, PredicateExpression]]] = {}
        for index in analysis.states:
            self._record_block(self.program.blocks[index])
        self.states: dict[int, PointFacts] = {0: PointFacts()}
        self.visits = Counter[int]()
        self.incoming_edges: dict[int, dict[tuple[int, int], _IncomingEdge]] = {
            0: {(-1, 0): _IncomingEdge(0, PointFacts(), {})}
        }
        self._solve()

    def _record_block(self, block: ProgramBlock) -> None:
        """Records the expressions that each instruction of a block gives predicates, in `written`,
        and the values of registers at the block's end, in `after`."""
        self.written[block.index] = {}
        for at, state in self.analysis.states_in(block):
            instruction = self.program.instructions[at]
            if written_predicates(instruction):
                sources = flatten_operands(
                    instruction.operands[len(instruction.operation.spec.destinations) :]
                )
                forms = [self.analysis.values.value(source, state).form for source in sources]
                self.written[block.index][at] = dict(predicate_expressions(instruction, forms))

    def of_instructions(self) -> dict[int, Facts]:
        """Returns the facts at each instruction that writes no predicate: those at the start of its
        block, with those that its guard implies."""
        facts_at: dict[int, Facts] = {}
        for index, state in self.states.items():
            block, implications = self.program.blocks[index], dict(state.implications)
            for at in range(block.start, block.stop):
                if at in self.written[index]:
                    implications |= self._evaluated(index, at, implications)
                else:
                    guard = self.program.instructions[at].guard
                    facts_at[at] = state.facts | guard_facts(implications, guard, holds=True)
        return facts_at

    def _evaluated(
        self, block: int, at: int, implications: Mapping[str, Implications]
    ) -> dict[str, Implications]:
        """Returns the implications of the predicates that instruction `at` of a block writes, from
        those that registers have before it."""
        expressions = self.written[block][at]
        return {
            name: implications_of(expression, implications)
            for name, expression in expressions.items()
        }

    def _solve(self) -> None:
        """Propagates facts and implications along edges from the entry until nothing changes. A
        block that is visited MOST_VISITS (8) times has none from then on."""
        waiting = [0]
        while waiting:
            index = waiting.pop(0)
            self.visits[index] += 1
            block, state = self.program.blocks[index], self.states[index]
            # To have no facts is always right: what is proven from facts is only less then.
            if self.visits[index] == MOST_VISITS:
                state = self.states[index] = PointFacts()
            implications = dict(state.implications)
            for at in self.written[index]:
                implications |= self._evaluated(index, at, implications)
            taken = self.analysis.successors(block)
            for number, facts in enumerate(self._edge_facts(block, implications)):
                successor = block.successors[number]
                if successor in taken:
                    incoming = PointFacts(state.facts | facts, implications)
                    if self._enter(successor, (index, number), incoming):
                        waiting.append(successor)

    def _edge_facts(
        self, block: ProgramBlock, implications: Mapping[str, Implications]
    ) -> Iterator[Facts]:
        """Yields, for each successor of a block, the facts that the branch at its end implies on
        that edge: for the first, that its guard holds, for the second, that it does not; none if it
        has no guard or not two different successors."""
        guard = self.program.instructions[block.stop - 1].guard
        if guard is None or len(set(block.successors)) != 2 or len(block.successors) != 2:
            yield from (NO_FACTS for _ in block.successors)
            return
        yield guard_facts(implications, guard, holds=True)
        yield guard_facts(implications, guard, holds=False)

    def _enter(self, block: int, edge: tuple[int, int], state: PointFacts) -> bool:
        """Replaces the facts `state` of one incoming edge of a block, (predecessor, number of its
        successor), and joins those of all edges seen so far into `states`; returns whether that
        changes the block's. Does nothing (False) once the block has had MOST_VISITS visits."""
        if self.visits[block] >= MOST_VISITS:
            return False
        # Edges not yet seen are left out of the join, as if all facts held on them: the first
        # visits are optimistic, and the block is entered again from each edge that is found later.
        incoming_edges = self.incoming_edges.setdefault(block, {})
        along = edge[0], block
        counts = self.analysis.joins.counts_after(along, self.analysis.along(along))
        incoming_edges[edge] = _IncomingEdge(block, state, counts)
        joined = _joined(list(incoming_edges.values()))
        changed = joined != self.states.get(block)
        self.states[block] = joined
        return changed


def _joined(incoming_edges: list[_IncomingEdge]) -> PointFacts:
    """Returns the facts, and the implications of predicates, that hold on all incoming edges of a
    block. Candidates are the facts of any edge, rewritten for the change of iteration counts on it.
    Implications retain only facts of variables that do not change at the block's start; empty ones
    are left out."""
    # This is induction over iterations. At a header, `i <= n` as seen on the entry edge is a
    # candidate; it stays if it holds on the back edge, too, where `i` stands for the value before
    # plus the step: there it follows from the loop's own comparison.
    candidates = frozenset[Form]().union(*map(_facts_after_edge, incoming_edges))
    facts = _strongest(
        fact for fact in candidates if all(_holds_on_edge(fact, edge) for edge in incoming_edges)
    )
    implications = {
        name: _invariant_on_edge(implication, incoming_edges[0])
        for name, implication in incoming_edges[0].state.implications.items()
    }
    for edge in incoming_edges[1:]:
        common = {
            name: _invariant_on_edge(implication, edge)
            for name, implication in edge.state.implications.items()
        }
        implications = {
            name: Implications(
                implication.where_true & common[name].where_true,
                implication.where_false & common[name].where_false,
            )
            for name, implication in implications.items()
            if name in common
        }
    return PointFacts(
        facts,
        {
            name: implication
            for name, implication in implications.items()
            if implication != NO_IMPLICATIONS
        },
    )


def _invariant_on_edge(implication: Implications, edge: _IncomingEdge) -> Implications:
    """Returns an implication with only those facts whose variables cannot change at the start of
    the edge's block: of what held when the predicate was written, only these still hold after
    it."""

    def left(facts: Facts) -> Facts:
        """Returns the facts without those of variables that may change at the start of
        `edge.block`."""
        return frozenset(f for f in facts if all(edge.block not in v.at for v, _ in f.strides))

    return replace(
        implication,
        where_true=left(implication.where_true),
        where_false=left(implication.where_false),
    )


def _facts_after_edge(edge: _IncomingEdge) -> Iterator[Form]:
    """Yields the facts of an edge, rewritten for the variables after it: from a fact of a variable
    that grows by a constant, its stride times that constant is subtracted. Facts of variables with
    another or unknown change, and those that always hold, are left out."""
    for fact in edge.state.facts:
        shifted: Form | None = fact
        for variable, stride in fact.strides:
            after = edge.after(variable)
            step = after.plus(Form(0, ((variable, 1),)), -1) if after else None
            moves = step is not None and step.is_constant
            shifted = (
                shifted.plus(Form(-stride * step.constant)) if shifted and step and moves else None
            )
        if shifted is not None and not _is_always_true(shifted):
            yield shifted


def _holds_on_edge(fact: Form, edge: _IncomingEdge) -> bool:
    """Returns whether a fact about the variables after an edge always holds or follows from one
    fact of the edge, of the same strides; False if the change of a variable is unknown."""
    before = Form(fact.constant)
    for variable, stride in fact.strides:
        after = edge.after(variable)
        if after is None:
            return False
        before = before.plus(after, stride)
    stronger = (edge_fact for edge_fact in edge.state.facts if edge_fact.strides == before.strides)
    return _is_always_true(before) or any(
        edge_fact.constant <= before.constant for edge_fact in stronger
    )


def _strongest(facts: Iterable[Form]) -> Facts:
    """Returns the facts that do not follow from another fact with the same strides."""
    least_constants: dict[tuple[tuple[IndexVariable, int], ...], int] = {}
    for fact in facts:
        least_constants[fact.strides] = min(
            fact.constant, least_constants.get(fact.strides, fact.constant)
        )
    return frozenset(Form(constant, strides) for strides, constant in least_constants.items())


def _is_always_true(fact: Form) -> bool:
    """Returns whether a fact, `fact >= 0`, holds for all values of its variables, each from 0 to
    its extent less 1 (None: without a bound): its least value is not negative."""
    falls = any(variable.extent is None and stride < 0 for variable, stride in fact.strides)
    return not falls and fact.low >= 0
