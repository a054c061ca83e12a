"""Finds accesses of a launch that no other thread's can meet: nothing that threads do there is a
race, in whatever order they go.

Global memory is looked at over the launch, shared memory over each stretch between two barriers of
all threads of a block (`intervals`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from warploom.analysis.linear.affine import (
    GLOBAL_SPACES,
    TEXELS,
    LinearAnalysis,
    MemoryAccess,
    block_indices,
    thread_indices,
)
from warploom.analysis.linear.conditions import facts_by_instruction
from warploom.analysis.linear.dependence import AddressRange, are_of_one_thread, never_overlap
from warploom.analysis.linear.forms import IndexVariable, form
from warploom.analysis.linear.intervals import (
    SHARED_SPACES,
    barrier_intervals,
    is_asynchronous_access,
)
from warploom.analysis.linear.predicates import NO_FACTS, Facts
from warploom.analysis.linear.ranges import Ranges
from warploom.program.accesses import accesses
from warploom.ptx.ir import Space

MOST_PAIRS = 20_000
"""Nothing is looked for among more pairs of accesses."""

BY_LANE = ("ld", "ldu", "st", "atom", "red")
"""Instructions of which each lane reaches what its address says."""


@dataclass(frozen=True, eq=False)
class BoundedAccess:
    """An access to memory: `at` where it reaches, if that is known; `is_weak` where it orders
    nothing and a thread does it itself."""

    access: MemoryAccess
    at: AddressRange | None
    is_weak: bool

    @property
    def instruction(self) -> int:
        return self.access.instruction

    @property
    def writes(self) -> bool:
        return self.access.op != "load"

    @property
    def origins(self) -> frozenset[int] | None:
        """Return the allocations that it may lead to, None for any."""
        return self.access.address.origins


@dataclass(frozen=True, slots=True)
class IndependentAccesses:
    """Accesses that no other thread's can meet: to global memory, while every access to it stays in
    the allocations of its pointers; to shared memory, while all threads of a block meet at the same
    barriers. `closed` are the allocations, by address, that no access but those is to write to."""

    in_global: frozenset[int]
    closed: frozenset[int]
    in_shared: frozenset[int]


def independent_accesses(analysis: LinearAnalysis, weak: Set[int]) -> IndependentAccesses:
    """Return the accesses of a launch that no other thread's can meet; `weak` are those that order
    nothing and that a thread does itself."""
    launch = _LaunchAccesses(analysis, weak)
    return IndependentAccesses(*_independent_in_global(launch), _independent_in_shared(launch))


class _LaunchAccesses:
    """The accesses of a launch, with what is known of them."""

    def __init__(self, analysis: LinearAnalysis, weak: Set[int]) -> None:
        self.analysis, self.program, self.weak = analysis, analysis.program, weak
        self.blocks, self.threads = (
            block_indices(analysis.launch.grid),
            thread_indices(analysis.launch.block),
        )
        self._telling = [form(0, {variable: 1}) for variable in (*self.blocks, *self.threads)]

    def of(self, spaces: Set[Space]) -> list[BoundedAccess]:
        """Return those that may lead to some state spaces."""
        return [self._access(access) for access in self.analysis.memory_accesses(spaces)]

    def candidates(
        self, accesses_here: Iterable[BoundedAccess], space: Space
    ) -> Iterator[BoundedAccess]:
        """Yield those of some accesses that need not be seen if nothing meets them."""
        for each in accesses_here:
            instruction = self.program.instructions[each.instruction]
            if each.is_weak and accesses(instruction) == ((space, each.access.op),):
                yield each

    @cached_property
    def _facts(self) -> Mapping[int, Facts]:
        return facts_by_instruction(self.analysis)

    def _access(self, access: MemoryAccess) -> BoundedAccess:
        """Return an access with what bounds it; of one without bounds no place is known."""
        address, name = (
            access.address.form,
            self.program.instructions[access.instruction].operation.name,
        )
        at = None
        if address is not None and name in BY_LANE:
            facts = self._facts.get(access.instruction, NO_FACTS)
            launch = AddressRange(
                address, access.size, Ranges.under(facts, [address, *self._telling])
            )
            low, high = launch.span()
            at = launch if -math.inf < low and high < math.inf else None
        return BoundedAccess(access, at, access.instruction in self.weak)


# ---- global memory ------------------------------------------------------------------------------


def _independent_in_global(launch: _LaunchAccesses) -> tuple[frozenset[int], frozenset[int]]:
    """Return the accesses to global memory, and the closed allocations (`IndependentAccesses`)."""
    accesses_here, allocations = launch.of(GLOBAL_SPACES), launch.analysis.allocations
    candidates = {
        each
        for each in launch.candidates(accesses_here, Space.GLOBAL)
        if _stays_in_allocation(each, allocations)
    }
    accesses_texels = any(
        space in TEXELS
        for instruction in launch.program.instructions
        for space, _ in accesses(instruction)
    )
    if accesses_texels or any(each.origins is None for each in accesses_here):
        return frozenset(), frozenset()
    if len(candidates) * len(accesses_here) > MOST_PAIRS:
        return frozenset(), frozenset()
    thread_variables = *launch.blocks, *launch.threads
    candidates = {
        each
        for each in candidates
        if all(
            _are_independent(each, other, thread_variables)
            for other in _possible_conflicts(each, accesses_here)
        )
    }
    writes = [each for each in accesses_here if each.writes]
    while True:
        others = (each.origins or frozenset() for each in writes if each not in candidates)
        closed = frozenset(allocations).difference(*others)
        left = {
            each
            for each in candidates
            if all(
                _is_disjoint_or_checked(each, other, closed)
                for other in _possible_conflicts(each, accesses_here)
            )
        }
        if left == candidates:
            return frozenset(each.instruction for each in candidates), closed
        candidates = left


def _stays_in_allocation(access: BoundedAccess, allocations: Mapping[int, range]) -> bool:
    """Return whether an access stays in the one allocation that its pointer leads to."""
    if access.at is None or access.origins is None or len(access.origins) != 1:
        return False
    allocation = allocations[next(iter(access.origins))]
    low, high = access.at.span()
    return allocation.start <= low and high <= allocation.stop


def _possible_conflicts(
    access: BoundedAccess, accesses_here: Iterable[BoundedAccess]
) -> Iterator[BoundedAccess]:
    """Yield the accesses that one may be in conflict with."""
    return (other for other in accesses_here if access.writes or other.writes)


def _are_independent(
    one: BoundedAccess, two: BoundedAccess, thread_variables: Sequence[IndexVariable]
) -> bool:
    """Return whether no byte is reached by both of two threads by these accesses; also if nothing
    is known of the second's place, which is to be elsewhere (`_is_disjoint_or_checked`)."""
    if one.at is None or two.at is None:
        return True
    if never_overlap(one.at, two.at):
        return True
    return one.is_weak and two.is_weak and are_of_one_thread(one.at, two.at, thread_variables)


def _is_disjoint_or_checked(one: BoundedAccess, two: BoundedAccess, closed: Set[int]) -> bool:
    """Return whether the place of the second is known, or lies in other allocations; and if it
    leaves those, the detector says so, since the first one's is closed."""
    if two.at is not None:
        return True
    mine, others = one.origins or frozenset(), two.origins or frozenset()
    return not mine & others and (mine <= closed or not two.writes)


# ---- shared memory ------------------------------------------------------------------------------


def _independent_in_shared(launch: _LaunchAccesses) -> frozenset[int]:
    """Return the accesses to shared memory that no other of their stretches can meet."""
    if any(is_asynchronous_access(instruction) for instruction in launch.program.instructions):
        return frozenset()
    accesses_here = [each for each in launch.of(SHARED_SPACES) if not each.origins]
    left = {each.instruction for each in launch.candidates(accesses_here, Space.SHARED)}
    for stretch in barrier_intervals(launch.program):
        inside = [each for each in accesses_here if each.instruction in stretch]
        calls = any(launch.program.instructions[at].operation.name == "call" for at in stretch)
        for each in inside:
            against = [] if calls else list(_possible_conflicts(each, inside))
            if (
                calls
                or len(against) * len(inside) > MOST_PAIRS
                or not all(_are_disjoint(launch, each, other) for other in against)
            ):
                left.discard(each.instruction)
    return frozenset(left)


def _are_disjoint(launch: _LaunchAccesses, one: BoundedAccess, two: BoundedAccess) -> bool:
    """Return whether two threads of a block reach no byte both by accesses to shared memory."""
    if one.at is None or two.at is None:
        return False
    places = _in_one_block(one.at, two.at, launch.blocks)
    if never_overlap(*places):
        return True
    return one.is_weak and two.is_weak and are_of_one_thread(*places, launch.threads)


def _in_one_block(
    one: AddressRange, two: AddressRange, blocks: Iterable[IndexVariable]
) -> tuple[AddressRange, AddressRange]:
    """Return two places without what the block's index adds to both."""
    for block in blocks:
        strides = (dict(each.address.strides).get(block, 0) for each in (one, two))
        if len(set(strides)) == 1:
            one, two = (each.made_of(each.address.without(block)) for each in (one, two))
    return one, two
