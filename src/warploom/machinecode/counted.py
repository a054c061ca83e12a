"""The machine instructions that a launch would have executed: "from machine code", by the flow that
agrees best with what was counted of PTX instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from warploom.analysis.linear.register_values import LaunchInputs
from warploom.core.errors import WarploomError
from warploom.core.lazy import cached_property
from warploom.machine.launch import WARP_SIZE
from warploom.machine.tally import Counts, Tally
from warploom.machinecode.divergence import Divergence, divergence_of
from warploom.machinecode.evidence import Evidence, Executions, evidence_of, site_of
from warploom.machinecode.flow import CountedDivergence, Demands, Flow, flow_of
from warploom.machinecode.folding import with_folded
from warploom.machinecode.graph import Node, graph_of
from warploom.machinecode.linear import Floats
from warploom.machinecode.lines import Owners, Sites, sites_of, with_texture_lines
from warploom.machinecode.listing import Listing, MachineInstruction
from warploom.machinecode.opcodes import execution_of
from warploom.machinecode.retries import mean_iterations, retry_nodes, with_retries
from warploom.machinecode.turns import LoopMatch, Turns, entries_of, match_loops, turns_of
from warploom.program.program import Program, Site

EXECUTED = "inst_executed"
PIPE = "sm__inst_executed_pipe_"


@dataclass(frozen=True)
class Matching:
    """The machine code of a kernel beside its PTX: the graph, and what ties both together."""

    program: Program
    listing: Listing
    owners: Sites
    nodes: tuple[Node, ...]
    evidence: tuple[Evidence, ...]
    divergence: Divergence
    loops: tuple[LoopMatch, ...]
    retries: Mapping[int, Site]
    """The nodes that repeat an atomic of the PTX, with that (`machinecode.retries`)."""

    @classmethod
    def of(cls, program: Program, listing: Listing, owners: Owners) -> Matching:
        """Matches a listing with its program; ListingError where it has what is not known."""
        for made in listing.instructions:
            execution_of(made.name)
        listing = with_texture_lines(program, listing, owners)
        nodes = graph_of(listing)
        sites = sites_of(program, owners)
        retries = retry_nodes(program, listing, nodes, sites)
        found = with_retries(evidence_of(program, listing, nodes, sites), retries)
        evidence = tuple(with_folded(found, program))
        divergence = divergence_of(program, listing, nodes, sites)
        loops = match_loops(program, nodes, evidence)
        return cls(program, listing, sites, nodes, evidence, divergence, loops, retries)

    def site_of(self, made: MachineInstruction) -> Site | None:
        """Returns the PTX instruction that a machine instruction was made for."""
        return site_of(made, self.owners)

    def by_site(self, counts: Counts) -> Counter[Site]:
        """Returns counts by instruction of the program as those of all copies of an instruction."""
        numbers, sites = self._numbers
        sums = np.zeros(len(sites), np.int64)
        np.add.at(sums, numbers, counts)
        return Counter(dict(zip(sites, sums.tolist(), strict=True)))

    @cached_property
    def _numbers(self) -> tuple[Counts, tuple[Site, ...]]:
        """Returns, by instruction of the program, the number of its site, and the sites."""
        known: dict[Site, int] = {}
        numbers = [known.setdefault(site, len(known)) for site in self.program.sites]
        return np.array(numbers, np.int64), tuple(known)


@dataclass(frozen=True)
class BlockMatch:
    """A basic block of the machine code, in all copies for the calls of its function: offsets in
    bytes, how often warps executed it, and how well that agrees with the counted PTX instructions
    that it has copies of, from 0 to 1; 1 where it has none."""

    start: int
    stop: int
    executed: float
    confidence: float


@dataclass(frozen=True)
class Agreement:
    """The counts of a PTX instruction and of its copies in machine code."""

    evidence: Evidence
    counted: float
    executed: float

    @property
    def off(self) -> float:
        """Returns how far the copies are off; those with a guard may have done nothing."""
        more = self.executed - self.counted
        return max(more, 0.0) if more > 0 and self.evidence.excess else max(-more, 0.0)

    @property
    def weighted(self) -> tuple[float, float]:
        """Returns how far they are off, and what was counted, both times their weight."""
        one, more = self.evidence, self.executed - self.counted
        return max(more * one.excess, -more * one.weight, 0.0), self.counted * one.weight


class MachineCounts:
    """Machine instructions that the warps of a launch executed, as Nsight Compute would count them.

    They are worked out from counted PTX instructions and from machine code (`confidence`).
    """

    def __init__(self, matching: Matching, tally: Tally, launch: LaunchInputs) -> None:
        self.matching = matching
        self._tally, self._launch = tally, launch

    # ---- counts -----------------------------------------------------------------------------

    @property
    def instructions(self) -> int:
        """Warp instructions (`smsp__inst_executed.sum`)."""
        return sum(self.by_instruction)

    @cached_property
    def by_instruction(self) -> tuple[int, ...]:
        """Returns the same of each instruction of the listing."""
        found = np.zeros(len(self.matching.listing.instructions))
        for node, executed in zip(self.matching.nodes, self.executed.tolist(), strict=True):
            found[node.start : node.stop] += executed
        return tuple(round(count) for count in found.tolist())

    @cached_property
    def by_opcode(self) -> Mapping[str, int]:
        """Returns the same by opcode (without modifiers), most executed first."""
        return _sums((made.name, count) for made, count in self._rows())

    @cached_property
    def by_pipe(self) -> Mapping[str, int]:
        """Returns the same by the pipeline that executes them, by Nsight Compute's names."""
        return _sums((execution_of(made.name).pipe, count) for made, count in self._rows())

    def by_line(self) -> Mapping[str, int]:
        """Returns the same by source line ("file:line"), in the order of the program; "" has those
        that were made for no instruction of the PTX, such as a routine for a division."""
        program = self.matching.program
        first = {site: index for index, site in reversed(list(enumerate(program.sites)))}
        lines = {program.line(index): 0 for index in range(len(program.instructions))} | {"": 0}
        for made, count in self._rows():
            site = self.matching.site_of(made)
            lines[program.line(first[site]) if site in first else ""] += count
        return lines

    def metric(self, name: str) -> int:
        """Returns one of Nsight Compute's metrics, `smsp__inst_executed.sum` or
        `sm__inst_executed_pipe_*.sum`; WarploomError where none corresponds."""
        if name in (f"smsp__{EXECUTED}.sum", f"sm__{EXECUTED}.sum"):
            return self.instructions
        pipe = name.removeprefix(PIPE).removesuffix(".sum")
        if f"{PIPE}{pipe}.sum" != name:
            raise WarploomError(
                f"there is no machine code count named {name!r}; the counts are "
                f"'smsp__{EXECUTED}.sum' and '{PIPE}NAME.sum', where NAME is one of "
                f"{', '.join(self.by_pipe)}"
            )
        return self.by_pipe.get(pipe, 0)

    # ---- how good they are ------------------------------------------------------------------

    @cached_property
    def confidence(self) -> float:
        """Returns how well the counts agree with those of PTX instructions, from 0 to 1: 1 less the
        weighted sum of the differences over that of the counts."""
        return _confidence(one.weighted for one in self.agreement)

    @cached_property
    def agreement(self) -> tuple[Agreement, ...]:
        """Returns the PTX instructions that have machine instructions, with both counts."""
        found: list[Agreement] = []
        for one, count in zip(self.matching.evidence, self._counted.tolist(), strict=True):
            executed = sum(self.executed[node] * copies for node, copies in one.copies.items())
            found.append(Agreement(one, count, float(executed)))
        return tuple(found)

    @cached_property
    def blocks(self) -> tuple[BlockMatch, ...]:
        """Returns the basic blocks with how well each is matched, in the order of the listing."""
        code = self.matching.listing.instructions
        evidence: dict[int, list[tuple[float, float]]] = {}
        for one in self.agreement:
            for number in one.evidence.copies:
                start = self.matching.nodes[number].start
                evidence.setdefault(start, []).append(one.weighted)
        executed: Counter[tuple[int, int]] = Counter()
        for node, count in zip(self.matching.nodes, self.executed.tolist(), strict=True):
            executed[node.start, node.stop] += count
        return tuple(
            BlockMatch(
                code[start].offset,
                code[stop - 1].offset + code[1].offset,
                count,
                _confidence(evidence.get(start, [])),
            )
            for (start, stop), count in sorted(executed.items())
        )

    # ---- how they are found -----------------------------------------------------------------

    def _rows(self) -> Iterator[tuple[MachineInstruction, int]]:
        return zip(self.matching.listing.instructions, self.by_instruction, strict=True)

    @cached_property
    def _counted(self) -> Floats:
        """Returns how often the PTX instruction of each row of evidence was executed; of those in
        unrolled loops, how often lanes that part there make it."""
        counts, lanes, calls, passes = map(
            self.matching.by_site,
            (
                self._tally.warps,
                self._tally.threads,
                self._tally.routine_calls,
                self._tally.atomic_passes,
            ),
        )

        def count(one: Evidence) -> int:
            match one.of:
                case Executions.WHOLE:
                    return _whole(counts[one.site], lanes[one.site])
                case Executions.ROUTINE:
                    return calls[one.site]
                case Executions.PASSES:
                    return round(passes[one.site] * iterations.get(one.site, 1.0))
                case Executions.ALL:
                    return counts[one.site]

        more, iterations = self._more_turns(), dict[Site, float]()
        if self.matching.retries:
            iterations = mean_iterations(self.matching.program, self._launch)
        rows = self.matching.evidence
        return np.array([count(one) * more.get(one.site, 1.0) for one in rows], np.float64)

    def _more_turns(self) -> dict[Site, float]:
        """Returns how many times as often as in the PTX the instructions of unrolled loops are
        executed."""
        return {
            row.site: turns.uses.turns / turns.turns
            for loop, turns in self._turns
            if turns.uses is not None
            for row in loop.evidence
        }

    @property
    def executed(self) -> Floats:
        """Returns how often each node was executed."""
        return self.flow.executed

    @cached_property
    def flow(self) -> Flow:
        """Returns how often each node was executed, and each edge taken."""
        matching = self.matching
        demands = Demands(
            float(self._tally.launched_warps),
            self._divergences(),
            matching.divergence.regions,
            [turns for _, turns in self._turns],
        )
        return flow_of(matching.nodes, matching.evidence, self._counted, demands)

    def _divergences(self) -> list[CountedDivergence]:
        """Returns the divergence that was counted, by the branches at which lanes can part."""
        divergence = self.matching.divergence
        divergent: dict[Site, float] = dict(self.matching.by_site(self._tally.divergent))
        for loop, turns in self._turns:
            if turns.uses is not None and loop.exit is not None:
                divergent[loop.exit] = turns.uses.divergences
        named = divergence.branches
        warps, passes = map(self.matching.by_site, (self._tally.warps, self._tally.atomic_passes))
        retries = [
            # All lanes but the last ones leave before the others.
            CountedDivergence((node,), float(passes[site] - warps[site]))
            for node, site in self.matching.retries.items()
        ]
        found = [CountedDivergence(nodes, float(divergent[site])) for site, nodes in named.items()]
        elsewhere = sum(count for site, count in divergent.items() if site not in named)
        nodes = tuple(node for node in divergence.others if node not in self.matching.retries)
        return [*found, *retries, CountedDivergence(nodes, float(elsewhere), named=False)]

    @cached_property
    def _turns(self) -> tuple[tuple[LoopMatch, Turns], ...]:
        """Returns the loops that machine code has, with what was counted of them."""
        warps, divergent = self._tally.warps, self._tally.divergent
        entered = entries_of(self.matching.program, warps.tolist(), divergent.tolist())
        counts, diverged = self.matching.by_site(warps), self.matching.by_site(divergent)
        found = (
            (loop, turns_of(loop, entered[loop.head], counts, diverged))
            for loop in self.matching.loops
        )
        return tuple((loop, turns) for loop, turns in found if turns is not None)

    def __repr__(self) -> str:
        return (
            f"MachineCounts({self.instructions:,} from machine code, confidence "
            f"{self.confidence:.0%})"
        )


def _whole(warps: int, lanes: int) -> int:
    """Returns how often at most all lanes of a warp were active, of so many executions with so many
    lanes in all: the others had one each."""
    return max(0, (lanes - warps) // (WARP_SIZE - 1))


def _confidence(weighted: Iterable[tuple[float, float]]) -> float:
    off = whole = 0.0
    for difference, weight in weighted:
        off, whole = off + difference, whole + weight
    return max(0.0, 1 - off / whole) if whole else 1.0


def _sums(pairs: Iterator[tuple[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for name, count in pairs:
        found[name] += count
    return {name: count for name, count in found.most_common() if count}
