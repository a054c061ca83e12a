"""Memory objects: what buffers and images have in common."""

from __future__ import annotations

import ctypes
from functools import partial

from warploom.clients.driver.copies import move
from warploom.clients.driver.memory import allocate_in
from warploom.clients.driver.state import state
from warploom.clients.opencl.contexts import ClContext, add_destructor
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import Answers, answer, uint, word, words
from warploom.clients.opencl.objects import ClObject, get, register_counting
from warploom.clients.opencl.table import entry
from warploom.clients.session import session

READ_WRITE, WRITE_ONLY, READ_ONLY = 1, 2, 4
USE_HOST, ALLOC_HOST, COPY_HOST = 8, 16, 32
HOST_WRITE_ONLY, HOST_READ_ONLY, HOST_NO_ACCESS = 128, 256, 512
KERNEL_ACCESS, HOST_ACCESS = 7, 0x380
READ_AND_WRITE = 1 << 12
FLAGS = KERNEL_ACCESS | USE_HOST | ALLOC_HOST | COPY_HOST | HOST_ACCESS

BUFFER, IMAGE_2D, IMAGE_3D, IMAGE_2D_ARRAY, IMAGE_1D, IMAGE_1D_ARRAY, IMAGE_1D_BUFFER = range(
    0x10F0, 0x10F7
)


class MemObject(ClObject):
    """Memory on the device from `address` on, its own or part of another object's (`parent`).
    `host` is the program's memory that it was made from, and stands for where it is mapped."""

    what = "memory object"
    invalid = Status.INVALID_MEM_OBJECT
    type = BUFFER
    called = ""
    """How messages name it."""
    source: MemObject | None = None
    """The buffer whose memory this is."""

    def __init__(
        self,
        context: ClContext,
        flags: int,
        size: int,
        host: int,
        properties: tuple[int, ...] | None = None,
        parent: MemObject | None = None,
        offset: int = 0,
        address: int = 0,
    ) -> None:
        self.context, self.flags, self.size, self.host = context, flags, size, host
        self.properties, self.parent, self.offset = properties, parent, offset
        self.source = parent or self.source
        self.maps: list[Mapping] = []
        if flags & USE_HOST and not address and shared_at(host):
            address = host
        self._owns = parent is None and not address
        if self._owns:
            kind = "buffer" if self.type == BUFFER else "image"
            # Writing to it is undefined, and does no harm on a GPU.
            constant = bool(flags & READ_ONLY) and "mem" in session().settings.tools
            address = allocate_in(context.driver, size, kind, flags, constant=constant)
        self.address = parent.address + offset if parent is not None else address
        super().__init__()
        (parent or context).hold()

    @property
    def uses_host(self) -> bool:
        """Returns whether the program's own memory shows the content where it is mapped."""
        return bool(self.flags & USE_HOST)

    @property
    def host_at(self) -> int:
        """Returns the address that the program gave."""
        return self.host if self.uses_host else 0

    def end(self) -> None:
        if self._owns and self.address in state.allocations:
            state.drop(self.address)
        (self.parent or self.context).drop()


class Mapping:
    """A region that is mapped: where the program sees it, and how it comes there and back."""

    def __init__(self, pointer: int, flags: int, back: partial[None] | None) -> None:
        self.pointer, self.flags, self.back = pointer, flags, back


register_counting(entry, "MemObject", MemObject)


def check_flags(flags: int, host: int, allowed: int = FLAGS) -> int:
    """Returns flags as they are meant, read and write by default. INVALID_VALUE where they
    contradict each other, INVALID_HOST_PTR where there is memory of the host without one that says
    what for, or the other way round."""
    demand(
        not flags & ~allowed, Status.INVALID_VALUE, f"invalid memory flags: {flags & ~allowed:#x}"
    )
    for group in (KERNEL_ACCESS, HOST_ACCESS):
        several = (flags & group).bit_count() > 1
        demand(not several, Status.INVALID_VALUE, "the access flags are mutually exclusive")
    both = flags & USE_HOST and flags & (ALLOC_HOST | COPY_HOST)
    demand(
        not both,
        Status.INVALID_VALUE,
        "CL_MEM_USE_HOST_PTR cannot be combined with CL_MEM_ALLOC_HOST_PTR or CL_MEM_COPY_HOST_PTR",
    )
    wanted = bool(flags & (USE_HOST | COPY_HOST))
    fits = bool(host) == wanted
    demand(
        fits,
        Status.INVALID_HOST_PTR,
        "host_ptr requires CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR, and these flags require "
        "host_ptr",
    )
    return flags if flags & KERNEL_ACCESS else flags | READ_WRITE


def fill_from_host(made: MemObject) -> None:
    """Copies what the program gave to a new object."""
    if made.flags & (USE_HOST | COPY_HOST) and made.address != made.host:
        move(made.address, made.host, made.size, waits=True)


def host_may(made: MemObject, *, write: bool) -> None:
    """INVALID_OPERATION where the flags keep the host from reading or writing an object."""
    forbidden = HOST_NO_ACCESS | (HOST_READ_ONLY if write else HOST_WRITE_ONLY)
    does = "write" if write else "read"
    why = f"the flags of the memory object do not allow the host to {does} it"
    demand(not made.flags & forbidden, Status.INVALID_OPERATION, why)


ANSWERS: Answers[MemObject] = {
    0x1100: lambda m: uint(m.type),
    0x1101: lambda m: word(m.flags),
    0x1102: lambda m: word(m.size),
    0x1103: lambda m: word(m.host_at),
    0x1104: lambda m: uint(len(m.maps)),
    0x1105: lambda m: uint(m.references),
    0x1106: lambda m: word(m.context.handle),
    0x1107: lambda m: word(m.source.handle if m.source else 0),
    0x1108: lambda m: word(m.offset),
    0x1109: lambda m: uint(shared_at(m.host_at)),
    0x110A: lambda m: b"" if m.properties is None else words(m.properties),
}


def shared_at(address: int) -> bool:
    """Returns whether shared virtual memory lies at an address: an object that is to use it is that
    memory."""
    found = state.device.memory.find(address) if address else None
    owned = state.allocations.get(found.address) if found else None
    return owned is not None and owned.kind == "shared"


@entry("clGetMemObjectInfo")
def mem_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    answer(ANSWERS, get(handle, MemObject), question, capacity, target, size)


@entry("clSetMemObjectDestructorCallback")
def set_destructor(handle: int, function: int, data: int) -> None:
    add_destructor(get(handle, MemObject), function, data)


def property_list(address: int) -> tuple[int, ...] | None:
    """Returns the properties of a memory object, of which there are none but the 0 that ends them;
    None for a null pointer."""
    if not address:
        return None
    first = ctypes.c_uint64.from_address(address).value
    demand(not first, Status.INVALID_PROPERTY, f"{first:#x} is not a memory object property")
    return (0,)
