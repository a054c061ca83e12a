"""Computes which slots of a device a launch has beside launches that wait for memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from warploom.devices.occupancy import Demand, blocks_beside, warps_of
from warploom.devices.spec import DeviceSpec
from warploom.machine.placement import ResidentKernel
from warploom.simt.placement import sm_of


@dataclass(frozen=True)
class ResidentBlocks:
    """Holds the blocks of a launch that are resident: the name of the kernel, what each block
    takes, and their number on each SM."""

    kernel: str
    demand: Demand
    on_sm: Mapping[int, int]


def slots_beside(
    spec: DeviceSpec,
    demand: Demand,
    cluster: int,
    others: Sequence[ResidentBlocks],
    own: Sequence[int] = (),
) -> list[int]:
    """Returns the SMs of the slots that `others` leave to blocks of a demand, and that are not
    among those that the launch already has on the SMs `own`, in the order in which blocks begin in
    them: the next goes to the SM on which most of them still fit, the first of several (Gilman et
    al., "Demystifying the Placement Policies of the NVIDIA GPU Thread Block Scheduler for
    Concurrent Kernels", Performance 2020), which spreads them over all SMs if these are alike.
    Clusters of `cluster` blocks go to groups of SMs as in `simt.placement`."""
    had, fitting = Counter(own), list[int]()
    for sm in range(spec.sms):
        on_sm = _by_demand(others, sm)
        fitting.append(blocks_beside(spec, demand, on_sm) - had[sm])
    turns: list[tuple[int, int]] = []
    groups = [
        [sm_of(group * cluster + rank, cluster, spec.sms) for rank in range(cluster)]
        for group in range(max(1, spec.sms // cluster))
    ]
    for number, group in enumerate(groups):
        count = min(fitting[sm] // group.count(sm) for sm in group)
        turns += [(-left, number) for left in range(1, count + 1)]
    return [sm for _, number in sorted(turns) for sm in groups[number]]


def _by_demand(others: Iterable[ResidentBlocks], sm: int) -> dict[Demand, int]:
    """Returns the blocks of other launches on an SM, by what each takes."""
    found = Counter[Demand]()
    for other in others:
        found[other.demand] += other.on_sm.get(sm, 0)
    return found


def resident_kernels(
    spec: DeviceSpec, others: Iterable[ResidentBlocks]
) -> tuple[ResidentKernel, ...]:
    """Returns the kernels that are resident, SM by SM, on each in the order given."""
    found = [
        ResidentKernel(other.kernel, sm, count, warps_of(spec, other.demand.threads))
        for other in others
        for sm, count in other.on_sm.items()
    ]
    return tuple(sorted(found, key=lambda one: one.sm))
