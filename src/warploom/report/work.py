"""The work of a launch for each part of the GPU, from its counters: the amounts that `ceilings`
divides by the device's peaks, and that a remedy would make smaller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from warploom.devices.occupancy import Occupancy
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import TimingSpec
from warploom.isa.instruction import Instruction
from warploom.observe.counters import Counters
from warploom.timing.work.classes import FREE, class_of
from warploom.timing.work.costs import WorkCosts

SECTOR = 32
WIDE_CONVERSION = "convert64"
"""The class of conversions that count as such: most others become instructions of other units,
as that of half to single precision."""


@dataclass(frozen=True, slots=True)
class Work:
    """The amounts of work of a launch.

    `issued` are warp instructions, where a division counts as the several that it becomes;
    `double`, `special` and `conversions` are those of the units for double precision, special
    functions and conversions from and to types of 64 bits.
    `loaded`, `stored` and `updated` are the bytes of loads, stores and atomics of global memory
    that SMs exchange with L2 if L1 has no hits, `local` those of local memory. `counted` are the
    shares of these bytes that go to L2 and DRAM, if caches were counted. `loads_once` and
    `stores_once` are the bytes of the buffers that are loaded and stored, or those that are moved
    of buffers larger than L2; None if they are not known. `may_hit_l2`: larger buffers are moved
    more than once.
    `local_per_sm` are the bytes of local memory of the threads that an SM holds, `l1_bytes` what
    shared memory leaves of its L1. `idle_sms` are SMs without work on average, if all blocks
    take equally long. `latency` are the cycles that an SM needs for its warps if none is busy but
    each waits for its own results, with `held_warps` at once; 0 where all of them fit at once."""

    issued: int = 0
    double: int = 0
    special: int = 0
    conversions: int = 0
    wavefronts: int = 0
    constant_passes: int = 0
    atomic_passes: int = 0
    loaded: int = 0
    stored: int = 0
    updated: int = 0
    local: int = 0
    sms: int = 1
    idle_sms: float = 0.0
    latency: float = 0.0
    held_warps: int = 0
    counted: tuple[float, float] | None = None
    loads_once: int | None = None
    stores_once: int | None = None
    may_hit_l2: bool = False
    local_per_sm: int | None = None
    l1_bytes: int = 0

    def without(self, saved: Mapping[str, float]) -> Work:
        """Returns the work that is left if a remedy saves some amounts, by the field's name."""
        left = {name: max(0, getattr(self, name) - amount) for name, amount in saved.items()}
        return replace(self, **left)

    @property
    def moved(self) -> int:
        """Returns the bytes that all accesses to global memory exchange with L2 at most."""
        return self.loaded + self.stored + self.updated


def work_of(counters: Counters, spec: DeviceSpec, timing: TimingSpec, blocks: int) -> Work:
    """Returns the work of a launch of some blocks that follows from its counters alone."""
    kinds = {
        (space, op): counters.get(f"{space}_{op}_bytes_moved", 0)
        for space in ("global", "local")
        for op in ("load", "store", "atomic")
    }
    wavefronts = counters["shared_load_wavefronts"] + counters["shared_store_wavefronts"]
    # Atomics of lanes on one address are executed one after the other.
    wavefronts += max(counters["shared_atomic_wavefronts"], counters.get("shared_atomic_passes", 0))
    units = _in_units(counters, WorkCosts(spec, timing))
    return Work(
        issued=units["issued"],
        double=units["double"],
        special=units["special"],
        conversions=units["conversions"],
        wavefronts=wavefronts,
        constant_passes=counters.get("constant_load_transactions", 0),
        loaded=kinds["global", "load"],
        stored=kinds["global", "store"],
        updated=kinds["global", "atomic"],
        local=sum(size for (space, _), size in kinds.items() if space == "local"),
        sms=spec.sms,
        idle_sms=idle_sms(spec, blocks),
        counted=_counted(counters, sum(kinds.values())),
    )


def idle_sms(spec: DeviceSpec, blocks: int) -> float:
    """Returns how many SMs have no work on average, until the SM with the most of `blocks` equally
    long blocks has executed all of them."""
    return spec.sms - blocks / -(-blocks // spec.sms) if blocks else 0.0


def local_per_sm(local_bytes: int, occupancy: Occupancy, spec: DeviceSpec, blocks: int) -> int:
    """Returns the bytes of local memory of the threads that an SM holds at once."""
    held = min(occupancy.active_blocks, -(-blocks // spec.sms))
    return held * occupancy.demand.threads * local_bytes


def l1_bytes(spec: DeviceSpec, occupancy: Occupancy) -> int:
    """Returns the bytes of an SM's L1 that the shared memory of its blocks leaves."""
    return max(0, spec.l1_bytes - (occupancy.shared_carveout if spec.l1_holds_shared else 0))


EXPANDED = 6
"""The instructions of the machine from which on one of PTX counts as all of them: divisions and
roots. Those that become fewer are often folded into others, such as 64-bit sums into addresses."""


_UNITS = {"fp64": "double", "special": "special", WIDE_CONVERSION: "conversions"}
"""Fields of `Work` by the unit whose instructions they count, or the class of instructions."""


def slots_of(instruction: Instruction, costs: WorkCosts | None) -> dict[str, int]:
    """Returns the work of an execution of a PTX instruction by a warp, by the fields of `Work`:
    the instructions that a scheduler issues (several for a division or a root), and those of its
    unit. One issued instruction for a device whose costs are not known (None)."""
    name = class_of(instruction)
    if name == FREE or costs is None:
        return {"issued": 1}
    cost = costs.of(name)
    issued = {"issued": cost.slots if cost.slots >= EXPANDED else 1}
    field = _UNITS.get(name, _UNITS.get(cost.unit))
    return issued if field is None else {**issued, field: cost.slots}


def _in_units(counters: Counters, costs: WorkCosts) -> Counter[str]:
    """Returns the work of all instructions, by the fields of `Work` (`slots_of`)."""
    work = Counter[str]()
    for instruction, count in zip(counters.program.instructions, counters.executions, strict=True):
        if count:
            for field, slots in slots_of(instruction, costs).items():
                work[field] += int(count) * slots
    return work


def _counted(counters: Counters, moved: int) -> tuple[float, float] | None:
    """Returns the shares of the bytes moved that went to L2 and DRAM; None if caches were not
    counted."""
    kinds = [f"{space}_{op}" for space in ("global", "local") for op in ("load", "store", "atomic")]
    misses = sum(counters.get(f"{kind}_l2_misses", 0) for kind in kinds)
    hits = sum(counters.get(f"{kind}_l2_hits", 0) for kind in kinds)
    if not moved or not (misses or hits):
        return None
    return SECTOR * (misses + hits) / moved, SECTOR * misses / moved
