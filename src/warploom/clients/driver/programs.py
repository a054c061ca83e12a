"""Loaded programs: what a module or a library of the driver API leads to."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from warploom.clients.driver.device_runtime import with_runtime
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.fatbin import NoPtx, ptx_at
from warploom.clients.host_stack import file_at, library_at
from warploom.clients.kept_ptx import kept_ptx
from warploom.clients.nvidia_libraries import machine_code_of
from warploom.core.errors import WarploomError
from warploom.core.lazy import cached_property
from warploom.host.kernel import Kernel
from warploom.host.module import Module
from warploom.isa.instruction import Space
from warploom.ptx.module import Variable


@dataclass(eq=False)
class LoadedProgram:
    """A program in device memory, its functions by name and their handles. `launching` are the
    threads that are in a launch of it: as long as there are any, it stays in memory."""

    module: Module
    functions: dict[str, int] = field(default_factory=dict[str, int])
    handle: int = 0
    launching: set[int] = field(default_factory=set[int])
    unloaded: bool = False
    is_library: bool = False

    def function(self, name: str) -> int:
        """Returns the handle of the kernel of that name; NOT_FOUND where there is none."""
        if name not in self.module.kernels:
            raise DriverError(Result.NOT_FOUND)
        if name not in self.functions:
            made = Function(self, self.module[name])
            self.functions[name] = state.handles.add(made)
        return self.functions[name]

    def variable(self, name: str) -> tuple[int, int]:
        """Returns the address and the size of a variable; NOT_FOUND where there is none."""
        found = self.module.image.find_variable(name)
        if found is None:
            raise DriverError(Result.NOT_FOUND)
        return found

    def begin_launch(self) -> None:
        """Keeps the program in memory until `end_launch`; INVALID_HANDLE where it is unloaded."""
        self.launching.add(threading.get_ident())
        if self.unloaded:
            self.end_launch()
            raise DriverError(Result.INVALID_HANDLE)

    def end_launch(self) -> None:
        """Notes that the launch of this thread has ended, in whatever way."""
        self.launching.discard(threading.get_ident())
        if self.unloaded:
            self._release()

    def unload(self) -> None:
        """Releases its functions; its memory goes with the last launch. Doing so twice is
        harmless."""
        if self.unloaded:
            return
        self.unloaded = True
        for handle in self.functions.values():
            state.handles.remove(handle)
        self._release()

    def _release(self) -> None:
        if not self.launching:
            state.when_idle(self.module.image.release)


@dataclass(eq=False)
class Function:
    """A kernel as launches know it; `attributes` are those that programs set."""

    program: LoadedProgram
    kernel: Kernel
    attributes: dict[int, int] = field(default_factory=dict[int, int])
    shape: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0
    parameters: bytearray = field(default_factory=bytearray)

    @property
    def dynamic_limit(self) -> int:
        """Bytes of dynamic shared memory that a launch may ask for."""
        spec = state.device.spec
        static = self.kernel.program.shared_bytes
        return self.attributes.get(8, max(0, spec.shared_bytes_per_block - static))

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Offset and size of each parameter."""
        program = self.kernel.program
        return tuple(
            (program.slots[p.name].offset, p.size) for p in self.kernel.function.parameters
        )

    @cached_property
    def const_bytes(self) -> int:
        """Constant memory of its module."""
        ir = self.program.module.ir
        constants = (v for v in ir.variables if v.space is Space.CONST)
        return sum(_size(variable) for variable in constants)


def _size(variable: Variable) -> int:
    return variable.size if None not in variable.shape else 0


def load(image: int, name: str = "module") -> LoadedProgram:
    """Returns the program of an image in memory: PTX text, or a fat binary with PTX in it. Messages
    call it by the file that it is in, or `name` in memory of no file. Raises DriverError,
    explained: NO_BINARY_FOR_GPU without PTX, INVALID_PTX for what is none."""
    if not image:
        raise DriverError(Result.INVALID_VALUE)
    device = state.device
    try:
        text, *others = ptx_at(image, device.spec.compute_capability)
    except NoPtx as missing:
        kept = kept_ptx(image)
        if kept is None:
            explained = machine_code_of(library_at(image)) or str(missing)
            raise DriverError(Result.NO_BINARY_FOR_GPU, explained) from None
        text, others = kept, []
    try:
        file = file_at(image)
        title = f"PTX of {file}" if file else name
        return LoadedProgram(with_runtime(device, text, title, others))
    except WarploomError as error:
        raise DriverError(Result.INVALID_PTX, str(error)) from None


def function_at(handle: int) -> Function:
    """Returns the function of a handle."""
    return state.handles.get(handle, Function)
