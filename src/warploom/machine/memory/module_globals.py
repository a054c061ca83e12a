"""Allocates a module's `.global` and `.const` variables in device memory and writes their initial
values.

Only these variables live as long as the module; shared and local ones belong to a launch.
Initializers may name other variables or functions: for `.global .u64 p = a + 8;`, the address of
`a` plus 8 is stored in `p`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from warploom.core.errors import LaunchError
from warploom.core.types import ScalarType
from warploom.isa.instruction import Immediate, Space, Symbol
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.callgraph import CallGraph
from warploom.ptx.module import Initializer, Masked, Module, Variable

Scalar = Immediate | Symbol | Masked


class ModuleGlobals:
    """The variables of `module`, allocated in `memory`; kernels cannot write its constants. If
    `addresses` are given, the variables are there already, with their contents.

    Raises LaunchError if an initial value names something that has no address.
    """

    def __init__(
        self, module: Module, memory: DeviceMemory, addresses: Mapping[str, int] | None = None
    ) -> None:
        """Allocates all variables and writes their initial values, unless `addresses`, those of all
        variables by name, are given (a core file is opened)."""
        self._memory = memory
        self._graph = CallGraph(module)
        self._variables = {v.name: v for v in _variables(module)}
        self._allocations: dict[str, int] = {}
        if addresses is not None:
            self._addresses = dict(addresses)
            return
        # All variables are placed before any is initialized, since initializers may name later
        # ones.
        self._addresses = {name: self._allocate(v) for name, v in self._variables.items()}
        for variable in self._variables.values():
            if variable.initial is not None:
                self._initialise(variable)

    def _allocate(self, variable: Variable) -> int:
        """Returns the address of a variable, allocated now; all arrays of one constant bank share
        one allocation, made for the first of them."""
        name = f".const[{variable.bank}]" if variable.bank else variable.name
        if name not in self._allocations:
            constant = variable.space is Space.CONST
            allocation = self._memory.allocate(
                _size(variable), name, constant=constant, alignment=variable.alignment
            )
            self._allocations[name] = allocation.address
        return self._allocations[name]

    def reset(self) -> None:
        """Resets every variable that kernels can write to its initial value, zeros where it has
        none."""
        for name, data, _ in self.contents():
            data[:] = 0
            if self._variables[name].initial is not None:
                self._initialise(self._variables[name])

    def _initialise(self, variable: Variable) -> None:
        """Writes the initial value of a variable, which has one, to its memory."""
        self._memory.write(self._addresses[variable.name], self._encode(variable))

    def contents(self) -> Iterator[tuple[str, npt.NDArray[np.uint8], int]]:
        """Yields the name, a writable view of the bytes, and the address of every `.global`
        variable; constants are left out."""
        for variable in self._variables.values():
            if variable.space is not Space.CONST:
                address = self._addresses[variable.name]
                yield variable.name, self._memory.view(address, _size(variable)), address

    def find_variable(self, name: str) -> tuple[int, int] | None:
        """Returns the address and the size in bytes of a variable; None if the module has none of
        that name, or `release` was called."""
        address, variable = self._addresses.get(name), self._variables.get(name)
        return None if address is None or variable is None else (address, _size(variable))

    @property
    def addresses_by_name(self) -> dict[str, int]:
        """Returns the addresses of all variables, by name."""
        return dict(self._addresses)

    @property
    def sizes_by_name(self) -> dict[str, int]:
        """Returns the bytes of all variables, by name."""
        return {name: _size(variable) for name, variable in self._variables.items()}

    def release(self) -> None:
        """Frees the memory of all variables that this object allocated, and drops all addresses,
        given ones too."""
        for address in self._allocations.values():
            self._memory.free(address)
        self._allocations.clear()
        self._addresses.clear()

    def addresses(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Returns the addresses of the variables or functions of these names, in order. Raises
        LaunchError for one that the module does not define."""
        return tuple(self._address(name) for name in names)

    def _address(self, name: str) -> int:
        """Returns the address of a variable, or of a function (a number, `CallGraph.address`).
        Raises LaunchError if the module does not define it."""
        address = self._addresses.get(name, self._graph.address(name))
        if address is None:
            raise LaunchError(
                f"{name} has no address: the module declares it, but does not define it. Define "
                "it in the same source, or link the source that defines it: gpu.link([...])."
            )
        return address

    def _encode(self, variable: Variable) -> bytes:
        """Returns the initial bytes of a variable, up to the last element that its initializer
        names; fresh memory supplies the zeros that follow."""
        element_bytes = variable.type.bytes
        items = dict(_elements(variable.initial, _dims(variable)))
        data = bytearray(element_bytes * (1 + max(items, default=-1)))
        for index, item in items.items():
            offset = index * element_bytes
            data[offset : offset + element_bytes] = self._scalar(item, variable.type)
        return bytes(data)

    def _scalar(self, item: Scalar, type: ScalarType) -> bytes:
        """Returns the bytes of one element of `type`: a literal (rounded for float types), an
        address, or the part of an address under a mask (`0xff00(a)` is its second byte). Raises
        LaunchError for the address of something that the module does not define."""
        if isinstance(item, Symbol):
            value = self._address(item.name) + item.offset
        elif isinstance(item, Masked):
            address = self._address(item.symbol.name) + item.symbol.offset
            # Divides by the lowest bit of the mask, which shifts the selected byte to bit 0.
            value = (address & item.mask) // (item.mask & -item.mask)
        elif type.is_float:
            value = _float_bits(item, type)
        else:
            value = item.value
        return (value & ((1 << type.bits) - 1)).to_bytes(type.bytes, "little")


def _variables(module: Module) -> Iterator[Variable]:
    """Yields every `.global` and `.const` variable that the module defines, including those in
    functions; of `extern` ones only arrays of a constant bank, which their declaration defines."""
    in_functions = (
        statement
        for f in module.functions
        for statement in f.body or ()
        if isinstance(statement, Variable)
    )
    for variable in (*module.variables, *in_functions):
        is_defined = variable.linkage != "extern" or variable.bank
        if variable.space in (Space.GLOBAL, Space.CONST) and is_defined:
            yield variable


def _dims(variable: Variable) -> tuple[int, ...]:
    """Returns the extents of a variable's array, outermost first, then that of its vector type, if
    any; () for a scalar. An open extent (`a[]`) is the length of the initializer, 0 without one."""
    initial = variable.initial
    length = len(initial) if isinstance(initial, tuple) else 0
    dims = tuple(length if extent is None else extent for extent in variable.shape)
    return dims if variable.vector == 1 else (*dims, variable.vector)


BANK_BYTES = 64 << 10
"""The size of a constant bank (PTX ISA, "Banked Constant State Space")."""


def _size(variable: Variable) -> int:
    """Returns the size of a variable in bytes: that of a whole bank for an array in a constant
    bank, else of its elements."""
    if variable.bank:
        return BANK_BYTES
    size = variable.type.bytes
    for extent in _dims(variable):
        size *= extent
    return size


def _elements(initial: Initializer | None, dims: tuple[int, ...]) -> Iterator[tuple[int, Scalar]]:
    """Yields (index among all scalars of the variable, scalar) for each scalar of an initializer;
    nothing without one. `dims` are the extents (`_dims`).

    If an item is in inner braces, each item starts a row; else values follow one another. For
    `a[2][3] = {{1}, {2, 3}}`: (0, 1), (3, 2), (4, 3).
    """
    if initial is None:
        return
    if not isinstance(initial, tuple):
        yield 0, initial
        return
    row_length = 1
    for extent in dims[1:]:
        row_length *= extent
    nested = any(isinstance(item, tuple) for item in initial)
    for position, item in enumerate(initial):
        start = position * row_length if nested else position
        for index, scalar in _elements(item, dims[1:]):
            yield start + index, scalar


def _float_bits(item: Immediate, type: ScalarType) -> int:
    """Returns the bits of a literal in a variable of float type: those of a float literal of the
    same width as they are, else the number (an integer literal's too), rounded to nearest."""
    if item.float_bits == type.bits:
        return item.value
    value = float(item.value)
    if item.float_bits:
        formats = {32: ("<I", "<f"), 64: ("<Q", "<d")}[item.float_bits]
        value = float(struct.unpack(formats[1], struct.pack(formats[0], item.value))[0])
    rounded = {16: np.float16, 32: np.float32, 64: np.float64}[type.bits](value)
    return int.from_bytes(rounded.tobytes(), "little")
