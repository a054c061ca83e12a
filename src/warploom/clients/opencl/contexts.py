"""Contexts: what buffers, programs and queues are made in, each over a context of the driver."""

from __future__ import annotations

import ctypes

from warploom.clients.driver.state import Context, state
from warploom.clients.opencl.devices import DEFAULT_TYPE, GPU_TYPE, ClDevice, device, device_ids
from warploom.clients.opencl.errors import ClError, Status, demand
from warploom.clients.opencl.info import (
    Answers,
    answer,
    properties_at,
    property_words,
    sizes_at,
    uint,
    word,
)
from warploom.clients.opencl.objects import ClObject, get, get_all, register_counting
from warploom.clients.opencl.platforms import Platform
from warploom.clients.opencl.table import entry

PLATFORM, USER_SYNC = 0x1084, 0x1085

_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_NOTIFY = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class ClContext(ClObject):
    """A context: the driver's, the function that hears of errors, and whether a kernel has ended
    it by what it did wrong."""

    what = "context"
    invalid = Status.INVALID_CONTEXT

    def __init__(self, properties: dict[int, int], notify: int, data: int) -> None:
        super().__init__()
        self.properties, self._notify, self._data = properties, notify, data
        self.driver: Context = state.new_context(0)
        self.failure = ""

    def check(self) -> None:
        """Raises OUT_OF_RESOURCES after a kernel has ended the context."""
        if self.failure:
            raise ClError(Status.OUT_OF_RESOURCES, f"an earlier kernel failed: {self.failure}")

    def fail(self, why: str) -> None:
        """Ends the context, as a GPU's is ended by a kernel that faults."""
        self.failure = why.splitlines()[0]
        if self._notify:
            _NOTIFY(self._notify)(why.encode(), None, 0, self._data or None)

    def end(self) -> None:
        state.close(self.driver)


register_counting(entry, "Context", ClContext)


@entry("clCreateContext")
def create(properties: int, count: int, devices: int, notify: int, data: int) -> int:
    given = _properties(properties, notify, data)
    demand(devices and count, Status.INVALID_VALUE, "there are no devices for the context")
    get_all(sizes_at(devices, count), ClDevice)
    return ClContext(given, notify, data).handle


@entry("clCreateContextFromType")
def create_from_type(properties: int, type: int, notify: int, data: int) -> int:
    given = _properties(properties, notify, data)
    number = ctypes.c_uint32()
    device_ids(0, type, 0, 0, ctypes.addressof(number))
    assert type & (GPU_TYPE | DEFAULT_TYPE)
    return ClContext(given, notify, data).handle


def _properties(address: int, notify: int, data: int) -> dict[int, int]:
    demand(notify or not data, Status.INVALID_VALUE, "user data requires a callback function")
    given = properties_at(address)
    for name, value in given.items():
        known = name in (PLATFORM, USER_SYNC)
        demand(known, Status.INVALID_PROPERTY, f"{name:#x} is not a context property")
        if name == PLATFORM:
            get(value, Platform)
        else:
            yes_or_no = value in (0, 1)
            demand(
                yes_or_no,
                Status.INVALID_PROPERTY,
                "CL_CONTEXT_INTEROP_USER_SYNC must be CL_TRUE or CL_FALSE",
            )
    return given


ANSWERS: Answers[ClContext] = {
    0x1080: lambda c: uint(c.references),
    0x1081: lambda c: word(device().handle),
    0x1082: lambda c: property_words(c.properties) if c.properties else b"",
    0x1083: lambda c: uint(1),
}


@entry("clGetContextInfo")
def context_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    answer(ANSWERS, get(handle, ClContext), question, capacity, target, size)


@entry("clSetContextDestructorCallback")
def set_destructor(handle: int, function: int, data: int) -> None:
    add_destructor(get(handle, ClContext), function, data)


def add_destructor(made: ClObject, function: int, data: int) -> None:
    """Has a function of the program called when an object ends, the last one first."""
    demand(function, Status.INVALID_VALUE, "the callback function is null")
    handle = made.handle
    made.destructors.append(lambda: _DESTRUCTOR(function)(handle, data or None))


def device_list(count: int, address: int) -> None:
    """Checks a list of devices that may be absent."""
    demand(
        bool(count) == bool(address),
        Status.INVALID_VALUE,
        "the list of devices and its length must be given together",
    )
    if count:
        get_all(sizes_at(address, count), ClDevice)
