"""Fat binaries with their kernels and variables, which nvcc's code registers when a library is
loaded.

`native/registration.h` keeps the addresses; a program is loaded when one of its kernels or
variables is first used.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

from warploom.clients.driver.programs import Function, LoadedProgram, load
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.words import put, text_at
from warploom.clients.runtime.table import begin, entry

KERNELS, VARIABLES = 0, 1
"""The kinds of symbols in `native/registration.h`."""


class _RegisteredBinary(ctypes.Structure):
    """`registered_binary` of `native/registration.h`."""

    _fields_ = (("image", ctypes.c_void_p), ("used", ctypes.c_int))


@dataclass
class FatBinary:
    """A registered image, and the program that it became."""

    image: int
    program: LoadedProgram | None = None

    def loaded(self) -> LoadedProgram:
        """Returns the program, loaded into the primary context; anew, where that has been reset."""
        begin()
        if self.program is None or self.program.unloaded:
            self.program = load(self.image)
            self.program.handle = state.own(state.current(), self.program)
        return self.program


@dataclass(frozen=True)
class Symbol:
    """A name in a fat binary, by which the host's address of a kernel or variable is resolved."""

    binary: FatBinary
    name: str


_binaries: dict[int, FatBinary] = {}
_symbols: dict[tuple[int, int], Symbol] = {}
"""Symbols that have been used, by kind and address of the host."""


@cache
def _library() -> ctypes.CDLL:
    """Returns the libcudart of this process, whose table is searched."""
    return ctypes.CDLL("libcudart.so.13")


def _binary(handle: int) -> FatBinary:
    """Returns the binary that nvcc's code knows by `handle`, and has C report its end."""
    if handle not in _binaries:
        registered = _RegisteredBinary.from_address(handle)
        registered.used = 1
        _binaries[handle] = FatBinary(registered.image or 0)
    return _binaries[handle]


def _symbol(kind: int, host: int, missing: Result) -> Symbol:
    """Returns the symbol at an address of the host; raises DriverError(`missing`) for none."""
    found = _symbols.get((kind, host))
    if found is None:
        handle, name = ctypes.c_void_p(), ctypes.c_char_p()
        places = ctypes.byref(handle), ctypes.byref(name)
        if not _library().warploom_find_symbol(kind, ctypes.c_void_p(host), *places):
            raise DriverError(missing)
        found = Symbol(_binary(handle.value or 0), (name.value or b"").decode())
        _symbols[kind, host] = found
    return found


@entry("__warploomUnloadFatBinary", early=True)
def unload(handle: int) -> None:
    """Unloads a binary's program: the process ends, or a library that had kernels is closed."""
    gone = _binaries.pop(handle)
    if gone.program:
        gone.program.unload()
    for key in [key for key, symbol in _symbols.items() if symbol.binary is gone]:
        del _symbols[key]


@entry("__cudaRegisterManagedVar")
def register_managed(handle: int, host: int, _device: int, name: int) -> None:
    """Loads the program of a managed variable, to which a pointer of the host must lead before
    `main`."""
    symbol = Symbol(_binary(handle), text_at(name))
    address, _ = symbol.binary.loaded().variable(symbol.name)
    put(host, address)
    _symbols[VARIABLES, address] = symbol


def function_of(host: int) -> int:
    """Returns the driver's handle of the kernel that the host calls by an address, or by such a
    handle."""
    if state.handles.has(host, Function):
        return host
    symbol = _symbol(KERNELS, host, Result.INVALID_DEVICE_FUNCTION)
    return symbol.binary.loaded().function(symbol.name)


def symbol_of(host: int) -> tuple[int, int]:
    """Returns the address and size on the device of a variable of the host's."""
    symbol = _symbol(VARIABLES, host, Result.INVALID_SYMBOL)
    return symbol.binary.loaded().variable(symbol.name)
