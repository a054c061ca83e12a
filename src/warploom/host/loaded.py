"""A kernel of a loaded program: what runs, and what it needs of its device."""

from __future__ import annotations

import weakref
from functools import cached_property

from warploom.analysis.build import build
from warploom.analysis.program import Program
from warploom.core.collector import collector_paused
from warploom.core.source import NO_TEXT, Text
from warploom.devices.occupancy import Demand, Occupancy, occupancy_of
from warploom.host.arguments import Packer
from warploom.host.assembly import Assembly, NoAssembly, assembly_of
from warploom.host.context import Context
from warploom.host.resources import Resources, resources_of
from warploom.host.signatures import Parameter, signature_of
from warploom.host.targets import check_instructions
from warploom.machine.image import Image
from warploom.machine.launch import Launch, shared_bytes
from warploom.ptx.ir import Function, Module


class LoadedKernel:
    """A kernel and what is known of it on its device, whatever the launch."""

    def __init__(
        self,
        context: Context,
        ptx: Module,
        image: Image,
        name: str,
        source: Text = NO_TEXT,
        terms: str = "cuda",
    ) -> None:
        self.context, self.image, self.name, self.source = context, image, name, source
        self.terms = terms
        self._ptx = ptx
        self.prepared: dict[object, Launch] = {}
        """Launches without arguments by configuration (`host.prepare`)."""

    @cached_property
    def program(self) -> Program:
        """Return the kernel as machines run it; UnsupportedInstruction where the device cannot."""
        with collector_paused():
            program = build(self._ptx, self.name, self.context.stack_bytes)
        check_instructions(program, self.context.spec)
        # What is kept of a program refers to it: a cycle, which would wait for a full collection.
        weakref.finalize(self, program.kept.clear).atexit = False
        return program

    @property
    def line(self) -> str:
        """Return the place where it begins, as `file:line` of its source."""
        return self.program.line(0)

    @cached_property
    def resources(self) -> Resources:
        """Registers and barriers, as ptxas says or as estimated."""
        return resources_of(self.program, self.function, self.context.spec)

    @cached_property
    def assembly(self) -> Assembly | NoAssembly:
        """Return its machine code for the device, or why there is none."""
        return assembly_of(self.program, self.context.spec.compute_capability)

    @cached_property
    def function(self) -> Function:
        """Return the kernel as PTX declares it."""
        return next(entry for entry in self._ptx.entries if entry.name == self.name)

    @cached_property
    def packer(self) -> Packer:
        """Makes the parameter blocks of its launches."""
        parameters = self.function.parameters
        return Packer(self.program, parameters, self.signature, self.context.memory)

    @cached_property
    def signature(self) -> tuple[Parameter, ...]:
        """Returns its parameters as the source declares them."""
        parameters = self.function.parameters
        return signature_of(self.name, parameters, self.source.content, self._ptx.text)

    def occupancy(self, launch: Launch) -> Occupancy:
        """Returns how many blocks of a launch an SM holds, by ptxas' registers or an estimate."""
        resources = self.resources
        demand = Demand(
            launch.threads_per_block,
            resources.registers,
            shared_bytes(self.program, launch),
            resources.barriers,
        )
        return occupancy_of(self.context.spec, demand)
