"""What the kernels of a device share when they are launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from warploom.devices.spec import DeviceSpec
from warploom.host.engines import Execute
from warploom.machine.launch import Schedule
from warploom.machine.memory import DeviceMemory
from warploom.rules.choice import AccessRules, MemoryOptions


@dataclass(frozen=True)
class Context:
    """What a launch needs of its device. `engine` is made when it is first asked for."""

    spec: DeviceSpec
    rules: AccessRules
    options: MemoryOptions
    memory: DeviceMemory
    engine_name: str
    engine: Callable[[], Execute]
    output: Callable[[str], object] | None = None
    """What takes the text that kernels print; None is the standard output."""
    schedule: Schedule = field(default_factory=Schedule)
    """Who goes first where the architecture leaves it open."""
    turn: Lock = field(default_factory=Lock)
    """Held while a kernel runs: streams run beside the host, and by turns among themselves."""
