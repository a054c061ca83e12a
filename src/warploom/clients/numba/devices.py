"""The device in Numba's manner: one, number 0."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from warploom.clients.driver.attributes import attributes_of
from warploom.clients.session import session

ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": 1,
    "MAX_BLOCK_DIM_X": 2,
    "MAX_BLOCK_DIM_Y": 3,
    "MAX_BLOCK_DIM_Z": 4,
    "MAX_GRID_DIM_X": 5,
    "MAX_GRID_DIM_Y": 6,
    "MAX_GRID_DIM_Z": 7,
    "MAX_SHARED_MEMORY_PER_BLOCK": 8,
    "TOTAL_CONSTANT_MEMORY": 9,
    "WARP_SIZE": 10,
    "MAX_REGISTERS_PER_BLOCK": 12,
    "CLOCK_RATE": 13,
    "MULTIPROCESSOR_COUNT": 16,
    "CAN_MAP_HOST_MEMORY": 19,
    "CONCURRENT_KERNELS": 31,
    "L2_CACHE_SIZE": 38,
    "MAX_THREADS_PER_MULTI_PROCESSOR": 39,
    "UNIFIED_ADDRESSING": 41,
    "COMPUTE_CAPABILITY_MAJOR": 75,
    "COMPUTE_CAPABILITY_MINOR": 76,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 81,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 82,
    "COOPERATIVE_LAUNCH": 95,
}
"""Numba's names of attributes, with CUDA's numbers."""


class MemoryInfo(NamedTuple):
    """Bytes of the device's memory."""

    free: int
    total: int


class Device:
    """The software GPU as Numba describes a device; attributes have CUDA's names."""

    id = 0

    @property
    def name(self) -> str:
        return session().device.spec.title

    @property
    def compute_capability(self) -> tuple[int, int]:
        return session().device.spec.compute_capability

    def __getattr__(self, attribute: str) -> int:
        if attribute not in ATTRIBUTES:
            raise AttributeError(attribute)
        return attributes_of(session().device.spec)[ATTRIBUTES[attribute]]

    def reset(self) -> None:
        """Arrays live as long as they are referenced: there is nothing to reset."""

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"<CUDA device 0 '{self.name}'>"


@dataclass(frozen=True)
class Context:
    """The device's context."""

    device: Device

    def get_memory_info(self) -> MemoryInfo:
        memory = session().device.memory
        return MemoryInfo(memory.free_bytes, memory.capacity)

    def synchronize(self) -> None:
        """Does nothing: all work has been done."""

    def reset(self) -> None:
        """Arrays live as long as they are referenced."""


DEVICE = Device()
gpus = [DEVICE]


def get_current_device() -> Device:
    return DEVICE


def list_devices() -> list[Device]:
    return gpus


def select_device(device_id: int) -> Device:
    """Chooses device 0; IndexError for others, which are not there."""
    return gpus[device_id]


def current_context(devnum: int | None = None) -> Context:
    return Context(DEVICE)


def close() -> None:
    """Does nothing: a context holds no resources."""


def is_available() -> bool:
    return True


def detect() -> bool:
    """Prints what there is."""
    major, minor = DEVICE.compute_capability
    print(f"Found 1 CUDA devices\nid 0  {DEVICE.name}  [SUPPORTED]")
    print(f"  compute capability: {major}.{minor}")
    return True


@contextmanager
def defer_cleanup() -> Generator[None]:
    """Does nothing: memory is returned at once, so no cleanup is deferred."""
    yield


def profile_start() -> None:
    """Counters are always on."""


def profile_stop() -> None:
    """Counters are always on."""


@contextmanager
def profiling() -> Any:
    """Counters are always on."""
    yield
