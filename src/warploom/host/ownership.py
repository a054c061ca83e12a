"""Objects belong to the device that made them, which is known by its memory."""

from __future__ import annotations

from warploom.core.errors import LaunchError
from warploom.machine.memory.device_memory import DeviceMemory


def check_owner(owner: DeviceMemory | None, memory: DeviceMemory, what: str) -> None:
    """Raises LaunchError where `what`, an object of the device with memory `owner`, is used with
    the device of another `memory`. None stands for an object of no device."""
    if owner is not None and owner is not memory:
        raise LaunchError(f"{what} belongs to another device; make it with this one")
