"""Green contexts: parts of the device's SMs, and streams that are confined to them.

Groups of SMs are counted as CUDA documents it. Launches use all SMs whatever their stream, which
changes no result. Source: CUDA driver API, "Green Contexts".
"""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_uint, c_uint8, c_void_p
from dataclasses import dataclass

from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import Context, check_device, state
from warploom.clients.driver.streams import create_with_priority
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put, unsigned

SM = 1
"""CU_DEV_RESOURCE_TYPE_SM, the one type of resources that is there."""

DEFAULT_STREAM = 1
"""CU_GREEN_CTX_DEFAULT_STREAM, which programs must give."""

IGNORE_COSCHEDULING = 1
"""CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING: groups need not share a cluster of SMs."""


class DeviceResource(ctypes.Structure):
    """CUdevResource, as it is for SMs."""

    _fields_ = (
        ("type", c_int),
        ("padding", c_uint8 * 92),
        ("sms", c_uint),
        ("least", c_uint),
        ("alignment", c_uint),
        ("flags", c_uint),
        ("rest", c_uint8 * 24),
        ("next", c_void_p),
    )


@dataclass(frozen=True)
class GreenContext:
    """The SMs of a part of the device, and the context in which its streams are."""

    sms: int
    context: Context


@dataclass(frozen=True)
class Description:
    """The SMs of the resources that a green context is to have."""

    sms: int


def _granularity() -> tuple[int, int]:
    """Returns the least SMs of a group, and of what its SMs are a multiple."""
    major = state.device.spec.compute_capability[0]
    return (8, 8) if major >= 9 else (4, 2) if major == 8 else (2, 2)


def _fill(resource: int, sms: int) -> None:
    if not resource:
        raise DriverError(Result.INVALID_VALUE)
    fields = DeviceResource.from_address(resource)
    ctypes.memset(resource, 0, ctypes.sizeof(DeviceResource))
    fields.type, fields.sms = SM, sms
    fields.least, fields.alignment = _granularity()


def _check_type(type: int) -> None:
    if type != SM:
        raise DriverError(Result.NOT_SUPPORTED)


@entry("cuDeviceGetDevResource")
def of_device(device: int, resource: int, type: int) -> None:
    check_device(device)
    _check_type(type)
    _fill(resource, state.device.spec.sms)


@entry("cuGreenCtxGetDevResource")
def of_green_context(handle: int, resource: int, type: int) -> None:
    _check_type(type)
    _fill(resource, state.handles.get(handle, GreenContext).sms)


@entry("cuDevSmResourceSplitByCount")
def split(result: int, count: int, given: int, rest: int, flags: int, least: int) -> None:
    """Splits the SMs of a resource into groups of at least `least` SMs each.

    Makes as many groups as `count` asks for, or fewer where there are too few SMs, and writes their
    number to `count`. Where `result` is null it only writes how many groups are possible.
    """
    if not count or not given:
        raise DriverError(Result.INVALID_VALUE)
    resource = DeviceResource.from_address(given)
    _check_type(resource.type)
    smallest, multiple = (1, 1) if flags & IGNORE_COSCHEDULING else _granularity()
    wanted = max(smallest, -(-unsigned(least) // multiple) * multiple)
    groups = c_uint.from_address(count)
    most = resource.sms // wanted
    groups.value = min(groups.value, most) if result else most
    if not groups.value:
        raise DriverError(Result.INVALID_VALUE)
    left = resource.sms - groups.value * wanted
    for number in range(groups.value if result else 0):
        _fill(result + number * ctypes.sizeof(DeviceResource), wanted)
    if rest:
        _fill(rest, left)


@entry("cuDevResourceGenerateDesc")
def describe(description: int, resources: int, count: int) -> None:
    if not resources or count <= 0:
        raise DriverError(Result.INVALID_VALUE)
    entries = (DeviceResource * count).from_address(resources)
    for one in entries:
        _check_type(one.type)
    put(description, state.handles.add(Description(sum(one.sms for one in entries))))


@entry("cuGreenCtxCreate")
def create(handle: int, description: int, device: int, flags: int) -> None:
    check_device(device)
    found = state.handles.get(description, Description, Result.INVALID_VALUE)
    if flags != DEFAULT_STREAM:
        raise DriverError(Result.INVALID_VALUE)
    put(handle, state.handles.add(GreenContext(found.sms, state.current())))


@entry("cuGreenCtxDestroy")
def destroy(handle: int) -> None:
    state.handles.get(handle, GreenContext)
    state.handles.remove(handle)


@entry("cuCtxFromGreenCtx")
def context_of(context: int, handle: int) -> None:
    put(context, state.handles.get(handle, GreenContext).context.handle)


@entry("cuGreenCtxStreamCreate")
def stream(target: int, handle: int, flags: int, priority: int) -> None:
    """Streams of green contexts do not wait for the legacy one."""
    state.handles.get(handle, GreenContext)
    if flags != 1:
        raise DriverError(Result.INVALID_VALUE)
    create_with_priority(target, flags, priority)
