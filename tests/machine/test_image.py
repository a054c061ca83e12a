"""Checks a module's variables in memory: initial values byte by byte, addresses, constants."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest

from warploom.core.errors import LaunchError
from warploom.core.types import F16, F32, F64, S16, U8, U32, U64, ScalarType
from warploom.isa.instruction import Immediate, Space, Symbol
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.ptx.module import Function, Initializer, Masked, Module, Variable


@pytest.fixture
def memory() -> Iterator[DeviceMemory]:
    made = DeviceMemory(256 << 20)
    yield made
    made.close()


def variable(
    name: str,
    type: ScalarType,
    initial: Initializer | None = None,
    shape: tuple[int | None, ...] = (),
    space: Space = Space.GLOBAL,
    vector: int = 1,
    linkage: str = "",
) -> Variable:
    return Variable(name, space, type, shape, vector, initial=initial, linkage=linkage)


def module(*variables: Variable, functions: tuple[Function, ...] = ()) -> Module:
    return Module((9, 0), ("sm_75",), 64, variables, functions)


def content(memory: DeviceMemory, made: Variable) -> bytes:
    [address] = ModuleGlobals(module(made), memory).addresses((made.name,))
    found = memory.find(address)
    assert found is not None
    return memory.read(address, found.size)


def integers(*values: int) -> tuple[Immediate, ...]:
    return tuple(Immediate(v) for v in values)


def double(value: float) -> Immediate:
    return Immediate(struct.unpack("<Q", struct.pack("<d", value))[0], 64)


def test_numbers_are_little_endian_and_the_rest_is_zero(memory: DeviceMemory) -> None:
    made = variable("a", S16, integers(1, -2), (4,))
    assert content(memory, made) == struct.pack("<4h", 1, -2, 0, 0)


def test_rows_in_braces_start_anew_and_flat_values_run_on(memory: DeviceMemory) -> None:
    rows = variable("a", U8, (integers(1), integers(2, 3)), (2, 3))
    assert content(memory, rows) == bytes([1, 0, 0, 2, 3, 0])
    flat = variable("b", U8, integers(1, 2, 3, 4), (2, 3))
    assert content(memory, flat) == bytes([1, 2, 3, 4, 0, 0])
    vectors = variable("c", U8, (integers(1, 2), integers(3)), (2,), vector=4)
    assert content(memory, vectors) == bytes([1, 2, 0, 0, 3, 0, 0, 0])


def test_an_open_array_is_as_long_as_its_initializer(memory: DeviceMemory) -> None:
    assert content(memory, variable("a", U32, integers(7, 8, 9), (None,))) == struct.pack(
        "<3I", 7, 8, 9
    )


def test_floats_are_rounded_to_the_type(memory: DeviceMemory) -> None:
    third = 1 / 3
    assert content(memory, variable("a", F32, double(third))) == np.float32(third).tobytes()
    assert content(memory, variable("b", F64, double(third))) == struct.pack("<d", third)
    assert content(memory, variable("c", F16, double(third))) == np.float16(third).tobytes()
    one = Immediate(0x3F800000, 32)
    assert content(memory, variable("d", F32, one)) == struct.pack("<f", 1)
    assert content(memory, variable("e", F64, one)) == struct.pack("<d", 1)
    assert content(memory, variable("f", F32, Immediate(3))) == struct.pack("<f", 3)


def test_symbols_become_addresses_wherever_they_are_declared(memory: DeviceMemory) -> None:
    pointer = variable("pointer", U64, Symbol("target", 8))
    target = variable("target", U32, None, (4,))
    image = ModuleGlobals(module(pointer, target), memory)
    at, aim = image.addresses(("pointer", "target"))
    assert struct.unpack("<Q", memory.read(at, 8))[0] == aim + 8


def test_a_masked_symbol_gives_one_part_of_its_address(memory: DeviceMemory) -> None:
    parts = tuple(Masked(Symbol("target"), 0xFF << 8 * k) for k in range(8))
    image = ModuleGlobals(module(variable("a", U8, parts, (8,)), variable("target", U32)), memory)
    at, aim = image.addresses(("a", "target"))
    assert memory.read(at, 8) == struct.pack("<Q", aim)


def test_constants_are_read_only_and_globals_are_not(memory: DeviceMemory) -> None:
    image = ModuleGlobals(module(variable("c", U32, space=Space.CONST), variable("g", U32)), memory)
    constant, plain = image.addresses(("c", "g"))
    assert memory.is_constant(constant)
    assert not memory.is_constant(plain)


def test_variables_of_functions_are_placed_and_shared_ones_are_not(memory: DeviceMemory) -> None:
    inner = variable("inner", U32, Immediate(5))
    function = Function("k", True, body=(inner, variable("tile", U32, space=Space.SHARED)))
    image = ModuleGlobals(module(functions=(function,)), memory)
    assert memory.read(image.addresses(("inner",))[0], 4) == b"\5\0\0\0"
    with pytest.raises(LaunchError):
        image.addresses(("tile",))


def test_an_extern_variable_without_a_definition_is_named(memory: DeviceMemory) -> None:
    image = ModuleGlobals(module(variable("table", U32, linkage="extern")), memory)
    with pytest.raises(LaunchError, match="table has no address"):
        image.addresses(("table",))
