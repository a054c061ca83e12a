"""Contexts: the primary one, others, and which is current."""

from __future__ import annotations

import ctypes

from warploom.clients.driver import ordering
from warploom.clients.driver.overlap import works
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import Context, check_device, state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, put_int, unsigned
from warploom.machine.memory.heap import DEFAULT_LIMIT

STACK_LIMIT, PRINTF_LIMIT, HEAP_LIMIT = 0, 1, 2

LIMITS = {0: 1024, 1: 1 << 20, 2: DEFAULT_LIMIT, 3: 2, 4: 2048, 5: 64, 6: 0}
"""What limits are at first (CUDA C++ Programming Guide, "Formatted Output" and "Heap Memory
Allocation"; those of dynamic parallelism and of L2 change nothing here)."""


# ---- the primary context -------------------------------------------------------------------------


@entry("cuDevicePrimaryCtxRetain")
def primary_retain(context: int, device: int) -> None:
    check_device(device)
    if state.primary is None:
        state.primary = state.new_context(state.primary_flags, primary=True)
    state.primary_uses += 1
    put(context, state.primary.handle)


@entry("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2")
def primary_release(device: int) -> None:
    check_device(device)
    if state.primary_uses == 0:
        raise DriverError(Result.INVALID_CONTEXT)
    state.primary_uses -= 1
    if state.primary_uses == 0:
        _drop_primary()


@entry("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2")
def primary_reset(device: int) -> None:
    """Ends the primary context, which also makes a device usable after a fault."""
    check_device(device)
    _drop_primary()
    state.primary_uses = 0


def _drop_primary() -> None:
    if state.primary is not None:
        works.host_waits_for(works.unfinished_before(None))
        state.close(state.primary)
        state.primary = None


@entry("cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxSetFlags_v2")
def primary_set_flags(device: int, flags: int) -> None:
    check_device(device)
    state.primary_flags = flags
    if state.primary is not None:
        state.primary.flags = flags


@entry("cuDevicePrimaryCtxGetState")
def primary_state(device: int, flags: int, active: int) -> None:
    check_device(device)
    put(flags, state.primary_flags, ctypes.c_uint)
    put_int(active, int(state.primary is not None))


# ---- others --------------------------------------------------------------------------------------


@entry("cuCtxCreate", "cuCtxCreate_v2")
def create(context: int, flags: int, device: int) -> None:
    check_device(device)
    made = state.new_context(flags)
    put(context, made.handle)
    state.stack.append(made)


@entry("cuCtxCreate_v3")
def create_with_affinity(
    context: int, _affinities: int, count: int, flags: int, device: int
) -> None:
    if count:
        raise DriverError(Result.NOT_SUPPORTED)
    create(context, flags, device)


@entry("cuCtxCreate_v4")
def create_with_parameters(context: int, _parameters: int, flags: int, device: int) -> None:
    """Creates a context; parameters for shares of a device among processes change no result."""
    create(context, flags, device)


@entry("cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxDetach")
def destroy(handle: int) -> None:
    """Destroys a context, and pops it where it is current in the calling thread."""
    context = state.context(handle)
    if context.primary:
        raise DriverError(Result.INVALID_CONTEXT)
    works.host_waits_for(works.unfinished_before(None))
    state.close(context)
    if state.stack and state.stack[-1] is context:
        state.stack.pop()


@entry("cuCtxAttach")
def attach(context: int, _flags: int) -> None:
    put(context, state.current().handle)


# ---- which is current ----------------------------------------------------------------------------


@entry("cuCtxPushCurrent", "cuCtxPushCurrent_v2")
def push(handle: int) -> None:
    state.stack.append(state.context(handle))


@entry("cuCtxPopCurrent", "cuCtxPopCurrent_v2")
def pop(handle: int) -> None:
    state.check()
    if not state.stack:
        raise DriverError(Result.INVALID_CONTEXT)
    offer(handle, state.stack.pop().handle)


@entry("cuCtxSetCurrent")
def set_current(handle: int) -> None:
    """Replaces the context on top of the stack; a null one leaves it empty."""
    state.check()
    context = state.context(handle) if handle else None
    if state.stack:
        state.stack.pop()
    if context is not None:
        state.stack.append(context)


@entry("cuCtxGetCurrent")
def get_current(handle: int) -> None:
    state.check()
    put(handle, state.stack[-1].handle if state.stack else 0)


@entry("cuCtxGetDevice")
def get_device(device: int) -> None:
    _top()
    put_int(device, 0)


@entry("cuCtxGetDevice_v2")
def get_device_of(device: int, handle: int) -> None:
    _named(handle)
    put_int(device, 0)


def _top() -> Context:
    """Returns the current context, even if it cannot be used any more."""
    state.check()
    if not state.stack:
        raise DriverError(Result.INVALID_CONTEXT)
    return state.stack[-1]


def _named(handle: int) -> Context:
    """Returns the context of a handle; the current one for a null one."""
    return state.context(handle) if handle else _top()


# ---- what a context says of itself ---------------------------------------------------------------


@entry("cuCtxSynchronize")
def synchronize() -> None:
    """Waits for all work, and reports errors of it."""
    state.current()
    works.host_waits_for(works.unfinished_before(None))
    ordering.host_waits_for(None)
    state.current()


@entry("cuCtxSynchronize_v2")
def synchronize_of(handle: int) -> None:
    context = _named(handle)
    works.host_waits_for(works.unfinished_before(None))
    if context.error is not None:
        raise DriverError(context.error)
    ordering.host_waits_for(None)


@entry("cuCtxGetFlags")
def get_flags(flags: int) -> None:
    put(flags, _top().flags, ctypes.c_uint)


@entry("cuCtxSetFlags")
def set_flags(flags: int) -> None:
    _top().flags = flags


@entry("cuCtxGetId")
def get_id(handle: int, number: int) -> None:
    put(number, _named(handle).number)


@entry("cuCtxGetApiVersion")
def api_version(handle: int, version: int) -> None:
    _named(handle)
    put(version, 3020, ctypes.c_uint)


@entry("cuCtxGetStreamPriorityRange")
def priority_range(least: int, greatest: int) -> None:
    state.current()
    offer(least, 0, ctypes.c_int)
    offer(greatest, -5, ctypes.c_int)


@entry("cuCtxGetLimit")
def get_limit(value: int, limit: int) -> None:
    context = state.current()
    if limit not in LIMITS:
        raise DriverError(Result.INVALID_VALUE)
    at_first = state.device.memory.heap.limit if limit == HEAP_LIMIT else LIMITS[limit]
    put(value, context.limits.get(limit, at_first))


@entry("cuCtxSetLimit")
def set_limit(limit: int, value: int) -> None:
    context = state.current()
    if limit not in LIMITS:
        raise DriverError(Result.INVALID_VALUE)
    context.limits[limit] = unsigned(value)
    if limit == HEAP_LIMIT:
        state.device.memory.heap.limit = unsigned(value)


@entry("cuCtxGetCacheConfig", "cuCtxGetSharedMemConfig")
def get_config(config: int) -> None:
    state.current()
    put_int(config, 0)


@entry("cuCtxSetCacheConfig", "cuCtxSetSharedMemConfig")
def set_config(_config: int) -> None:
    """Preferences: shared memory is as large as a kernel needs."""
    state.current()


@entry("cuCtxResetPersistingL2Cache")
def reset_l2() -> None:
    state.current()


@entry("cuCtxEnablePeerAccess")
def enable_peer(handle: int, _flags: int) -> int:
    state.context(handle)
    return Result.PEER_ACCESS_UNSUPPORTED


@entry("cuCtxDisablePeerAccess")
def disable_peer(handle: int) -> int:
    state.context(handle)
    return Result.PEER_ACCESS_UNSUPPORTED
