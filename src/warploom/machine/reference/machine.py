"""Implements the reference machine: the definition of what a launch does, in plain Python.

Each thread block runs instruction by instruction; a warp is an active mask and a SIMT stack. Other
machines must agree with it on every register, byte of memory and count.
"""

from __future__ import annotations

from warploom.core.interrupts import interrupts_held
from warploom.cost.device_rules import MemoryOptions, access_rules
from warploom.cost.fields import CostRecord
from warploom.devices.catalog import find_device
from warploom.devices.spec import DeviceSpec
from warploom.machine.access_costs import common_cost
from warploom.machine.caches import empty_caches
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.observation import ObservedLaunch
from warploom.machine.reference.block import run_blocks, schedule_arrays
from warploom.machine.reference.observing import ObserverCalls
from warploom.machine.reference.state import LaunchState, Listener, Sanitizer
from warploom.machine.tally import Tally
from warploom.program.program import Program


class ReferenceEngine:
    """Runs programs on the reference machine, with the cost rules of a device; an H100 if none is
    given."""

    def __init__(
        self, spec: DeviceSpec | None = None, options: MemoryOptions | None = None
    ) -> None:
        """Stores a device (the default one, if none is given) and its access cost rules; memory is
        passed to each launch."""
        self._spec = spec or find_device()
        self._rules = access_rules(self._spec, options)

    def launch(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        listener: Listener | None = None,
        sanitizer: Sanitizer | None = None,
        observer: ObservedLaunch | None = None,
    ) -> Tally:
        """Runs all blocks of a launch and returns its tally. A `listener` receives every event, a
        `sanitizer` checks accesses, and the functions of an `observer` are called.

        Raises MemoryFault, DeviceTrap, DeadlockError or InstructionLimit if the kernel fails, and
        LaunchCancelled.
        """
        tally = Tally.empty(program, launch.blocks * launch.warps_per_block)
        for access, record in zip(tally.access_records, tally.records, strict=True):
            common = common_cost(program, access, self._rules)
            record[CostRecord.example_cost] = common[CostRecord.transactions]
        record_numbers = {
            (access.instruction, access.space): i for i, access in enumerate(tally.access_records)
        }
        plan = launch.schedule.plan(launch, program)
        plan.available = launch.available_slots
        caches = empty_caches(self._spec, self._rules, program, launch, memory)
        slots, states, tables = schedule_arrays(launch, plan)
        run = LaunchState(
            program,
            launch,
            memory,
            tally,
            record_numbers,
            self._rules,
            plan,
            slots,
            caches,
            states,
            tables,
            listener,
            sanitizer,
            None if observer is None else ObserverCalls(observer, launch.warp_size),
        )
        with interrupts_held():
            run_blocks(run)
        return tally
