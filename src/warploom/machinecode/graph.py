"""The control-flow graph of a kernel's machine code, the functions that it calls put where they are
called from, as `program.inline` does with PTX. A call that leads out of the listing, to what the
driver links (`vprintf`) or to what a register holds, returns to the instruction after it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from warploom.machinecode.listing import Listing, MachineInstruction
from warploom.machinecode.operands import ListingError

BRANCHES = frozenset({"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU"})
LEADS_ELSEWHERE = BRANCHES | {"CALL", "RET", "EXIT", "KILL"}
"""Opcodes after which control continues elsewhere, if their guard is true."""

ENDS = LEADS_ELSEWHERE | {"BSYNC"}
"""Opcodes after which a basic block ends."""

CONDITIONS = frozenset({"DIV", "CONV"})
"""Modifiers with which a branch is taken where the warp has diverged, or has not."""

MOST_NODES = 20_000
MOST_CALLS = 8
"""So deep may calls be nested; deeper ones are taken for recursion."""


@dataclass(frozen=True)
class Node:
    """A basic block in one of its places: instructions `start` up to but not including `stop` of
    the listing. `successors` are nodes; `leaves`: a warp's lanes can end here."""

    start: int
    stop: int
    successors: tuple[int, ...]
    leaves: bool

    @property
    def size(self) -> int:
        """Machine instructions in it."""
        return self.stop - self.start


def graph_of(listing: Listing) -> tuple[Node, ...]:
    """Returns the graph of a kernel: the reachable nodes, of which node 0 is the entry.

    Raises ListingError for a branch whose target is unknown, and for recursion.
    """
    return _Builder(listing).build()


def is_branch(made: MachineInstruction, functions: Mapping[str, int]) -> bool:
    """Returns whether an instruction leads to another place of its function: a branch, or a call of
    what is not the begin of a function, from which nothing returns: ptxas makes such calls for
    conditional branches that leave a loop (`@P0 CALL.REL.NOINC`, found in its listings)."""
    if made.name != "CALL":
        return made.name in BRANCHES
    return bool(made.targets) and set(functions.values()).isdisjoint(made.targets)


_Context = tuple[int, ...]
"""The calls that a block is in: the instruction after each."""


class _Builder:
    def __init__(self, listing: Listing) -> None:
        self._code = listing.instructions
        self._at = {made.offset: index for index, made in enumerate(self._code)}
        self._functions = listing.functions
        self._starts = self._leaders(listing.functions)
        self._numbers: dict[tuple[_Context, int], int] = {}
        self._todo: list[tuple[_Context, int]] = []

    def build(self) -> tuple[Node, ...]:
        self._number((), 0)
        nodes: list[Node] = []
        for context, start in self._todo:  # grows on the way
            place = bisect_right(self._starts, start)
            stop = self._starts[place] if place < len(self._starts) else len(self._code)
            last = self._code[stop - 1]
            ways = self._ways(context, last, stop)
            leaves = last.name in ("EXIT", "KILL")
            nodes.append(Node(start, stop, ways, leaves))
        return tuple(nodes)

    def _leaders(self, functions: Mapping[str, int]) -> list[int]:
        found = {0, *(self._at[offset] for offset in functions.values() if offset in self._at)}
        for index, made in enumerate(self._code):
            found.update(self._at[target] for target in made.targets)
            if made.name in ENDS:
                found.add(index + 1)
        return sorted(index for index in found if index < len(self._code))

    def _number(self, context: _Context, index: int) -> int:
        if index >= len(self._code):
            raise ListingError("execution continues past the end of the machine code")
        key = context, index
        if key not in self._numbers:
            if len(self._numbers) >= MOST_NODES or len(context) > MOST_CALLS:
                raise ListingError("the machine code has calls that are nested too deeply")
            self._numbers[key] = len(self._numbers)
            self._todo.append(key)
        return self._numbers[key]

    def _ways(self, context: _Context, last: MachineInstruction, behind: int) -> tuple[int, ...]:
        """Returns where control goes from a block that ends with this instruction."""
        conditional = (
            bool(last.guard)
            or any(operand.kind.value == "predicate" for operand in last.operands)
            or not CONDITIONS.isdisjoint(last.modifiers)
        )
        found: list[int] = []
        if is_branch(last, self._functions):
            if not last.targets:
                raise ListingError(f"the target of {last} is not known")
            found += [self._number(context, self._at[target]) for target in last.targets]
        elif last.name == "CALL":
            inside = [self._number((*context, behind), self._at[to]) for to in last.targets]
            found += inside or [self._number(context, behind)]
        elif last.name == "RET":
            if not context:
                raise ListingError("the machine code returns without a call")
            found.append(self._number(context[:-1], context[-1]))
        if conditional or last.name not in LEADS_ELSEWHERE:
            found.append(self._number(context, behind))
        return tuple(dict.fromkeys(found))
