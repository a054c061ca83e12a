"""Finds where the lanes of a warp can part in machine code, and where they wait for each other.

Lanes part at a conditional branch. They wait at the BSYNC of a convergence barrier, whose BSSY
names the instruction behind it: each group of lanes that arrives issues the BSYNC, and one group
goes on. Sources: NVIDIA, "Execution of divergent threads using a convergence barrier" (patent
US 10067768); Huerta et al., "Control Flow Management in Modern GPUs" (2024). Without a BSYNC they
stay apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warploom.analysis.program import Program, Site
from warploom.machinecode.evidence import site_of
from warploom.machinecode.graph import BRANCHES, Node
from warploom.machinecode.lines import Owners
from warploom.machinecode.listing import Listing

_BRANCHES = ("bra", "brx")
"""PTX instructions at which lanes part."""


@dataclass(frozen=True)
class ConvergenceRegion:
    """The code in which lanes may be apart between the BSSY of a convergence barrier and its BSYNC:
    the nodes that contain the one (`starts`) and end with the other (`sync`), and the nodes
    between them. `breaks`: lanes can leave the barrier and go elsewhere."""

    starts: tuple[int, ...]
    sync: int
    inside: frozenset[int]
    breaks: bool


@dataclass(frozen=True)
class Divergence:
    """The divergence that a graph has room for: by PTX branch the nodes that end with a branch made
    for it, conditional branches that were made for none, and the regions."""

    branches: Mapping[Site, tuple[int, ...]] = field(default_factory=dict[Site, tuple[int, ...]])
    others: tuple[int, ...] = ()
    regions: tuple[ConvergenceRegion, ...] = ()


def divergence_of(
    program: Program, listing: Listing, nodes: Sequence[Node], owners: Owners
) -> Divergence:
    """Return the divergence that a graph has room for."""
    ptx = _conditions(program)
    branches: dict[Site, list[int]] = defaultdict(list)
    others: list[int] = []
    for number, node in enumerate(nodes):
        last = listing.instructions[node.stop - 1]
        if last.name in BRANCHES and len(node.successors) > 1:
            site = site_of(last, owners)
            condition = ptx.get(site) if site is not None else None
            if condition is not None:
                branches[condition].append(number)
            else:
                others.append(number)
    kept = {site: tuple(numbers) for site, numbers in branches.items()}
    return Divergence(kept, tuple(others), tuple(_regions(listing, nodes)))


def _conditions(program: Program) -> dict[Site, Site]:
    """Return the branches of the PTX at which lanes can part, each by itself and by the jump at the
    end of the block that it alone leads to: ptxas makes one branch of both, where it guards the
    instructions of that block."""
    blocks = program.blocks
    before: dict[int, list[int]] = defaultdict(list)
    for block in blocks:
        for to in block.successors:
            before[to].append(block.stop - 1)
    ends = {block.stop - 1 for block in blocks if len(block.successors) > 1}
    ends = {index for index in ends if program.instructions[index].operation.name in _BRANCHES}
    found = {program.sites[index]: program.sites[index] for index in ends}
    for block in blocks:
        [*leading] = before[block.index]
        if len(leading) == 1 and leading[0] in ends and block.stop - 1 not in ends:
            found.setdefault(program.sites[block.stop - 1], program.sites[leading[0]])
    return found


def _regions(listing: Listing, nodes: Sequence[Node]) -> list[ConvergenceRegion]:
    code = listing.instructions
    place = {made.offset: index for index, made in enumerate(code)}
    broken = Counter(_barrier_of(listing, i) for i, made in enumerate(code) if made.name == "BREAK")
    starts: dict[int, list[int]] = defaultdict(list)
    inside: dict[int, set[int]] = defaultdict(set)
    breaks: set[int] = set()
    for number, node in enumerate(nodes):
        for index in range(node.start, node.stop):
            made = code[index]
            if made.name != "BSSY" or not made.targets:
                continue
            found = _region(nodes, number, place[made.targets[0]])
            if found is None:
                continue
            sync, between = found
            starts[sync].append(number)
            inside[sync] |= between
            if broken[_barrier_of(listing, index)]:
                breaks.add(sync)
    return [
        ConvergenceRegion(tuple(starts[sync]), sync, frozenset(inside[sync]), sync in breaks)
        for sync in starts
    ]


def _barrier_of(listing: Listing, index: int) -> str:
    """Returns the convergence barrier of an instruction ("B0")."""
    return next((one.text for one in listing.instructions[index].operands), "")


def _region(nodes: Sequence[Node], start: int, behind: int) -> tuple[int, set[int]] | None:
    """Returns the node whose BSYNC ends a region, which stands before instruction `behind`, and the
    nodes on the ways there from `start`; None where no way leads there."""
    sync: int | None = None
    inside = {start}
    waiting = list(nodes[start].successors)
    while waiting:
        number = waiting.pop()
        if number in inside:
            continue
        if nodes[number].stop == behind:
            sync = number if sync is None else sync
            if number == sync:
                continue
        inside.add(number)
        waiting += nodes[number].successors
    return None if sync is None else (sync, inside)
