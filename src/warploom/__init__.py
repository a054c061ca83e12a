"""Warploom: a SIMT GPU in software.

For example:

    import warploom as wl

    gpu = wl.Device("rtx-2080-ti")
    module = gpu.load("saxpy.cu")
    run = module["saxpy"][grid, block](n, 2.0, x, y)
    print(run.report())
"""

from typing import TYPE_CHECKING, Any

from warploom import testing
from warploom.core.errors import (
    CompileError,
    DeadlockError,
    DeviceAssert,
    DeviceTrap,
    InstructionLimit,
    KernelFault,
    LaunchError,
    LinkError,
    MemoryFault,
    PtxError,
    PtxSyntaxError,
    UnsupportedInstruction,
    WarploomError,
)
from warploom.host.buffer import Buffer
from warploom.host.device import Device
from warploom.host.explore import explore
from warploom.host.kernel import Kernel
from warploom.host.module import Module
from warploom.host.occupancy import occupancy
from warploom.host.run import Run
from warploom.host.stream import Stream
from warploom.host.texture import Surface, Texture

if TYPE_CHECKING:
    from warploom.observe.trace import Trace, TraceLimits
    from warploom.ui.notebook import show

__all__ = [
    "Buffer",
    "CompileError",
    "DeadlockError",
    "Device",
    "DeviceAssert",
    "DeviceTrap",
    "InstructionLimit",
    "Kernel",
    "KernelFault",
    "LaunchError",
    "LinkError",
    "MemoryFault",
    "Module",
    "PtxError",
    "PtxSyntaxError",
    "Run",
    "Stream",
    "Surface",
    "Texture",
    "Trace",
    "TraceLimits",
    "UnsupportedInstruction",
    "WarploomError",
    "explore",
    "occupancy",
    "show",
    "testing",
]


def __getattr__(name: str) -> Any:
    """What few programs need, and what takes time to import: traces, and showing them."""
    if name in ("Trace", "TraceLimits"):
        from warploom.observe import trace

        return getattr(trace, name)
    if name == "show":
        from warploom.ui.notebook import show

        return show
    raise AttributeError(f"module 'warploom' has no attribute {name!r}")
