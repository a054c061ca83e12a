"""Finds where a warp can diverge in machine code, and where its lanes reconverge.

Warps diverge at a conditional branch. Lanes wait at the BSYNC of a convergence barrier, whose BSSY
names the instruction after it: each group of lanes that arrives issues the BSYNC, and one group
goes on. Sources: NVIDIA, "Execution of divergent threads using a convergence barrier" (patent US
10067768); Huerta et al., "Control Flow Management in Modern GPUs" (2024). Without a BSYNC they stay
diverged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warploom.isa.kinds import Effect
from warploom.machinecode.evidence import site_of
from warploom.machinecode.graph import Node, is_branch
from warploom.machinecode.lines import Sites
from warploom.machinecode.listing import Listing
from warploom.program.program import Program, Site
from warploom.program.uses import writes


@dataclass(frozen=True)
class ConvergenceRegion:
    """Describes the code in which a warp may be diverged, between the BSSY of a convergence barrier
    and its BSYNC: the nodes that contain a BSSY (`starts`), the node that ends with the BSYNC
    (`sync`), and the nodes between them. `breaks`: lanes can leave the barrier and go elsewhere."""

    starts: tuple[int, ...]
    sync: int
    inside: frozenset[int]
    breaks: bool


@dataclass(frozen=True)
class Divergence:
    """Lists where warps can diverge in a graph: by PTX branch the nodes that end with a machine
    branch made for it (`branches`), the nodes that end with a conditional branch made for none
    (`others`), and the regions up to reconvergence."""

    branches: Mapping[Site, tuple[int, ...]] = field(default_factory=dict[Site, tuple[int, ...]])
    others: tuple[int, ...] = ()
    regions: tuple[ConvergenceRegion, ...] = ()


def divergence_of(
    program: Program, listing: Listing, nodes: Sequence[Node], owners: Sites
) -> Divergence:
    """Returns where warps can diverge in a graph."""
    jumps, conditions = _jumps(program), _conditions(program)
    branches: dict[Site, list[int]] = defaultdict(list)
    unnamed: list[int] = []
    for number, node in enumerate(nodes):
        last = listing.instructions[node.stop - 1]
        if len(node.successors) > 1 and is_branch(last, listing.functions):
            branch = jumps.get(site_of(last, owners))
            if branch is not None:
                branches[branch].append(number)
            else:
                unnamed.append(number)
    others: list[int] = []
    named = frozenset(branches)
    for number in unnamed:
        branch = conditions.get(_condition(listing, nodes[number], owners))
        if branch is not None and branch not in named:
            branches[branch].append(number)
        else:
            others.append(number)
    kept = {site: tuple(numbers) for site, numbers in branches.items()}
    return Divergence(kept, tuple(others), tuple(regions_of(listing, nodes)))


def _condition(listing: Listing, node: Node, owners: Sites) -> Site | None:
    """Returns the PTX instruction that the condition of the branch at the end of a node was made
    for, where it is worked out in the node."""
    code = listing.instructions
    guard = code[node.stop - 1].guard.removeprefix("!")
    for made in reversed(code[node.start : node.stop - 1]):
        if guard in made.writes:
            return site_of(made, owners)
    return None


def _branches(program: Program) -> frozenset[int]:
    """Returns the branches of the PTX at which a warp can diverge, by their index."""
    ends = (block.stop - 1 for block in program.blocks if len(block.successors) > 1)
    code = program.instructions
    return frozenset(index for index in ends if code[index].operation.has(Effect.BRANCHES))


def _conditions(program: Program) -> dict[Site | None, Site]:
    """Returns the branches of the PTX by what works out their condition in their basic block."""
    found: dict[Site | None, Site] = {}
    branches = _branches(program)
    for block in program.blocks:
        last = program.instructions[block.stop - 1]
        if block.stop - 1 not in branches or last.guard is None:
            continue
        for index in range(block.stop - 2, block.start - 1, -1):
            if last.guard.register in writes(program.instructions[index]):
                found[program.sites[index]] = program.sites[block.stop - 1]
                break
    return found


def _jumps(program: Program) -> dict[Site | None, Site]:
    """Returns the branches of the PTX at which a warp can diverge, each by itself and by the jump
    at the end of the block that it alone leads to: ptxas makes one branch of both, where it guards
    the instructions of that block."""
    blocks = program.blocks
    before: dict[int, list[int]] = defaultdict(list)
    for block in blocks:
        for to in block.successors:
            before[to].append(block.stop - 1)
    branches = _branches(program)
    found: dict[Site | None, Site] = {
        program.sites[index]: program.sites[index] for index in branches
    }
    for block in blocks:
        [*leading] = before[block.index]
        if len(leading) == 1 and leading[0] in branches and block.stop - 1 not in branches:
            found.setdefault(program.sites[block.stop - 1], program.sites[leading[0]])
    return found


def regions_of(listing: Listing, nodes: Sequence[Node]) -> list[ConvergenceRegion]:
    """Returns the regions of the convergence barriers of a graph."""
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
            behind = place[made.targets[0]]
            found = _region(nodes, number, behind) if code[behind - 1].name == "BSYNC" else None
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
    nodes on the paths there from `start`; None where no way leads there."""
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
