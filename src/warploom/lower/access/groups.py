"""Holds what the code of one block has found of a group of accesses, while it is emitted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from warploom.abi.access_type import AccessType
from warploom.analysis.vector_shape import VectorShape
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import AccessPlan
from warploom.llvm.lanes import Value


@dataclass
class Group:
    """The values of a group, `accesses`. `known` says, once code has come
    to the first of them, whether all are like earlier ones (`lower.access.range_cache`); `bases`
    and `firsts` then where its register leads for the first lane of each run."""

    accesses: AccessGroup
    bases: Value = None
    firsts: list[Value] = field(default_factory=list[Value])
    safe: list[Value] = field(default_factory=list[Value])
    """Where each run begins, or one of which some lane is on, if all runs agree inside; where the
    group is known, reading there is safe."""
    begins: Value | None = None
    """The same as a vector."""
    known: Value | None = None
    counter: Value | None = None
    """The address of the count of such accesses."""
    place: tuple[Value, Value] | None = None
    """The number of the lanes' set, and of the count in its entry."""
    alone: int | None = None
    """In slow code, which of the accesses this is: it is counted apart from the others."""
    unknown: Value = None
    """Where it is kept if the first access, this time, was not known: then none of the others is,
    so that the rules count each."""
    step: Value | None = None
    """By how much places without a shape follow from lane to lane, in each run, if they do; where
    each lane is a run, 0 if they do not."""

    batched: bool = False
    """Whether it is checked and counted for a batch of iterations (`lower.loops.strided_loops`)."""
    fetches: Value | None = None
    """Whether to ask for what the next warps access, in a batch; None for no."""

    @property
    def shape(self) -> AccessType:
        """Return what each of the accesses moves."""
        return self.accesses.shape

    @property
    def plan(self) -> AccessPlan:
        """Return how they are done."""
        return self.accesses.plan

    @property
    def base(self) -> VectorShape:
        """Return the shape of their addresses."""
        return self.accesses.base

    @property
    def members(self) -> tuple[tuple[int, int], ...]:
        """Return their instructions, and their offsets."""
        return self.accesses.members

    def without_values(self, alone: int) -> Group:
        """Return one of its accesses on its own, in code that is not left."""
        accesses = replace(self.accesses, plan=self.plan.in_one_version())
        return Group(accesses, alone=alone, unknown=self.unknown)
