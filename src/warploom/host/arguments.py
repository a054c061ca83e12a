"""A launch's arguments: from Python values to the bytes of a kernel's parameters.

Each value is converted by the parameter's declared PTX type, and refused where it does not fit;
where arguments are checked strictly, also by the type that the C++ source declares.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from warploom.core.byte_order import in_device_order
from warploom.core.errors import LaunchError
from warploom.core.lazy import cached_property
from warploom.core.types import Kind
from warploom.host.buffer import Array, Buffer, upload
from warploom.host.local_memory import LocalMemory
from warploom.host.programs.cpp_types import Class
from warploom.host.programs.names import source_name
from warploom.host.programs.signatures import Parameter
from warploom.host.textures.tensor_map import TensorMap
from warploom.host.textures.textures import Handle
from warploom.isa.instruction import Space
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.program import Program
from warploom.ptx.module import Variable


@dataclass
class Arguments:
    """The bytes of a parameter block, and what the launch has to keep alive or copy back."""

    data: bytearray
    strict: bool = True
    """Whether values must fit the types that the source declares."""
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    handles: list[Handle] = field(default_factory=list[Handle])
    local_end: int = 0
    """Where local memory of arguments ends so far, in the shared memory of a block."""
    borrowed: list[tuple[Array, Buffer]] = field(default_factory=list[tuple[Array, Buffer]])
    """The host arrays among the arguments, with their copies on the device."""
    internal: list[Buffer] = field(default_factory=list[Buffer])
    """Buffers of the launch itself."""

    def lend(self, host: Array, what: str, memory: DeviceMemory) -> Buffer:
        """Copies a host array to the device now, and back after the launch. Kernels cannot write
        the copy of a read-only array, since its results would be lost."""
        buffer = upload(memory, host, what, constant=not host.flags.writeable)
        self.borrowed.append((host, buffer))
        return buffer

    def show(self, memory: DeviceMemory) -> Buffer:
        """Returns the parameter block in device memory, for kernels that point to their
        parameters."""
        block = np.frombuffer(bytes(self.data), np.uint8)
        return self.hold(block, "the parameters of the kernel", memory, constant=True)

    def hold(
        self, content: Array, what: str, memory: DeviceMemory, *, constant: bool = False
    ) -> Buffer:
        """Returns a buffer with this content that lives until the launch ends."""
        buffer = upload(memory, content, what, constant=constant)
        self.internal.append(buffer)
        return buffer

    def copied_bytes(self) -> tuple[int, int]:
        """Returns how many bytes of host arrays are copied to the device before the launch, and
        back after it."""
        sizes = [(host.flags.writeable, buffer.nbytes) for host, buffer in self.borrowed]
        return sum(size for _, size in sizes), sum(size for back, size in sizes if back)

    def copy_back(self) -> None:
        """Copies what the kernel wrote back to the host arrays; read-only arrays stay as they
        are."""
        for host, buffer in self.borrowed:
            if host.flags.writeable and buffer.nbytes:
                host[...] = buffer.view

    def release(self) -> None:
        """Frees the device copies of host arrays."""
        for _, buffer in self.borrowed:
            buffer.free()
        for buffer in self.internal:
            buffer.free()


class Packer:
    """Makes the parameter blocks of a kernel's launches."""

    def __init__(
        self,
        program: Program,
        parameters: Sequence[Variable],
        declared: Sequence[Parameter],
        memory: DeviceMemory,
    ) -> None:
        self.name = source_name(program.name)
        self._size = program.parameter_bytes
        self._local_start = program.dynamic_shared_offset
        self._packings = [
            _Packing(in_ptx, in_source, f"argument {index} of {self.name}", memory)
            for index, (in_ptx, in_source) in enumerate(zip(parameters, declared, strict=True))
        ]
        starts = [program.slots[made.name].offset for made in parameters]
        self._ranges = [slice(at, at + p.size) for at, p in zip(starts, parameters, strict=True)]

    def pack(self, values: Sequence[Any], *, strict: bool = True) -> Arguments:
        """Returns the parameter block of a launch with these values.

        Host arrays are copied to the device. Raises LaunchError where the number of values is
        wrong or one does not fit its parameter.
        """
        if len(values) != len(self._packings):
            wanted = ", ".join(packing.declared for packing in self._packings) or "none"
            raise LaunchError(
                f"{self.name} takes {len(self._packings)} arguments ({wanted}), but got "
                f"{len(values)}."
            )
        packed = Arguments(bytearray(self._size), strict, local_end=self._local_start)
        try:
            for packing, place, value in zip(self._packings, self._ranges, values, strict=True):
                packed.data[place] = packing.bytes_of(value, packed)
        except BaseException:
            packed.release()
            raise
        return packed


_FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}
_LAYOUTS = {16: "<e", 32: "<f", 64: "<d"}


@dataclass
class _Packing:
    """One parameter, as PTX and as the source declare it; `what` names it in errors."""

    parameter: Variable
    source: Parameter
    what: str
    memory: DeviceMemory
    _fitting: set[np.dtype[Any]] = field(default_factory=set["np.dtype[Any]"])
    """Element types that were checked."""

    def bytes_of(self, value: Any, packed: Arguments) -> bytes:
        """Returns the bytes that the parameter takes for this value; `packed` keeps what it
        lends."""
        if self.parameter.shape or self.parameter.vector > 1:
            return self._aggregate(value)
        if isinstance(value, Buffer):
            return self._pointer(value, packed)
        if isinstance(value, Handle):
            return self._handle(value, packed)
        if isinstance(value, LocalMemory):
            return self._local(value, packed)
        if self.parameter.pointer_space is Space.SHARED:
            raise self._refuse(value, "points to local memory: pass LocalMemory(bytes)")
        if isinstance(value, np.ndarray):
            return self._borrow(cast(Array, value), packed)
        if self.parameter.type.kind is Kind.FLOAT:
            return self._float(value)
        return self._integer(value, packed.strict)

    def _aggregate(self, value: Any) -> bytes:
        """Returns a structure by value: bytes, or a NumPy scalar or array of just its size."""
        size = self.parameter.size
        if isinstance(value, TensorMap):
            self.memory.check_owner(value.memory, self.what, "the tensor map")
            value = bytes(value)
        if not isinstance(value, (bytes, bytearray, memoryview, np.generic, np.ndarray)):
            raise self._refuse(
                value,
                f"is a structure of {size} bytes, passed by value: pass bytes or a NumPy "
                "structured scalar",
            )
        if isinstance(value, (np.generic, np.ndarray)):
            value = in_device_order(np.asarray(cast(Array, value)))
        data = bytes(value) if isinstance(value, (bytes, bytearray)) else value.tobytes()
        if len(data) != size:
            raise self._refuse(
                value, f"is a structure of {size} bytes, but this argument has {len(data)}"
            )
        return data

    def _pointer(self, buffer: Buffer, packed: Arguments) -> bytes:
        if not self._takes_pointers:
            raise self._refuse(buffer, "takes a number, not a pointer")
        if packed.strict and buffer.dtype not in self._fitting:
            self._check_elements("buffer", buffer.dtype)
        self.memory.check_owner(buffer.memory, self.what, buffer)
        packed.buffers.append(buffer)
        return buffer.address.to_bytes(8, "little")

    def _handle(self, value: Handle, packed: Arguments) -> bytes:
        """Returns a texture or a surface by its number."""
        if not self._takes_pointers:
            raise self._refuse(value, "is not a cudaTextureObject_t or cudaSurfaceObject_t")
        self.memory.check_owner(value.memory, self.what, value)
        packed.handles.append(value)
        return value.handle.to_bytes(8, "little")

    def _local(self, value: LocalMemory, packed: Arguments) -> bytes:
        """Returns the offset in shared memory of a local-memory argument, and advance past it."""
        if self.parameter.pointer_space is not Space.SHARED:
            raise self._refuse(value, "is not a pointer to local memory")
        start = packed.local_end
        packed.local_end += value.padded_bytes
        return start.to_bytes(self.parameter.size, "little")

    def _borrow(self, host: Array, packed: Arguments) -> bytes:
        """Returns a host array: copied to the device now, and back after the launch."""
        if not self._takes_pointers:
            raise self._refuse(host, "takes a number: pass one element, such as x[0]")
        if packed.strict and host.dtype not in self._fitting:
            self._check_elements("array", host.dtype)
        name = f"{self.source.name} ({self.what})" if self.source.name else self.what
        buffer = packed.lend(host, name, self.memory)
        return buffer.address.to_bytes(8, "little")

    def _check_elements(self, container: str, dtype: np.dtype[Any]) -> None:
        """Raises LaunchError where the source declares a pointer to another type, or a number."""
        type = self.source.type
        if type is not None and type.pointers and not type.accepts(dtype):
            wanted = "np.uint64 (addresses)" if type.pointers > 1 else type.element.numpy_name
            raw = f" (its bytes: .view({wanted}))" if type.element.bytes == 1 else ""
            raise LaunchError(
                f"{self.what}, `{self.declared}`: the {container} holds {dtype}. Convert it with"
                f" .astype({wanted}){raw}, or pass strict=False (--no-strict)."
            )
        if type is not None and not type.pointers and type.element.kind is Class.SIGNED:
            raise LaunchError(
                f"{self.what}, `{self.declared}`: the parameter takes a number, not the address of "
                f"a {container}. Check the order of the arguments, or pass strict=False "
                "(--no-strict)."
            )
        self._fitting.add(dtype)

    @cached_property
    def _takes_pointers(self) -> bool:
        return self.parameter.type.is_integer and self.parameter.type.bits == 64

    def _float(self, value: Any) -> bytes:
        if not isinstance(value, (int, float, np.integer, np.floating)):
            raise self._refuse(value, "takes a number")
        bits = self.parameter.type.bits
        try:
            return struct.pack(_LAYOUTS[bits], float(cast(float, value)))
        except OverflowError:
            hint = f"takes at most {np.finfo(_FLOATS[bits]).max:.6g}"
            raise self._refuse(value, hint) from None

    def _integer(self, value: Any, strict: bool) -> bytes:
        """Integers by value. A signed C++ parameter may be declared .u32, so both ranges of that
        width count as fitting where the source's type is unknown; .b32 also takes the bits of a
        float of its width."""
        type = self.parameter.type
        if isinstance(value, np.floating) and type.kind is Kind.BITS and value.nbytes == type.bytes:
            return value.tobytes()
        try:
            number = _index(value)
        except TypeError:
            wanted = "a Buffer, a NumPy array or " if self._takes_pointers else ""
            hint = f"takes {wanted}an integer, such as int(x)"
            raise self._refuse(value, hint) from None
        lowest, highest = self._declared_range if strict else self._range
        if not lowest <= number <= highest:
            raise self._refuse(value, f"takes integers from {lowest} to {highest}")
        return (number & ((1 << type.bits) - 1)).to_bytes(type.bits // 8, "little")

    @cached_property
    def _range(self) -> tuple[int, int]:
        """Returns the least and the largest integer that the PTX type takes."""
        type = self.parameter.type
        return -(1 << (type.bits - 1)), (1 << (type.bits - type.is_signed)) - 1

    @cached_property
    def _declared_range(self) -> tuple[int, int]:
        """Returns the least and the largest integer that the type of the source takes, that of PTX
        where it is unknown or a pointer."""
        type = self.source.type
        return self._range if type is None or type.pointers else type.element.range

    def _refuse(self, value: Any, reason: str) -> LaunchError:
        shown = repr(value)
        shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
        return LaunchError(
            f"{self.what} is {shown} ({type(value).__name__}), but `{self.declared}` {reason}."
        )

    @property
    def declared(self) -> str:
        """Returns the parameter as the source declares it, as PTX does where that is unknown."""
        if self.source.text:
            return self.source.text
        dims = "".join(f"[{n}]" for n in self.parameter.shape)
        return f"{self.parameter.type} {self.parameter.name}{dims}"


def _index(value: Any) -> int:
    """Returns the integer that a value is, NumPy's booleans included; TypeError where it is
    none."""
    return int(cast(bool, value)) if isinstance(value, np.bool_) else operator.index(value)
