"""A module's variables in device memory: places them, writes their initial values, knows where.

Only `.global` and `.const` variables live for as long as the module; shared and local ones belong
to a launch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from warploom.core.errors import LaunchError
from warploom.core.types import ScalarType
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.callgraph import CallGraph
from warploom.ptx.ir import Immediate, Initializer, Masked, Module, Space, Symbol, Variable

Scalar = Immediate | Symbol | Masked


class ModuleGlobals:
    """The variables of `module`, placed in `memory`; kernels cannot write its constants. Where
    `addresses` are given, they are there already, with their contents.

    Raises LaunchError where an initial value names something that has no address.
    """

    def __init__(
        self, module: Module, memory: DeviceMemory, addresses: Mapping[str, int] | None = None
    ) -> None:
        self._memory = memory
        self._graph = CallGraph(module)
        self._variables = {v.name: v for v in _variables(module)}
        self._allocations: dict[str, int] = {}
        if addresses is not None:
            self._addresses = dict(addresses)
            return
        self._addresses = {name: self._allocate(v) for name, v in self._variables.items()}
        for variable in self._variables.values():
            if variable.initial is not None:
                self._initialise(variable)

    def _allocate(self, variable: Variable) -> int:
        """Returns where a variable is; arrays of one constant bank are in one place."""
        name = f".const[{variable.bank}]" if variable.bank else variable.name
        if name not in self._allocations:
            constant = variable.space is Space.CONST
            made = self._memory.allocate(
                _size(variable), name, constant=constant, alignment=variable.alignment
            )
            self._allocations[name] = made.address
        return self._allocations[name]

    def reset(self) -> None:
        """Give every variable that kernels can write its initial value again."""
        for name, data, _ in self.contents():
            data[:] = 0
            if self._variables[name].initial is not None:
                self._initialise(self._variables[name])

    def _initialise(self, variable: Variable) -> None:
        self._memory.write(self._addresses[variable.name], self._encode(variable))

    def contents(self) -> Iterator[tuple[str, npt.NDArray[np.uint8], int]]:
        """Return every variable that kernels can write: name, bytes (not a copy), address."""
        for variable in self._variables.values():
            if variable.space is not Space.CONST:
                address = self._addresses[variable.name]
                yield variable.name, self._memory.view(address, _size(variable)), address

    def place_of(self, name: str) -> tuple[int, int] | None:
        """Return the address and the size of a variable; None where the module has none of that
        name."""
        address, variable = self._addresses.get(name), self._variables.get(name)
        return None if address is None or variable is None else (address, _size(variable))

    @property
    def places(self) -> dict[str, int]:
        """Return the addresses of all variables, by name."""
        return dict(self._addresses)

    def release(self) -> None:
        """Give the memory of all variables back."""
        for address in self._allocations.values():
            self._memory.free(address)
        self._allocations.clear()
        self._addresses.clear()

    def addresses(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Returns where the variables of these names are."""
        return tuple(self._address(name) for name in names)

    def _address(self, name: str) -> int:
        found = self._addresses.get(name, self._graph.address(name))
        if found is None:
            raise LaunchError(
                f"{name} has no address: the module declares it, but does not define it. Define it"
                f" in the same source, or link the one that does: gpu.link([...])."
            )
        return found

    def _encode(self, variable: Variable) -> bytes:
        """Return the bytes that begin a variable, up to the last that its initializer names; behind
        them is what memory holds when it is given out: zeros."""
        step = variable.type.bytes
        items = dict(_elements(variable.initial, _dims(variable)))
        data = bytearray(step * (1 + max(items, default=-1)))
        for index, item in items.items():
            at = index * step
            data[at : at + step] = self._scalar(item, variable.type)
        return bytes(data)

    def _scalar(self, item: Scalar, type: ScalarType) -> bytes:
        if isinstance(item, Symbol):
            value = self._address(item.name) + item.offset
        elif isinstance(item, Masked):
            whole = self._address(item.symbol.name) + item.symbol.offset
            value = (whole & item.mask) // (item.mask & -item.mask)
        elif type.is_float:
            value = _float_bits(item, type)
        else:
            value = item.value
        return (value & ((1 << type.bits) - 1)).to_bytes(type.bytes, "little")


def _variables(module: Module) -> Iterator[Variable]:
    """Return every variable that the module defines, those inside of functions too."""
    bodies = (s for f in module.functions for s in f.body or () if isinstance(s, Variable))
    for variable in (*module.variables, *bodies):
        defined = variable.linkage != "extern" or variable.bank
        if variable.space in (Space.GLOBAL, Space.CONST) and defined:
            yield variable


def _dims(variable: Variable) -> tuple[int, ...]:
    """Lengths of the array and the vector; an open first one is as long as the initializer."""
    initial = variable.initial
    given = len(initial) if isinstance(initial, tuple) else 0
    dims = tuple(given if n is None else n for n in variable.shape)
    return dims if variable.vector == 1 else (*dims, variable.vector)


BANK_BYTES = 64 << 10
"""A constant bank (PTX ISA, "Banked Constant State Space")."""


def _size(variable: Variable) -> int:
    if variable.bank:
        return BANK_BYTES
    size = variable.type.bytes
    for n in _dims(variable):
        size *= n
    return size


def _elements(initial: Initializer | None, dims: tuple[int, ...]) -> Iterator[tuple[int, Scalar]]:
    """Yield each given scalar with its index among the scalars of the variable.

    Inner braces stand for a whole row each; without them values follow one another.
    """
    if initial is None:
        return
    if not isinstance(initial, tuple):
        yield 0, initial
        return
    row = 1
    for n in dims[1:]:
        row *= n
    nested = any(isinstance(item, tuple) for item in initial)
    for position, item in enumerate(initial):
        start = position * row if nested else position
        for index, scalar in _elements(item, dims[1:]):
            yield start + index, scalar


def _float_bits(item: Immediate, type: ScalarType) -> int:
    """Return the bits of a literal in a variable of float type, rounded to it where it is wider."""
    if item.float_bits == type.bits:
        return item.value
    value = float(item.value)
    if item.float_bits:
        code = {32: ("<I", "<f"), 64: ("<Q", "<d")}[item.float_bits]
        value = float(struct.unpack(code[1], struct.pack(code[0], item.value))[0])
    made = {16: np.float16, 32: np.float32, 64: np.float64}[type.bits](value)
    return int.from_bytes(made.tobytes(), "little")
