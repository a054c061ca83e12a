"""A kernel of a loaded program: what runs, and what it needs of its device."""

from __future__ import annotations

from warploom.core.lazy import cached_property
from warploom.core.source import NO_TEXT, Text
from warploom.devices.occupancy import Demand, Occupancy, occupancy_of
from warploom.host.arguments import Packer
from warploom.host.context import Context
from warploom.host.programs.assembly import Assembly, NoAssembly
from warploom.host.programs.builds import Builds
from warploom.host.programs.resources import Resources
from warploom.host.programs.signatures import Parameter, signature_of
from warploom.isa.instruction import Space
from warploom.machine.launch import Launch, shared_bytes
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.program.program import Program
from warploom.ptx.module import Function, Module


class LoadedKernel:
    """A kernel and what is known of it on its device, whatever the launch."""

    def __init__(
        self,
        context: Context,
        ptx: Module,
        image: ModuleGlobals,
        name: str,
        source: Text = NO_TEXT,
        terms: str = "cuda",
        builds: Builds | None = None,
    ) -> None:
        self.context, self.image, self.name, self.source = context, image, name, source
        self.terms = terms
        self._ptx = ptx
        self._built = (builds or Builds()).kernel(ptx, name, context.spec, context.stack_bytes)
        self.prepared: dict[object, Launch] = {}
        """Launches without arguments by configuration (`host.prepare`)."""

    @cached_property
    def program(self) -> Program:
        """Returns the kernel as machines run it; UnsupportedInstruction where the device cannot."""
        return self._built.program

    @property
    def line(self) -> str:
        """Returns the position where it begins, as `file:line` of its source."""
        return self.program.line(0)

    @property
    def resources(self) -> Resources:
        """Registers and barriers, as ptxas says or as estimated."""
        return self._built.resources

    @property
    def assembly(self) -> Assembly | NoAssembly:
        """Returns its machine code for the device, or why there is none."""
        return self._built.assembly

    @property
    def function(self) -> Function:
        """Returns the kernel as PTX declares it."""
        return self._built.function

    @cached_property
    def packer(self) -> Packer:
        """Makes the parameter blocks of its launches."""
        parameters = self.function.parameters
        return Packer(self.program, parameters, self.signature, self.context.memory)

    @cached_property
    def takes_local_memory(self) -> bool:
        """Returns whether a parameter points to shared memory, as OpenCL's `__local` ones do."""
        return any(one.pointer_space is Space.SHARED for one in self.function.parameters)

    @cached_property
    def signature(self) -> tuple[Parameter, ...]:
        """Returns its parameters as the source declares them."""
        parameters = self.function.parameters
        return signature_of(self.name, parameters, self.source.content, self._ptx.text)

    @property
    def has_structures(self) -> bool | None:
        """Returns whether a parameter points to structures; None where the source does not say."""
        declared = [one for one in self.signature if one.text]
        if not declared:
            return None
        return any("*" in one.text and one.type is None for one in declared)

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
