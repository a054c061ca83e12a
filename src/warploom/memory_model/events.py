"""The events of an execution: what threads do to memory, fences and barriers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from warploom.memory_model.values import Value


class Kind(Enum):
    """Kinds of events."""

    READ = "R"
    WRITE = "W"
    FENCE = "F"
    BARRIER = "B"


@dataclass(frozen=True, slots=True)
class Place:
    """Identifies a memory location: `physical` is its name (a symbol, an address), `virtual` the
    name by which it was accessed where it has several (PTX ISA, "Memory operations")."""

    physical: str
    virtual: str


@dataclass(frozen=True, slots=True)
class Strength:
    """The ways in which an access or a fence takes part in synchronization.

    `order` is "weak", "relaxed", "acquire", "release", "acq_rel" or "sc" (PTX ISA, "Operation
    types"); `scope` "cta", "cluster", "gpu" or "sys"; `proxy` the way to memory: "generic",
    "constant", "texture", "surface", of a fence also "alias".
    """

    order: str = "weak"
    scope: str = "sys"
    proxy: str = "generic"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A thread at a barrier: its number, how many threads it waits for (None: all of the block),
    whether the thread waits, and the barrier's own `instance` where a litmus test names one."""

    number: Value
    count: Value | None = None
    waits: bool = True
    instance: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """Describes one event of a thread.

    `place` is the location of an access, `value` what a write stores. `partner` is the number of
    the read whose read-modify-write this write ends. `address`, `data`, `control` are the reads of
    the thread (by number) on which the place, the value and whether it happens at all depend.
    `text` says what it is, for people, `line` where it stands in the source.
    """

    kind: Kind
    strength: Strength
    place: Place | None = None
    value: Value = 0
    partner: int | None = None
    address: frozenset[int] = frozenset()
    data: frozenset[int] = frozenset()
    control: frozenset[int] = frozenset()
    arrival: Arrival | None = None
    text: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The place of a thread: its block, cluster and device, from which scopes follow."""

    cta: int = 0
    cluster: int = 0
    gpu: int = 0

    def within(self, scope: str, other: Coordinates) -> bool:
        """Returns whether `scope`, as this thread means it, includes the other thread."""
        if scope == "sys":
            return True
        if scope == "gpu":
            return self.gpu == other.gpu
        if scope == "cluster":
            return (self.gpu, self.cluster) == (other.gpu, other.cluster)
        return (self.gpu, self.cta) == (other.gpu, other.cta)
