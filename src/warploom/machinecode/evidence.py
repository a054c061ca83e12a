"""Gathers the evidence that ties machine code to PTX: how many copies of each PTX instruction a
basic block of the machine code has.

The line table names the PTX instruction that a machine instruction was made for. One PTX
instruction becomes several machine instructions, and loops are unrolled: if a block has 12 of them
that are 4 times the same 3, it has 4 copies. So the copies are how often the rarest of its opcodes
comes; one access that ptxas merged of several turns of a loop is as many (`machinecode.merged`).
Anchors (memory, barriers, matrices, operations among lanes) are neither left out nor done more
often than in the PTX, so they weigh more than arithmetic, which is folded, moved out of loops, or
done for both sides of a branch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from warploom.isa.instruction import Instruction
from warploom.isa.kinds import OpKind
from warploom.isa.routines import ordinary_results
from warploom.isa.spec import Unit
from warploom.machinecode.copies import ByNode, computing
from warploom.machinecode.graph import Node
from warploom.machinecode.lines import Sites
from warploom.machinecode.listing import Listing, MachineInstruction
from warploom.machinecode.merged import Merging
from warploom.machinecode.opcodes import execution_of
from warploom.program.program import Program, Site

ANCHOR, ARITHMETIC, OTHER = 8.0, 3.0, 1.0
"""Weights of evidence (estimates)."""

SPECULATED = 0.25
"""What it weighs, of its weight, that arithmetic was done more often than in the PTX: both sides of
a short branch are, where the results are selected afterwards (an estimate)."""

_ANCHORS = (Unit.MEMORY, Unit.ATOMIC, Unit.BARRIER, Unit.TEXTURE, Unit.MATRIX, Unit.WARP)
_ARITHMETIC = (Unit.FLOAT, Unit.CONVERT)
_ANCHOR_PIPES = ("lsu", "tex", "tensor", "adu")
_HELPERS = ("LDC", "S2R")
"""Instructions of these pipelines that only give an anchor its operands."""
_NO_EVIDENCE = (Unit.MOVE, Unit.CONTROL)
"""Moves and branches vanish, or come where values or paths join."""
_ROUTINE = "slowpath"
"""The routines for special values have it in their names."""


class Executions(Enum):
    """Names of which executions of a PTX instruction evidence speaks: of all, of those with all
    lanes of a warp, of those that call a routine for special values (`isa.routines`), or of the
    passes of an atomic, one for each lane at an address."""

    ALL = auto()
    WHOLE = auto()
    ROUTINE = auto()
    PASSES = auto()


@dataclass(frozen=True)
class Evidence:
    """The copies of one PTX instruction by node, where it has any; `weight` is for executing them
    less often than the PTX instruction, `excess` for more often. `of`: its executions that they are
    for."""

    site: Site
    copies: dict[int, int]
    weight: float
    excess: float
    of: Executions = Executions.ALL


def evidence_of(
    program: Program, listing: Listing, nodes: Sequence[Node], owners: Sites
) -> list[Evidence]:
    """Returns the evidence of all PTX instructions of a program that have some; `owners` are the
    instructions of the lines of the assembled text."""
    code: dict[Site, Instruction] = {}
    for site, made in zip(program.sites, program.instructions, strict=True):
        code.setdefault(site, made)
    inside: dict[Site, dict[int, list[MachineInstruction]]] = defaultdict(dict)
    for number, node in enumerate(nodes):
        for made in listing.instructions[node.start : node.stop]:
            site = site_of(made, owners)
            if site in code:
                inside[site].setdefault(number, []).append(made)
    found: list[Evidence] = []
    others: list[Evidence] = []
    routines = frozenset(at for name, at in listing.functions.items() if _ROUTINE in name)
    computes = {name: at for name, at in listing.functions.items() if at not in routines}
    merging = Merging(program)
    present: dict[int, list[Site]] = defaultdict(list)
    for site, by_node in inside.items():
        for number, made in _main(by_node, code[site], ANCHOR, {}).items():
            if made:
                present[number].append(site)
    for site, by_node in inside.items():
        weight = _weight(code[site])
        if code[site].operation.spec.unit is Unit.ATOMIC:
            others += _reductions(site, by_node)
        if ordinary_results(code[site].operation) is not None:
            others += _routine_calls(site, by_node, routines)
        main = _main(by_node, code[site], weight, computes)
        copies = {
            number: _copies(made, site, merging, present[number])
            for number, made in main.items()
            if made
        }
        if weight and copies:
            guarded = all(one.guard for made in main.values() for one in made)
            # ptxas makes more comparisons where it makes more branches, as for unrolled loops.
            more = guarded or code[site].operation.kind is OpKind.COMPARE
            excess = 0.0 if more else weight * (1 if weight == ANCHOR else SPECULATED)
            found.append(Evidence(site, copies, weight, excess))
    return [*found, *others]


def _reductions(site: Site, made: dict[int, list[MachineInstruction]]) -> list[Evidence]:
    """Returns evidence of an atomic for which ptxas made two ways: where all lanes of a warp are
    active, they are reduced by shuffles first."""
    nodes = {number: 1 for number, code in made.items() if any(one.name == "SHFL" for one in code)}
    return [Evidence(site, nodes, ANCHOR, ANCHOR, Executions.WHOLE)] if nodes else []


def _routine_calls(
    site: Site, made: dict[int, list[MachineInstruction]], routines: frozenset[int]
) -> list[Evidence]:
    """Returns evidence of an operation whose copies each call a routine for special values; they
    begin at offsets `routines`."""
    calls = {
        number: 1
        for number, code in made.items()
        if any(one.name == "CALL" and not routines.isdisjoint(one.targets) for one in code)
    }
    return [Evidence(site, calls, ANCHOR, ANCHOR, Executions.ROUTINE)] if calls else []


def site_of(made: MachineInstruction, owners: Sites) -> Site | None:
    """Returns the PTX instruction that a machine instruction was made for, None without one."""
    return owners[made.line - 1] if made.line is not None and made.line <= len(owners) else None


def _weight(made: Instruction) -> float:
    unit = made.operation.spec.unit
    space = made.operation.modifiers.text("space", "")
    if (
        unit in _NO_EVIDENCE
        or made.operation.kind is OpKind.CONVERT_ADDRESS
        or space.startswith("param")
    ):
        return 0.0
    if unit in _ANCHORS:
        return ANCHOR
    return ARITHMETIC if unit in _ARITHMETIC else OTHER


def _main(by_node: ByNode, ptx: Instruction, weight: float, functions: Mapping[str, int]) -> ByNode:
    """Returns the machine instructions that do what a PTX instruction is for: of an anchor, not
    those that work out its address; of an atomic, not those that reduce what lanes have.
    `functions` are those that compute results."""
    if weight != ANCHOR:
        return computing(by_node, ptx.operation.name, functions)
    helpers = (*_HELPERS, "SHFL") if ptx.operation.spec.unit is Unit.ATOMIC else _HELPERS
    return {
        number: [
            one
            for one in made
            if one.name not in helpers and execution_of(one.name).pipe in _ANCHOR_PIPES
        ]
        for number, made in by_node.items()
    }


def _copies(
    made: Sequence[MachineInstruction], site: Site, merging: Merging, present: Sequence[Site]
) -> int:
    """Returns how often the rarest opcode comes; one that stands for several turns, as often as
    those."""
    often: Counter[str] = Counter()
    for one in made:
        merged = merging.of(one, site, present)
        often[one.opcode] += merged.turns if merged is not None else 1
    return min(often.values())
