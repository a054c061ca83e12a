"""The reference machine: the definition of what a launch does, in plain Python.

Blocks run one after another; a warp is an active mask and a stack of places to meet again. Other
machines must agree with this one on every register, byte of memory and count.
"""

from __future__ import annotations

from warploom.analysis.program import Program
from warploom.machine.launch import Launch
from warploom.machine.memory import DeviceMemory
from warploom.machine.reference.block import run_blocks
from warploom.machine.reference.state import Run
from warploom.machine.tally import Tally


class ReferenceEngine:
    """Runs programs the readable way."""

    def launch(self, program: Program, launch: Launch, memory: DeviceMemory) -> Tally:
        """Run all blocks of a launch, in the order of their numbers; gives what was counted.

        Raises MemoryFault, DeviceTrap, DeadlockError or InstructionLimit, as the kernel deserves.
        """
        tally = Tally.empty(program, launch.blocks * launch.warps_per_block)
        rows = {(row.instruction, row.space): i for i, row in enumerate(tally.rows)}
        plan = launch.schedule.plan(launch, program.exit)
        run_blocks(Run(program, launch, memory, tally, rows, plan))
        return tally
