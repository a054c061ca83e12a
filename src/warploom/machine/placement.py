"""Describes where a launch is resident that begins beside kernels which wait for memory: the slots
that their blocks leave to it, and the SMs of these.

Which slots those are is computed by `host.residency`; a launch that runs alone has all slots of the
device, in the order of `simt.placement`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResidentKernel:
    """Holds how many blocks of a kernel are resident on an SM while they wait for memory, and the
    warps of each block."""

    kernel: str
    sm: int
    blocks: int
    warps: int


@dataclass(eq=False)
class SlotPlacement:
    """Holds the SM of each slot that is left to a launch, in the order in which its first blocks
    begin in them; `others` are the kernels beside it. Gets more slots while the launch itself waits
    for memory and others end."""

    sms: list[int]
    others: tuple[ResidentKernel, ...] = ()
