"""Holds the LLVM values of an access group (accesses of a basic block that share a base register
and a guard) while the code of its block is emitted: base addresses, guard, counter."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from warploom.abi.access_type import AccessType
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import AccessPlan
from warploom.llvm.lanes import Value
from warploom.shapes.vector_shape import VectorShape


@dataclass
class GroupValues:
    """Holds the LLVM values of an access group: accesses of a block from one base register.

    `accesses` is the group. After the guard at the first access, `hit` is true if the range cache
    has all of them (`lower.access.range_cache`); `bases` (a vector) and `firsts` (scalars) are the
    base address in the first lane of each lane run (where each lane is a run: all 32 lanes, and
    lane 0's alone)."""

    accesses: AccessGroup
    bases: Value = None
    firsts: list[Value] = field(default_factory=list[Value])
    safe_firsts: list[Value] = field(default_factory=list[Value])
    """For each lane run, its base address, or that of a run with an active lane if all runs have
    equal addresses: after a hit, reading there is safe without a mask."""
    first_vector: Value | None = None
    """The same addresses as a vector."""
    hit: Value | None = None
    """True (an i1) if the guard holds; None before it is emitted."""
    counter: Value | None = None
    """The address of the count of such accesses in the cache entry."""
    counter_key: tuple[Value, Value] | None = None
    """The number of the lane set, and that of the count in its entry."""
    separate_member: int | None = None
    """In a slow version, the member that this group is for: it is counted separately."""
    miss_flag: Value = None
    """A variable that is true if the first access missed this time: then all members miss, and the
    rules count each."""
    step: Value | None = None
    """Bytes from lane to lane in each run, of addresses without a vector shape; where each lane is
    a run, 0 if they are not strided."""
    splits_pairs: Value | None = None
    """True (an i1) if only one lane of some run of two is active; for the move PAIRS, where a range
    cache was looked up for the access itself, not for a batch of iterations."""

    batched: bool = False
    """True if the group is guarded and counted for a whole batch of iterations
    (`lower.loops.strided_loops`)."""

    @property
    def access_type(self) -> AccessType:
        """Returns the access type of every member."""
        return self.accesses.shape

    @property
    def plan(self) -> AccessPlan:
        """Returns the access plan of every member."""
        return self.accesses.plan

    @property
    def base(self) -> VectorShape:
        """Returns the vector shape of the members' addresses."""
        return self.accesses.base

    @property
    def members(self) -> tuple[tuple[int, int], ...]:
        """Returns the members: the numbers of their instructions, and their offsets in bytes from
        the base."""
        return self.accesses.members

    def without_values(self, separate_member: int) -> GroupValues:
        """Returns a group with the same members, for the guard of the one at instruction
        `separate_member` alone in a slow version: with the plan for code in one version, without
        computed values, but with the variable that records a miss of the first member."""
        accesses = replace(self.accesses, plan=self.plan.in_one_version())
        return GroupValues(accesses, separate_member=separate_member, miss_flag=self.miss_flag)
