"""Python values into parameter bytes: what fits each PTX type, and what does not."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.core.errors import LaunchError, WarploomError
from warploom.host.arguments import Arguments, Packer
from warploom.host.buffer import Buffer
from warploom.host.programs.signatures import Parameter
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.build import build
from warploom.ptx.parser import parse


@pytest.fixture(scope="module")
def memory() -> Iterator[DeviceMemory]:
    made = DeviceMemory(256 << 20)
    yield made
    made.close()


def packed(memory: DeviceMemory, declarations: str, *values: Any) -> Arguments:
    """The arguments of a kernel with these parameters."""
    text = f".version 8.0 .target sm_75 .address_size 64 .entry k({declarations}) {{ ret; }}"
    module = parse(text)
    parameters = module.entries[0].parameters
    unknown = [Parameter()] * len(parameters)
    return Packer(build(module, "k"), parameters, unknown, memory).pack(values)


def one(memory: DeviceMemory, declared: str, value: Any) -> bytes:
    return bytes(packed(memory, f".param {declared} p", value).data)


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (".u32", 7, struct.pack("<I", 7)),
        (".u32", -5, struct.pack("<i", -5)),  # an `int` of C++ is declared .u32
        (".s32", np.int64(-5), struct.pack("<i", -5)),
        (".u64", 2**64 - 1, b"\xff" * 8),
        (".u8", True, b"\1"),
        (".u8", np.True_, b"\1"),
        (".u16", 65535, b"\xff\xff"),
        (".f32", 2.5, struct.pack("<f", 2.5)),
        (".f32", 3, struct.pack("<f", 3)),
        (".f32", np.float64(0.1), np.float32(0.1).tobytes()),
        (".f32", float("inf"), struct.pack("<f", float("inf"))),
        (".f64", np.float32(0.1), struct.pack("<d", float(np.float32(0.1)))),
        (".b32", np.float32(1.5), struct.pack("<f", 1.5)),
        (".b64", np.float64(1.5), struct.pack("<d", 1.5)),
        (".b16", np.float16(1.5), np.float16(1.5).tobytes()),
    ],
)
def test_numbers_that_fit(memory: DeviceMemory, declared: str, value: Any, expected: bytes) -> None:
    assert one(memory, declared, value) == expected


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        (".u32", 2**32, "from -2147483648 to 4294967295"),
        (".u32", -(2**31) - 1, "from -2147483648"),
        (".s32", 2**31, "to 2147483647"),
        (".u8", 256, "to 255"),
        (".u32", 1.0, "takes an integer"),
        (".u32", np.float32(1), "takes an integer"),
        (".b32", 1.5, "takes an integer"),
        (".b32", np.float64(1.5), "takes an integer"),
        (".f32", 1e300, r"at most 3\.40282e\+38"),
        (".f32", 10**400, "at most"),
        (".f32", "2", "takes a number"),
        (".f32", 1j, "takes a number"),
        (".u32", np.zeros(3, np.int32), "takes a number"),
        (".f32", np.zeros(3, np.float32), "takes a number"),
        (".u64", [1, 2], "takes a Buffer, a NumPy array or an integer"),
        (".u32", None, "takes an integer"),
    ],
)
def test_values_that_do_not_fit(
    memory: DeviceMemory, declared: str, value: Any, reason: str
) -> None:
    with pytest.raises(LaunchError, match=rf"argument 0 of k is .*{reason}"):
        one(memory, declared, value)


@given(value=st.integers(-(2**31), 2**31 - 1))
def test_every_int_survives_a_signed_parameter(memory: DeviceMemory, value: int) -> None:
    assert struct.unpack("<i", one(memory, ".s32", value))[0] == value


def test_parameters_stand_at_their_alignment(memory: DeviceMemory) -> None:
    buffer = Buffer(memory, (4,), np.dtype(np.float32), "x")
    data = packed(memory, ".param .u8 a, .param .u64 b, .param .u16 c", 1, buffer, 2).data
    assert data == struct.pack("<B7xQH", 1, buffer.address, 2)


def test_structures_go_by_value(memory: DeviceMemory) -> None:
    declared = ".param .align 8 .b8 p[16]"
    pair = np.array([(3, 1.5)], np.dtype([("n", "<i8"), ("x", "<f8")]))[0]
    expected = struct.pack("<qd", 3, 1.5)
    assert packed(memory, declared, pair).data == expected
    assert packed(memory, declared, expected).data == expected
    assert packed(memory, declared, np.array([1, 2], np.int64)).data == struct.pack("<2q", 1, 2)
    with pytest.raises(LaunchError, match="structure of 16 bytes, but this argument has 3"):
        packed(memory, declared, b"abc")
    with pytest.raises(LaunchError, match="structure of 16 bytes, passed by value"):
        packed(memory, declared, 5)


def test_buffers_pass_their_address_and_only_to_pointers(memory: DeviceMemory) -> None:
    buffer = Buffer(memory, (4,), np.dtype(np.float32), "x")
    assert one(memory, ".u64", buffer) == buffer.address.to_bytes(8, "little")
    with pytest.raises(LaunchError, match="not a pointer"):
        one(memory, ".u32", buffer)
    buffer.free()
    with pytest.raises(WarploomError, match="x has been freed"):
        one(memory, ".u64", buffer)


def test_a_buffer_of_another_device_is_refused(memory: DeviceMemory) -> None:
    other = DeviceMemory(256 << 20)
    foreign = Buffer(other, (4,), np.dtype(np.float32), "x")
    with pytest.raises(LaunchError, match="another device"):
        one(memory, ".u64", foreign)


def test_host_arrays_are_copied_in_back_and_gone(memory: DeviceMemory) -> None:
    host = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]  # not contiguous
    arguments = packed(memory, ".param .u64 p", host)
    address = int.from_bytes(arguments.data, "little")
    assert memory.view(address, 24).view(np.int32).tolist() == [0, 2, 4, 6, 8, 10]
    memory.view(address, 24).view(np.int32)[:] = 7
    arguments.copy_back()
    arguments.release()
    assert host.tolist() == [[7, 7]] * 3
    assert memory.find(address) is None


def test_a_read_only_array_stays_as_it_is(memory: DeviceMemory) -> None:
    host = np.arange(4, dtype=np.int32)
    host.flags.writeable = False
    arguments = packed(memory, ".param .u64 p", host)
    memory.view(int.from_bytes(arguments.data, "little"), 16)[:] = 0
    arguments.copy_back()
    assert host.tolist() == [0, 1, 2, 3]


def test_a_refused_launch_leaves_no_copies(memory: DeviceMemory) -> None:
    before = memory.table().count
    with pytest.raises(LaunchError):
        packed(memory, ".param .u64 a, .param .u32 b", np.zeros(8), 1.5)
    assert memory.table().count == before


def test_the_number_of_arguments_is_checked(memory: DeviceMemory) -> None:
    with pytest.raises(LaunchError, match=r"k takes 2 arguments \(\.u64 a, \.u32 b\), but got 1"):
        packed(memory, ".param .u64 a, .param .u32 b", 1)
