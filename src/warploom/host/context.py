"""Holds the state that the kernels of a device share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warploom.core.errors import WarploomError
from warploom.core.lazy import cached_property
from warploom.cost.device_rules import AccessRules, MemoryOptions, access_rules
from warploom.devices.spec import DeviceSpec
from warploom.host.engines import Execute, checking_engine, find_engine
from warploom.machine.launch import INDEPENDENT_SINCE, ORDERS, POLICIES, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.turn import LaunchLock
from warploom.program.build import STACK_BYTES

if TYPE_CHECKING:
    from warploom.machine.compiled.engine import CompiledEngine
    from warploom.machine.reference.machine import ReferenceEngine
    from warploom.sanitize.streams import Streams


@dataclass(frozen=True)
class Context:
    """The state of a device that its launches share; each device has memory of its own."""

    spec: DeviceSpec
    options: MemoryOptions
    engine_name: str
    schedule: Schedule
    """Who goes first where the architecture leaves it open."""
    workers: int | None = None
    """How many threads share the blocks of a launch, where its results do not depend on that."""
    output: Callable[[str], object] | None = None
    """What takes the text that kernels print; None is the standard output."""
    stack_bytes: int = STACK_BYTES
    """What a thread's stack has, for calls that cannot be inlined and for alloca."""
    memory: DeviceMemory = field(default_factory=DeviceMemory)
    strict: bool = True
    """Whether arguments are checked against the types that the source declares."""
    record: bool = False
    """Whether launches are recorded for timing."""
    sampled: bool = False
    """Executes only the first blocks of launches that are recorded."""
    sanitize: tuple[str, ...] = ()
    """The tools that check each launch."""
    turn: LaunchLock = field(default_factory=LaunchLock)
    """Held while a kernel runs: streams run beside the host, and by turns among themselves."""

    @cached_property
    def rules(self) -> AccessRules:
        """Returns what accesses cost."""
        return access_rules(self.spec, self.options)

    @cached_property
    def engine(self) -> Execute:
        """Returns the engine, made when it is first asked for."""
        return find_engine(self.engine_name, self.spec, self.options, self.workers)

    @cached_property
    def streams(self) -> Streams:
        """Returns what sanitizers keep of the order of streams, made when it is first asked for."""
        from warploom.sanitize.streams import Streams

        streams = Streams(self.memory)
        self.memory.copy_listeners.append(streams.copied_by_host)
        return streams

    @cached_property
    def checking_engine(self) -> CompiledEngine | ReferenceEngine:
        """Returns the engine for launches with sanitizers, made when it is first asked for."""
        return checking_engine(self.engine_name, self.spec, self.options)


def schedule_of(spec: DeviceSpec, policy: str, seed: int, order: str = ORDERS[0]) -> Schedule:
    """Returns the schedule of a device by the policy of that name, one of POLICIES, and the order
    of blocks, one of ORDERS. Raises WarploomError for another policy than "converge" if the order
    is "any": a policy and a seed give one result."""
    independent, any_order = spec.compute_capability >= INDEPENDENT_SINCE, order == "any"
    if any_order and policy != POLICIES[0]:
        raise WarploomError(
            f'order="any" runs blocks in parallel, but schedule={policy!r} runs them one at a '
            "time and gives one result per seed: omit one of the two options"
        )
    return Schedule(policy, seed, independent, sms=spec.sms, any_order=any_order)
