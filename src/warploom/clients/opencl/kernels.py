"""Kernels and their arguments."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from warploom.clients.driver.programs import Function, function_at
from warploom.clients.driver.state import state
from warploom.clients.driver.words import put
from warploom.clients.opencl.buffers import Buffer
from warploom.clients.opencl.errors import ClError, Status, demand
from warploom.clients.opencl.images import Image
from warploom.clients.opencl.info import put_uint, sizes_at
from warploom.clients.opencl.memory import MemObject
from warploom.clients.opencl.objects import ClObject, get, handles, lock, register_counting
from warploom.clients.opencl.programs import Program
from warploom.clients.opencl.samplers import Sampler
from warploom.clients.opencl.table import entry
from warploom.frontends.opencl_metadata import DeclaredKernel, DeclaredParameter
from warploom.host.local_memory import LocalMemory
from warploom.isa.instruction import Space
from warploom.ptx.module import Variable

LOCAL_SPACE = 3
_IMAGE_TYPE = re.compile(r"image[123]d_(?:\w+_)?t")


class Takes(Enum):
    """The kinds of arguments that parameters take."""

    MEMORY = auto()
    LOCAL = auto()
    IMAGE = auto()
    SAMPLER = auto()
    VALUE = auto()


@dataclass(frozen=True)
class Parameter:
    """A parameter: what it takes, and its place in the block of parameters."""

    takes: Takes
    offset: int
    size: int
    access: str = "none"


@dataclass(frozen=True)
class Argument:
    """An argument: its bytes, or the bytes of local memory that it asks for; and the object that it
    stands for."""

    data: bytes
    local: int = 0
    object: ClObject | None = None


class ClKernel(ClObject):
    """A kernel with its arguments, each None until it is set."""

    what = "kernel"
    invalid = Status.INVALID_KERNEL

    def __init__(self, program: Program, name: str) -> None:
        super().__init__()
        self.program, self.name = program, name
        self.function: Function = function_at(program.executable.function(name))
        self.declared: DeclaredKernel = program.kernels.get(name, DeclaredKernel())
        self.parameters = _parameters(self.function, self.declared)
        self.arguments: list[Argument | None] = [None] * len(self.parameters)
        program.hold()
        with lock:
            program.attached += 1

    @property
    def local_bytes(self) -> int:
        """Returns the local memory of a work-group: the program's own, and that of arguments."""
        given = sum(LocalMemory(a.local).padded_bytes for a in self.arguments if a and a.local)
        return self.function.kernel.program.shared_bytes + given

    def packed(self) -> tuple[bytes, int, list[ClObject]]:
        """Returns the block of parameters, the bytes of local memory that arguments take, and the
        objects among these. INVALID_KERNEL_ARGS where one is not set, INVALID_MEM_OBJECT where one
        was released."""
        program = self.function.kernel.program
        data = bytearray(program.parameter_bytes)
        start, objects = program.dynamic_shared_offset, list[ClObject]()
        local = start
        for n, (parameter, given) in enumerate(zip(self.parameters, self.arguments, strict=True)):
            if given is None:
                raise ClError(Status.INVALID_KERNEL_ARGS, f"{self._called(n)} is not set")
            value = given.data
            if given.local:
                value = struct.pack("<Q", local)[: parameter.size]
                local += LocalMemory(given.local).padded_bytes
            if given.object is not None:
                gone = not handles.has(given.object.handle, type(given.object))
                why = f"the {given.object.what} of {self._called(n)} was released"
                demand(not gone, Status.INVALID_MEM_OBJECT, why)
                objects.append(given.object)
            data[parameter.offset : parameter.offset + parameter.size] = value
        return bytes(data), local - start, objects

    def name_memory(self) -> None:
        """Names the memory of arguments by the parameters that it is given for, for messages."""
        for n, given in enumerate(self.arguments):
            name = self._parameter_name(n)
            if name and given is not None and isinstance(given.object, MemObject):
                called = f"{name} (argument {n} of {self.name})"
                if given.object.called != called:
                    given.object.called = called
                    state.device.memory.rename(given.object.address, called)

    def _parameter_name(self, number: int) -> str:
        declared = self.declared.parameters
        return declared[number].name if number < len(declared) else ""

    def _called(self, number: int) -> str:
        name = self._parameter_name(number)
        return f"argument {number}{f' ({name})' if name else ''} of {self.name}"

    def end(self) -> None:
        with lock:
            self.program.attached -= 1
        self.program.drop()


register_counting(entry, "Kernel", ClKernel)


def _parameters(function: Function, declared: DeclaredKernel) -> tuple[Parameter, ...]:
    in_ptx = function.kernel.function.parameters
    known: Sequence[DeclaredParameter | None] = declared.parameters
    if len(known) != len(in_ptx):
        known = [None] * len(in_ptx)
    return tuple(
        Parameter(_takes(one, ptx), *place, one.access if one else "none")
        for one, ptx, place in zip(known, in_ptx, function.places, strict=True)
    )


def _takes(declared: DeclaredParameter | None, in_ptx: Variable) -> Takes:
    """Returns what a parameter takes: as declared, else as PTX has it."""
    if in_ptx.pointer_space is Space.SHARED:
        return Takes.LOCAL
    if declared is None:
        return Takes.MEMORY if in_ptx.pointer_space is not None else Takes.VALUE
    if _IMAGE_TYPE.fullmatch(declared.type):
        return Takes.IMAGE
    if declared.type == "sampler_t":
        return Takes.SAMPLER
    return Takes.MEMORY if declared.space else Takes.VALUE


@entry("clCreateKernel")
def create(program: int, name: int) -> int:
    at = get(program, Program)
    loaded = at.executable
    demand(name, Status.INVALID_VALUE, "the kernel name is null")
    called = ctypes.string_at(name).decode(errors="replace")
    names = loaded.module.kernels
    why = f"the program has no kernel {called!r}; its kernels: {', '.join(names) or 'none'}"
    demand(called in names, Status.INVALID_KERNEL_NAME, why)
    return ClKernel(at, called).handle


@entry("clCreateKernelsInProgram")
def create_all(program: int, capacity: int, target: int, number: int) -> None:
    at = get(program, Program)
    names = at.executable.module.kernels
    enough = not target or capacity >= len(names)
    demand(
        enough,
        Status.INVALID_VALUE,
        f"the program has {len(names)} kernels, but the array has space for only {capacity}",
    )
    if target:
        for n, name in enumerate(names):
            put(target + 8 * n, ClKernel(at, name).handle)
    if number:
        put_uint(number, len(names))


@entry("clCloneKernel")
def clone(handle: int) -> int:
    source = get(handle, ClKernel)
    made = ClKernel(source.program, source.name)
    made.arguments = [*source.arguments]
    return made.handle


# ---- arguments -----------------------------------------------------------------------------------


@entry("clSetKernelArg")
def set_argument(handle: int, number: int, size: int, value: int) -> None:
    kernel = get(handle, ClKernel)
    parameter = parameter_of(kernel, number)
    kernel.arguments[number] = SETTERS[parameter.takes](parameter, size, value)


def parameter_of(kernel: ClKernel, number: int) -> Parameter:
    """Returns a parameter by its number; INVALID_ARG_INDEX where there is none."""
    most = len(kernel.parameters)
    why = f"argument index {number} is out of range: {kernel.name} has {most} arguments"
    demand(number < most, Status.INVALID_ARG_INDEX, why)
    return kernel.parameters[number]


def _memory(parameter: Parameter, size: int, value: int) -> Argument:
    demand(
        size == 8,
        Status.INVALID_ARG_SIZE,
        f"the size of a memory object argument must be 8 bytes, not {size}",
    )
    handle = ctypes.c_uint64.from_address(value).value if value else 0
    if not handle:
        return Argument(bytes(8))
    made = get(handle, MemObject)
    is_buffer = isinstance(made, Buffer)
    demand(
        is_buffer,
        Status.INVALID_MEM_OBJECT,
        "the argument is an image, but the parameter is a buffer",
    )
    return Argument(struct.pack("<Q", made.address), object=made)


def _local(parameter: Parameter, size: int, value: int) -> Argument:
    demand(
        not value,
        Status.INVALID_ARG_VALUE,
        "the value must be null for local memory, which needs only a size",
    )
    demand(size, Status.INVALID_ARG_SIZE, "the size of local memory must be at least 1 byte")
    return Argument(b"", size)


def _image(parameter: Parameter, size: int, value: int) -> Argument:
    demand(value, Status.INVALID_ARG_VALUE, "the pointer to the image is null")
    demand(
        size == 8,
        Status.INVALID_ARG_SIZE,
        f"the size of an image argument must be 8 bytes, not {size}",
    )
    made = get(ctypes.c_uint64.from_address(value).value, Image, Status.INVALID_MEM_OBJECT)
    forbidden = {"read_only": 2, "write_only": 4}.get(parameter.access, 0)
    allowed = not made.flags & forbidden
    why = (
        f"the kernel uses the image as {parameter.access}, but the image's flags forbid this access"
    )
    demand(allowed, Status.INVALID_ARG_VALUE, why)
    handle = made.surface if parameter.access == "write_only" else made.texture
    return Argument(struct.pack("<Q", handle), object=made)


def _sampler(parameter: Parameter, size: int, value: int) -> Argument:
    demand(value, Status.INVALID_ARG_VALUE, "the pointer to the sampler is null")
    demand(
        size == 8,
        Status.INVALID_ARG_SIZE,
        f"the size of a sampler argument must be 8 bytes, not {size}",
    )
    made = get(ctypes.c_uint64.from_address(value).value, Sampler)
    return Argument(struct.pack("<Q", made.word), object=made)


def _value(parameter: Parameter, size: int, value: int) -> Argument:
    demand(value, Status.INVALID_ARG_VALUE, "the pointer to the value is null")
    why = f"the parameter has {parameter.size} bytes, but the argument has {size}"
    demand(size == parameter.size, Status.INVALID_ARG_SIZE, why)
    return Argument(ctypes.string_at(value, size))


SETTERS = {
    Takes.MEMORY: _memory,
    Takes.LOCAL: _local,
    Takes.IMAGE: _image,
    Takes.SAMPLER: _sampler,
    Takes.VALUE: _value,
}


@entry("clSetKernelArgSVMPointer")
def set_pointer(handle: int, number: int, pointer: int) -> None:
    kernel = get(handle, ClKernel)
    takes = parameter_of(kernel, number).takes
    demand(
        takes is Takes.MEMORY,
        Status.INVALID_ARG_VALUE,
        "the parameter is not a __global or __constant pointer",
    )
    kernel.arguments[number] = Argument(struct.pack("<Q", pointer))


@entry("clSetKernelExecInfo")
def set_exec_info(handle: int, question: int, size: int, value: int) -> None:
    """Checks what a kernel may access: it accesses all memory of the device anyway."""
    get(handle, ClKernel)
    known = question in (0x11B6, 0x11B7) and value and size
    demand(
        known,
        Status.INVALID_VALUE,
        f"{question:#x} is not a valid parameter name, or its value is null or empty",
    )
    if question == 0x11B7:
        system = size == 4 and ctypes.c_uint32.from_address(value).value
        demand(size == 4, Status.INVALID_VALUE, "the size must be 4, the size of a cl_bool")
        why = "the device does not support fine-grained system SVM"
        demand(not system, Status.INVALID_OPERATION, why)
        return
    demand(
        size % 8 == 0,
        Status.INVALID_VALUE,
        "the size must be a multiple of 8, the size of a pointer",
    )
    for pointer in sizes_at(value, size // 8):
        found = state.device.memory.find(pointer)
        demand(
            found is not None, Status.INVALID_VALUE, f"{pointer:#x} is not in shared virtual memory"
        )
