"""Fat binaries and their kernels and variables, as nvcc's code registers them before `main`.

A program is loaded when one of its kernels or variables is first used.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.clients.driver.programs import LoadedProgram, load
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.words import put, text_at
from warploom.clients.runtime.table import begin, entry


@dataclass
class FatBinary:
    """A registered image, and the program that it became."""

    image: int
    program: LoadedProgram | None = None

    def loaded(self) -> LoadedProgram:
        """The program, loaded into the primary context; anew, where that has been reset."""
        begin()
        if self.program is None or self.program.unloaded:
            self.program = load(self.image)
            self.program.handle = state.own(state.current(), self.program)
        return self.program


@dataclass(frozen=True)
class Named:
    """What stands behind an address of the host: a name in a fat binary."""

    binary: FatBinary
    name: str


_binaries: dict[int, FatBinary] = {}
_functions: dict[int, Named] = {}
_variables: dict[int, Named] = {}


@entry("__cudaRegisterFatBinary", early=True)
def register_binary(image: int) -> int:
    """Gives a handle, which nvcc's code hands back."""
    handle = state.handles.add(None)
    _binaries[handle] = FatBinary(image)
    return handle


@entry("__cudaRegisterFatBinaryEnd", "__cudaInitModule", early=True)
def register_end(_handle: int) -> int:
    """Everything of this binary is registered; 1 tells __cudaInitModule's caller to go on."""
    return 1


@entry("__cudaUnregisterFatBinary", early=True)
def unregister(handle: int) -> None:
    """The process ends, or a library that had kernels is closed."""
    gone = _binaries.pop(handle, None)
    if gone and gone.program:
        gone.program.unload()
    for table in (_functions, _variables):
        for address in [a for a, named in table.items() if named.binary is gone]:
            del table[address]


@entry("__cudaRegisterFunction", early=True)
def register_function(handle: int, host: int, _device: int, name: int) -> None:
    _functions[host] = Named(_binaries[handle], text_at(name))


@entry("__cudaRegisterVar", early=True)
def register_variable(handle: int, host: int, _device: int, name: int) -> None:
    _variables[host] = Named(_binaries[handle], text_at(name))


@entry("__cudaRegisterManagedVar")
def register_managed(handle: int, host: int, _device: int, name: int) -> None:
    """A pointer of the host that must lead to the variable before `main`."""
    named = Named(_binaries[handle], text_at(name))
    address, _ = named.binary.loaded().variable(named.name)
    put(host, address)
    _variables[address] = named


def function_of(host: int) -> int:
    """The driver's handle of the kernel that the host calls by an address."""
    named = _functions.get(host)
    if named is None:
        raise DriverError(Result.INVALID_DEVICE_FUNCTION)
    return named.binary.loaded().function(named.name)


def symbol_of(host: int) -> tuple[int, int]:
    """The address and size on the device of a variable of the host's."""
    named = _variables.get(host)
    if named is None:
        raise DriverError(Result.INVALID_SYMBOL)
    return named.binary.loaded().variable(named.name)
