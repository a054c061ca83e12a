"""Finds accesses of a launch that cannot race, whatever the order of threads: in the launch or, of
shared memory, between two barriers of all threads of a block (`intervals`), no other thread touches
the same bytes, or all accesses to them are loads. The race detector skips them.

    tile[y][x] = a[row * n + k + x];     in: 16 x 16 threads, each stores a word of its own
    __syncthreads();
    sum += tile[y][i] * b[i];            an interval that has loads of `tile` alone
    __syncthreads();
                                         out: neither the store nor the load needs a check

Without the second barrier, the loads are of one interval with the next iteration's stores, and both
are checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from warploom.analysis.linear.address_ranges import AddressRanges
from warploom.analysis.linear.affine import GLOBAL_SPACES, TEXELS, LinearAnalysis, MemoryAccess
from warploom.analysis.linear.dependence import AddressRange, never_overlap, overlap_only_if_equal
from warploom.analysis.linear.forms import IndexVariable
from warploom.analysis.linear.intervals import (
    SHARED_SPACES,
    barrier_intervals,
    is_asynchronous_access,
)
from warploom.isa.instruction import Space
from warploom.isa.kinds import OpKind
from warploom.program.accesses import accesses

MOST_PAIRS = 20_000
"""Pairs of accesses above which nothing is analysed."""


@dataclass(frozen=True, eq=False)
class BoundedAccess:
    """An access to memory: `at` are its addresses, None if they are unknown or unbounded.
    `is_weak`: it orders nothing, and is made by the issuing thread itself, so that the race
    detector may skip it."""

    access: MemoryAccess
    at: AddressRange | None
    is_weak: bool

    @property
    def instruction(self) -> int:
        """Returns the index of the instruction that makes the access."""
        return self.access.instruction

    @property
    def writes(self) -> bool:
        """Returns whether the operation of the access is other than a load."""
        return self.access.op != "load"

    @property
    def allocations(self) -> frozenset[int] | None:
        """Returns the start addresses of the allocations that the access may be to; None: any."""
        return self.access.address.allocations


@dataclass(frozen=True, slots=True)
class IndependentAccesses:
    """Instructions whose accesses conflict with no other thread's, in the form in which the race
    detector reads them. `in_global`: accesses to global memory, as long as every access stays in
    the allocations of its pointers. `in_shared`: accesses to shared memory, as long as all threads
    of a block execute the same barriers. `closed` are the allocations, by address, that no other
    access is to write: the detector reports those that do."""

    in_global: frozenset[int]
    closed: frozenset[int]
    in_shared: frozenset[int]


def independent_accesses(analysis: LinearAnalysis, weak: Set[int]) -> IndependentAccesses:
    """Returns the accesses of a launch that cannot race, which the race detector skips; `weak` are
    the numbers of the instructions that order nothing and access memory in the issuing thread
    itself."""
    launch = _LaunchAccesses(analysis, weak)
    in_shared = _independent_in_shared(launch, barrier_intervals(analysis.program))
    return IndependentAccesses(*_independent_in_global(launch), in_shared)


def independent_in_shared(
    analysis: LinearAnalysis, weak: Set[int], intervals: Iterable[Set[int]]
) -> frozenset[int]:
    """Returns the `in_shared` of `independent_accesses`, as far as these barrier intervals are
    concerned."""
    return _independent_in_shared(_LaunchAccesses(analysis, weak), intervals)


class _LaunchAccesses:
    """Makes the accesses of a launch with their address ranges; `weak` are the instructions that
    order nothing and access memory in the issuing thread; `blocks` and `threads` are the block and
    thread indices that have several values."""

    def __init__(self, analysis: LinearAnalysis, weak: Set[int]) -> None:
        """Lists the block and thread indices of the launch; accesses are made later, by space
        (`of`)."""
        self.analysis, self.program, self.weak = analysis, analysis.program, weak
        self._ranges = AddressRanges(analysis)
        self.blocks, self.threads = self._ranges.blocks, self._ranges.threads

    def of(self, spaces: Set[Space]) -> list[BoundedAccess]:
        """Returns the accesses that may be to some state spaces."""
        return [self._access(access) for access in self.analysis.memory_accesses(spaces)]

    def candidates(
        self, accesses_here: Iterable[BoundedAccess], space: Space
    ) -> Iterator[BoundedAccess]:
        """Yields those of `accesses_here` that may be skipped if none conflicts: weak ones of
        instructions whose only access is to `space`. Their addresses may be unknown."""
        for access in accesses_here:
            instruction = self.program.instructions[access.instruction]
            if access.is_weak and accesses(instruction) == ((space, access.access.op),):
                yield access

    def _access(self, access: MemoryAccess) -> BoundedAccess:
        """Returns an access with its address range, which is None if it is unknown or unbounded."""
        at = self._ranges.of(access)
        if at is not None and math.inf in map(abs, at.span()):
            at = None
        return BoundedAccess(access, at, access.instruction in self.weak)


# ---- global memory ------------------------------------------------------------------------------


def _independent_in_global(launch: _LaunchAccesses) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the instructions whose accesses to global memory (weak ones in the one allocation of
    their pointer) cannot race, and the allocations, by start, that no other access may write
    (`IndependentAccesses.closed`). Both empty if a pointer may refer to any allocation, if the
    program has texture or surface accesses, or with more than MOST_PAIRS (20,000) pairs to
    compare."""
    accesses_here, allocations = launch.of(GLOBAL_SPACES), launch.analysis.values.allocations
    candidates = {
        access
        for access in launch.candidates(accesses_here, Space.GLOBAL)
        if _stays_in_allocation(access, allocations)
    }
    accesses_texels = any(
        space in TEXELS
        for instruction in launch.program.instructions
        for space, _ in accesses(instruction)
    )
    if accesses_texels or any(access.allocations is None for access in accesses_here):
        return frozenset(), frozenset()
    if len(candidates) * len(accesses_here) > MOST_PAIRS:
        return frozenset(), frozenset()
    thread_variables = *launch.blocks, *launch.threads
    candidates = {
        access
        for access in candidates
        if all(
            _are_independent(access, other_access, thread_variables)
            for other_access in _possible_conflicts(access, accesses_here)
        )
    }
    writes = [access for access in accesses_here if access.writes]
    # Dropping a candidate reopens the allocations that it writes, which may drop others: iterate to
    # a fixed point.
    while True:
        written = (
            access.allocations or frozenset() for access in writes if access not in candidates
        )
        closed = frozenset(allocations).difference(*written)
        left = {
            access
            for access in candidates
            if all(
                _is_disjoint_or_checked(access, other_access, closed)
                for other_access in _possible_conflicts(access, accesses_here)
            )
        }
        if left == candidates:
            return frozenset(access.instruction for access in candidates), closed
        candidates = left


def _stays_in_allocation(access: BoundedAccess, allocations: Mapping[int, range]) -> bool:
    """Returns whether an access has known addresses and stays in the one allocation that its
    pointer refers to. False if its pointer may refer to one of several, or to an unknown one."""
    if access.at is None or access.allocations is None or len(access.allocations) != 1:
        return False
    allocation = allocations[next(iter(access.allocations))]
    low, high = access.at.span()
    return allocation.start <= low and high <= allocation.stop


def _possible_conflicts(
    access: BoundedAccess, accesses_here: Iterable[BoundedAccess]
) -> Iterator[BoundedAccess]:
    """Yields the accesses of a list (itself included) that an access may conflict with: those that
    write, or all if it writes itself."""
    return (other_access for other_access in accesses_here if access.writes or other_access.writes)


def _are_independent(
    left: BoundedAccess, right: BoundedAccess, thread_variables: Sequence[IndexVariable]
) -> bool:
    """Returns whether two accesses cannot race: they touch no common byte, or both are weak and
    each common byte belongs to one thread. True as well if the addresses of either are unknown:
    `_is_disjoint_or_checked` decides on those."""
    if left.at is None or right.at is None:
        return True
    if never_overlap(left.at, right.at):
        return True
    return (
        left.is_weak
        and right.is_weak
        and overlap_only_if_equal(left.at, right.at, thread_variables)
    )


def _is_disjoint_or_checked(
    candidate: BoundedAccess, other_access: BoundedAccess, closed: Set[int]
) -> bool:
    """Returns whether the second access has known addresses (`_are_independent` has compared them),
    or is to other allocations than the first. In that case the first's allocation has to be closed
    if the second writes, so that the detector reports a write that strays into it."""
    if other_access.at is not None:
        return True
    candidate_allocations, other_allocations = (
        candidate.allocations or frozenset(),
        other_access.allocations or frozenset(),
    )
    return not candidate_allocations & other_allocations and (
        candidate_allocations <= closed or not other_access.writes
    )


# ---- shared memory ------------------------------------------------------------------------------


def _independent_in_shared(
    launch: _LaunchAccesses, intervals: Iterable[Set[int]]
) -> frozenset[int]:
    """Returns the instructions with weak accesses to shared memory (`candidates`) that conflict
    with no other access in any of these barrier intervals. Generic accesses count as possible
    conflicts unless their pointer is into known allocations. Left out are the accesses of intervals
    with a call, and those with too many pairs to compare (MOST_PAIRS, 20,000). Empty if the program
    has asynchronous accesses, which may complete in a later interval."""
    if any(is_asynchronous_access(instruction) for instruction in launch.program.instructions):
        return frozenset()
    accesses_here = [access for access in launch.of(SHARED_SPACES) if not access.allocations]
    left = {access.instruction for access in launch.candidates(accesses_here, Space.SHARED)}
    for stretch in intervals:
        inside = [access for access in accesses_here if access.instruction in stretch]
        calls = any(launch.program.instructions[at].operation.kind is OpKind.CALL for at in stretch)
        # An instruction may be in several intervals, such as those of a loop around a barrier: it
        # has to be free of conflicts in each.
        for access in inside:
            against = [] if calls else list(_possible_conflicts(access, inside))
            if (
                calls
                or len(against) * len(inside) > MOST_PAIRS
                or not all(_are_disjoint(launch, access, other_access) for other_access in against)
            ):
                left.discard(access.instruction)
    return frozenset(left)


def _are_disjoint(launch: _LaunchAccesses, left: BoundedAccess, right: BoundedAccess) -> bool:
    """Returns whether no byte of shared memory is touched by two threads of a block with these
    accesses: they never overlap, or both are weak and do so within one thread only. False if the
    addresses of either are unknown."""
    if left.at is None or right.at is None:
        return False
    ranges = _in_one_block(left.at, right.at, launch.blocks)
    if never_overlap(*ranges):
        return True
    return left.is_weak and right.is_weak and overlap_only_if_equal(*ranges, launch.threads)


def _in_one_block(
    left: AddressRange, right: AddressRange, blocks: Iterable[IndexVariable]
) -> tuple[AddressRange, AddressRange]:
    """Returns two address ranges without the terms in the block's index, where both have the same
    stride: threads that share memory have the same block index."""
    # Only where both have the same: with different strides the difference depends on the index, so
    # that the terms do not cancel.
    for block in blocks:
        strides = (dict(access.address.strides).get(block, 0) for access in (left, right))
        if len(set(strides)) == 1:
            left, right = (
                access.range_of(access.address.without(block)) for access in (left, right)
            )
    return left, right
