"""Events: waiting, asking, callbacks, user events, and times."""

from __future__ import annotations

import time
from contextlib import suppress

from warploom.clients.driver.words import put
from warploom.clients.opencl.commands import (
    COMPLETE,
    QUEUED,
    RUNNING,
    SUBMITTED,
    USER,
    Asked,
    Event,
    end,
    enqueue,
    note_finish,
    note_wait,
    pending_in,
    run,
    wait,
)
from warploom.clients.opencl.contexts import ClContext
from warploom.clients.opencl.devices import ClDevice
from warploom.clients.opencl.errors import ClError, Status, demand
from warploom.clients.opencl.info import Answers, answer, sizes_at, uint, word
from warploom.clients.opencl.objects import get, get_all, lock, register_counting
from warploom.clients.opencl.queues import PROFILING, Queue
from warploom.clients.opencl.table import entry
from warploom.clients.session import session

MARKER, BARRIER = 0x11FE, 0x1205

register_counting(entry, "Event", Event)


@entry("clWaitForEvents")
def wait_for(count: int, events: int) -> None:
    demand(count and events, Status.INVALID_VALUE, "there are no events to wait for")
    given = get_all(sizes_at(events, count), Event)
    same = all(event.context is given[0].context for event in given)
    demand(same, Status.INVALID_CONTEXT, "the events belong to different contexts")
    wait(given, Status.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)


def _status(event: Event) -> bytes:
    note_wait([event] if event.is_over else [])
    return uint(event.status)


ANSWERS: Answers[Event] = {
    0x11D0: lambda e: word(e.queue.handle if e.queue else 0),
    0x11D1: lambda e: uint(e.kind),
    0x11D2: lambda e: uint(e.references),
    0x11D3: _status,
    0x11D4: lambda e: word(e.context.handle),
}


@entry("clGetEventInfo")
def event_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    answer(ANSWERS, get(handle, Event), question, capacity, target, size)


TIMES: Answers[Event] = {
    0x1280: lambda e: word(e.times[QUEUED]),
    0x1281: lambda e: word(e.times[SUBMITTED]),
    0x1282: lambda e: word(e.times[RUNNING]),
    0x1283: lambda e: word(e.times[COMPLETE]),
    0x1284: lambda e: word(e.times[COMPLETE]),
}


@entry("clGetEventProfilingInfo")
def profiling_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    """Answers with the host's own time, in nanoseconds, at which a command entered a state."""
    event = get(handle, Event)
    missing = Status.PROFILING_INFO_NOT_AVAILABLE
    demand(event.queue is not None, missing, "profiling times are not available for user events")
    assert event.queue is not None
    demand(
        event.queue.flags & PROFILING,
        missing,
        "the queue was created without CL_QUEUE_PROFILING_ENABLE",
    )
    demand(event.status == COMPLETE, missing, "the command has not ended, or it failed")
    session().has_event_times = True
    answer(TIMES, event, question, capacity, target, size)


@entry("clSetEventCallback")
def set_callback(handle: int, status: int, function: int, data: int) -> None:
    event = get(handle, Event)
    known = function and status in (COMPLETE, RUNNING, SUBMITTED)
    demand(
        known,
        Status.INVALID_VALUE,
        "the callback function is null, or the execution status is invalid",
    )
    event.when(status, function, data)


# ---- user events ---------------------------------------------------------------------------------


@entry("clCreateUserEvent")
def create_user_event(context: int) -> int:
    return Event(get(context, ClContext), None, USER).handle


@entry("clSetUserEventStatus")
def set_user_event(handle: int, status: int) -> None:
    event = get(handle, Event)
    demand(
        event.kind == USER,
        Status.INVALID_EVENT,
        "only the status of a user event can be set, and this event belongs to a command",
    )
    valid = status <= COMPLETE
    demand(
        valid,
        Status.INVALID_VALUE,
        "the status of a user event can be set only to CL_COMPLETE or a negative error code",
    )
    with lock:
        demand(
            not event.is_over,
            Status.INVALID_OPERATION,
            "the status of this event has already been set",
        )
        ready = end(event, status)
    run(ready)


# ---- the whole queue -----------------------------------------------------------------------------


@entry("clFlush")
def flush(queue: int) -> None:
    """Does nothing more: commands begin when they may."""
    get(queue, Queue)


@entry("clFinish")
def finish(handle: int) -> None:
    queue = get(handle, Queue)
    with suppress(ClError):  # the event of a command says that it did not end well
        wait(pending_in(queue))
    note_finish(queue)
    queue.context.check()


def _nothing() -> None:
    """Does nothing: a marker or a barrier."""


@entry("clEnqueueMarkerWithWaitList")
def marker(queue: int, count: int, events: int, event: int) -> None:
    asked = Asked(count, events, event)
    enqueue(get(queue, Queue), MARKER, _nothing, asked, gathers=True)


@entry("clEnqueueBarrierWithWaitList")
def barrier(queue: int, count: int, events: int, event: int) -> None:
    asked = Asked(count, events, event)
    enqueue(get(queue, Queue), BARRIER, _nothing, asked, gathers=True, barrier=True)


@entry("clEnqueueMarker")
def old_marker(queue: int, event: int) -> None:
    at = get(queue, Queue)
    demand(event, Status.INVALID_VALUE, "the pointer to the marker's event is null")
    enqueue(at, MARKER, _nothing, Asked(0, 0, event), gathers=True)


@entry("clEnqueueBarrier")
def old_barrier(queue: int) -> None:
    enqueue(get(queue, Queue), BARRIER, _nothing, Asked(0, 0, 0), gathers=True, barrier=True)


@entry("clEnqueueWaitForEvents")
def old_wait(queue: int, count: int, events: int) -> None:
    at = get(queue, Queue)
    demand(count and events, Status.INVALID_VALUE, "there are no events to wait for")
    for handle in sizes_at(events, count):
        get(handle, Event)
    enqueue(at, BARRIER, _nothing, Asked(count, events, 0), barrier=True)


# ---- the clock -----------------------------------------------------------------------------------


@entry("clGetHostTimer")
def host_timer(handle: int, host: int) -> None:
    get(handle, ClDevice)
    demand(host, Status.INVALID_VALUE, "the pointer to the timestamp is null")
    put(host, time.perf_counter_ns())


@entry("clGetDeviceAndHostTimer")
def both_timers(handle: int, device: int, host: int) -> None:
    """Writes one time for both: the device's clock is the host's."""
    get(handle, ClDevice)
    demand(device and host, Status.INVALID_VALUE, "a pointer to a timestamp is null")
    now = time.perf_counter_ns()
    put(device, now)
    put(host, now)
