"""Computes how many blocks of a launch fit on the device beside launches that wait for memory."""

from __future__ import annotations

from collections.abc import Iterable

from warploom.devices.occupancy import Demand, blocks_beside
from warploom.devices.spec import DeviceSpec


def capacity_beside(
    spec: DeviceSpec, demand: Demand, residents: Iterable[tuple[Demand, int]]
) -> int:
    """Returns how many blocks of a demand the device holds beside `residents`: resident blocks of
    other launches, so many of each demand, which are spread over the SMs in turn."""
    others = list(residents)
    capacity = 0
    for sm in range(spec.sms):
        on_sm: dict[Demand, int] = {}
        for other, count in others:
            on_sm[other] = on_sm.get(other, 0) + count // spec.sms + (sm < count % spec.sms)
        capacity += blocks_beside(spec, demand, on_sm)
    return capacity
