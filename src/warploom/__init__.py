"""Warploom: a SIMT GPU in software.

For example:

    import warploom as wl

    gpu = wl.Device("rtx-2080-ti")
    module = gpu.load("saxpy.cu")
    run = module["saxpy"][grid, block](n, 2.0, x, y)
    print(run.report())
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warploom import testing
    from warploom.core.errors import (
        CompileError,
        DeadlockError,
        DeviceAssert,
        DeviceTrap,
        InstructionLimit,
        KernelFault,
        LaunchCancelled,
        LaunchError,
        LinkError,
        MemoryFault,
        OptionError,
        OptionTypeError,
        OptionValueError,
        PtxError,
        PtxSyntaxError,
        UnsupportedInstruction,
        WarploomError,
    )
    from warploom.debug.notebook import debugger
    from warploom.host.buffer import Buffer
    from warploom.host.device import Device
    from warploom.host.exploration.explore import explore
    from warploom.host.exploration.litmus import litmus
    from warploom.host.kernel import Kernel
    from warploom.host.local_memory import LocalMemory
    from warploom.host.module import Module
    from warploom.host.occupancy import occupancy
    from warploom.host.records.traced import read_accelsim
    from warploom.host.run import Run
    from warploom.host.stream import Stream
    from warploom.host.textures.tensor_map import TensorMap
    from warploom.host.textures.textures import Surface, Texture
    from warploom.host.tuning.tune import tune
    from warploom.observe.limits import TraceLimits
    from warploom.observe.observer import observer
    from warploom.observe.trace import Trace
    from warploom.simt.event_layout import AccessKind, MemorySpace
    from warploom.timing.policies import (
        CacheModel,
        address_mapping,
        prefetcher,
        replacement_policy,
        warp_scheduler,
    )
    from warploom.ui.notebook import show

    __version__: str

__all__ = [
    "AccessKind",
    "Buffer",
    "CacheModel",
    "CompileError",
    "DeadlockError",
    "Device",
    "DeviceAssert",
    "DeviceTrap",
    "InstructionLimit",
    "Kernel",
    "KernelFault",
    "LaunchCancelled",
    "LaunchError",
    "LinkError",
    "LocalMemory",
    "MemoryFault",
    "MemorySpace",
    "Module",
    "OptionError",
    "OptionTypeError",
    "OptionValueError",
    "PtxError",
    "PtxSyntaxError",
    "Run",
    "Stream",
    "Surface",
    "TensorMap",
    "Texture",
    "Trace",
    "TraceLimits",
    "UnsupportedInstruction",
    "WarploomError",
    "__version__",
    "address_mapping",
    "debugger",
    "explore",
    "litmus",
    "observer",
    "occupancy",
    "prefetcher",
    "read_accelsim",
    "replacement_policy",
    "show",
    "testing",
    "tune",
    "warp_scheduler",
]


_PLACES = {
    "AccessKind": "simt.event_layout",
    "Buffer": "host.buffer",
    "CacheModel": "timing.policies",
    "Device": "host.device",
    "Kernel": "host.kernel",
    "LocalMemory": "host.local_memory",
    "MemorySpace": "simt.event_layout",
    "Module": "host.module",
    "Run": "host.run",
    "Stream": "host.stream",
    "Surface": "host.textures.textures",
    "TensorMap": "host.textures.tensor_map",
    "Texture": "host.textures.textures",
    "Trace": "observe.trace",
    "TraceLimits": "observe.limits",
    "address_mapping": "timing.policies",
    "debugger": "debug.notebook",
    "explore": "host.exploration.explore",
    "litmus": "host.exploration.litmus",
    "load_ipython_extension": "ui.magics",
    "observer": "observe.observer",
    "occupancy": "host.occupancy",
    "prefetcher": "timing.policies",
    "read_accelsim": "host.records.traced",
    "replacement_policy": "timing.policies",
    "show": "ui.notebook",
    "tune": "host.tuning.tune",
    "warp_scheduler": "timing.policies",
}
"""The modules of the names above, but for errors; each is imported when it is first asked for, for
all together take half a second."""


def _load(name: str) -> Any:
    if name not in __all__ and name not in _PLACES:
        raise AttributeError(f"module 'warploom' has no attribute {name!r}")
    if name == "testing":
        return import_module("warploom.testing")
    if name == "__version__":
        found = import_module("importlib.metadata").version("warploom")
    else:
        found = getattr(import_module(f"warploom.{_PLACES.get(name, 'core.errors')}"), name)
    globals()[name] = found
    return found


if not TYPE_CHECKING:  # for which every name would be there
    __getattr__ = _load


def __dir__() -> list[str]:
    return __all__
