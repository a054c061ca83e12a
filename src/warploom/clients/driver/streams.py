"""Streams and events. Work is done when it is asked for, unless a kernel that waits for memory
holds it up (`overlap`)."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from warploom.clients.driver import ordering
from warploom.clients.driver.graphs.captures import Capture, capture_of, leave, refuse
from warploom.clients.driver.graphs.graphs import Kind, Node, Task
from warploom.clients.driver.overlap import works
from warploom.clients.driver.overlap.deferred import add_task
from warploom.clients.driver.overlap.work import DEFAULT_QUEUE, Queue, Work
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import Context, state
from warploom.clients.driver.structures import HostFunction
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import offer, put, put_int, unsigned
from warploom.clients.registry import nothing
from warploom.clients.session import session

DEFAULT, LEGACY, PER_THREAD = DEFAULT_STREAMS = 0, 1, 2
NON_BLOCKING, NO_TIMING = 1, 2
EXTERNAL = 1
EQUAL, AND, NOR = 1, 2, 3


@dataclass(eq=False)
class Stream:
    """A stream of a context."""

    context: Context
    flags: int
    priority: int
    number: int


@dataclass(eq=False)
class Event:
    """An event: when it was recorded last; or its position in a capture, and the nodes before
    it."""

    flags: int
    seconds: float | None = None
    captured: tuple[Capture, list[Node]] | None = None
    before: Mapping[Hashable, int] = field(default_factory=dict[Hashable, int])
    after: Work | None = None
    """Work that has to end before what the event stands for has; it records the event."""

    def is_done(self) -> bool:
        """Returns whether what the event stands for has ended."""
        return self.after is None or self.after.ended.is_set()

    def record(self) -> None:
        """Records the time of now in the current stream: all that came before has happened."""
        self.seconds, self.captured = time.perf_counter(), None
        self.before = ordering.recorded()


def stream_of(handle: int) -> Stream:
    """Returns the stream of a handle; default streams belong to the current context."""
    if handle in DEFAULT_STREAMS:
        return Stream(state.current(), 0, 0, handle)
    found = state.handles.get(handle, Stream)
    if found.context.error is not None:
        raise DriverError(found.context.error)
    return found


def queue_of(handle: int) -> Queue:
    """Returns what orders the work of a stream among that of others."""
    if handle in (DEFAULT, LEGACY):
        return DEFAULT_QUEUE
    if handle == PER_THREAD:
        state.has_streams = True
        return Queue((PER_THREAD, threading.get_ident()))
    return Queue(handle, not stream_of(handle).flags & NON_BLOCKING)


# ---- streams -------------------------------------------------------------------------------------


@entry("cuStreamCreate")
def create(stream: int, flags: int) -> None:
    create_with_priority(stream, flags, 0)


@entry("cuStreamCreateWithPriority")
def create_with_priority(stream: int, flags: int, priority: int) -> None:
    context = state.current()
    if flags not in (0, 1):
        raise DriverError(Result.INVALID_VALUE)
    made = Stream(context, flags, max(-5, min(0, priority)), next(state.numbers))
    handle = state.own(context, made)
    state.has_streams = True
    ordering.made(handle, blocking=not flags & NON_BLOCKING)
    put(stream, handle)


@entry("cuStreamDestroy", "cuStreamDestroy_v2")
def destroy(stream: int) -> None:
    found = state.handles.get(stream, Stream)
    leave(stream)
    found.context.handles.discard(stream)
    state.handles.remove(stream)


@entry("cuStreamSynchronize")
def synchronize(stream: int) -> None:
    stream_of(stream)
    refuse(stream)
    works.host_waits_for(works.unfinished_in(queue_of(stream)))
    ordering.host_waits_for(stream)
    stream_of(stream)


@entry("cuStreamQuery")
def query(stream: int) -> None:
    stream_of(stream)
    refuse(stream)
    works.let_some_run()
    if works.unfinished_in(queue_of(stream)):
        raise DriverError(Result.NOT_READY)
    ordering.host_waits_for(stream)


@entry("cuStreamGetPriority")
def priority(stream: int, value: int) -> None:
    put_int(value, stream_of(stream).priority)


@entry("cuStreamGetFlags")
def flags(stream: int, value: int) -> None:
    put(value, stream_of(stream).flags, ctypes.c_uint)


@entry("cuStreamGetId")
def identity(stream: int, value: int) -> None:
    put(value, stream_of(stream).number)


@entry("cuStreamGetCtx")
def context_of(stream: int, context: int) -> None:
    put(context, stream_of(stream).context.handle)


@entry("cuStreamGetCtx_v2")
def contexts_of(stream: int, context: int, green: int) -> None:
    context_of(stream, context)
    offer(green, 0)


@entry("cuStreamGetDevice")
def device_of(stream: int, device: int) -> None:
    stream_of(stream)
    put_int(device, 0)


@entry("cuStreamWaitEvent")
def wait_event(stream: int, event: int, flags: int) -> None:
    """Waits for an event; if that was captured, this stream takes part in the capture."""
    stream_of(stream)
    found = state.handles.get(event, Event)
    capture = capture_of(stream)
    if capture is not None and flags & EXTERNAL:
        capture.add(stream, Task(Kind.WAIT_EVENT, lambda: None, event))
    elif found.captured is not None:
        other, nodes = found.captured
        other.check()
        if capture not in (None, other):
            raise other.spoil(Result.STREAM_CAPTURE_MERGE)
        other.join(stream, nodes)
    elif capture is not None:
        raise capture.spoil(Result.STREAM_CAPTURE_ISOLATION)
    else:
        ordering.stream_waits(stream, found.before)
        if found.after is not None and not found.is_done():
            works.add(queue_of(stream), nothing, after=[found.after])


@entry("cuStreamAttachMemAsync", "cuStreamCopyAttributes", "cuStreamSetAttribute")
def accept(stream: int) -> None:
    """Hints for placing and scheduling, which change no result."""
    stream_of(stream)


# ---- functions of the host -----------------------------------------------------------------------

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@entry("cuStreamAddCallback")
def add_callback(stream: int, callback: int, data: int, flags: int) -> None:
    stream_of(stream)
    refuse(stream)
    if not callback or flags:
        raise DriverError(Result.INVALID_VALUE)
    called = partial(_CALLBACK(callback), stream or None, 0, data or None)
    do_in_order(stream, Task(Kind.HOST, called))


@entry("cuLaunchHostFunc", "cuLaunchHostFunc_v2")
def host_function(stream: int, function: int, data: int) -> None:
    stream_of(stream)
    given = HostFunction(function, data)
    task = host_task(given)
    capture = capture_of(stream)
    if capture is None:
        do_in_order(stream, task)
    else:
        capture.add(stream, task)


def do_in_order(stream: int, task: Task) -> Work | None:
    """Does a task of a stream now, or after unfinished work that it has to follow: then returns
    it."""
    queue = queue_of(stream)
    if works.defers(queue):
        return add_task(queue, stream, task)
    with ordering.within(stream):
        task.run()
    return None


def host_task(given: HostFunction) -> Task:
    """Returns a call of a function of the host."""
    if not given.function:
        raise DriverError(Result.INVALID_VALUE)
    return Task(Kind.HOST, partial(_HOST_FUNCTION(given.function), given.data), given)


# ---- values in memory ----------------------------------------------------------------------------


Word = TypeVar("Word", ctypes.c_uint32, ctypes.c_uint64)


def _value(kind: type[Word], stream: int, address: int) -> Word:
    stream_of(stream)
    refuse(stream)
    address, size = unsigned(address), ctypes.sizeof(kind)
    found = state.device.memory.find(address)
    if found is None or address % size or address + size > found.address + found.size:
        raise DriverError(Result.INVALID_VALUE)
    return kind.from_address(address)


def _wait(word: ctypes.c_uint32 | ctypes.c_uint64, value: int, flags: int) -> None:
    """Checks that what is waited for has happened: nothing else is on its way in this process."""
    mask = (1 << 8 * ctypes.sizeof(word)) - 1
    seen, wanted = word.value, value & mask
    behind = (seen - wanted) & mask
    met = {0: not behind >> (mask.bit_length() - 1), EQUAL: seen == wanted}
    met |= {AND: bool(seen & wanted), NOR: bool(~(seen | wanted) & mask)}
    if not met[flags & 3]:
        raise DriverError(
            Result.NOT_SUPPORTED,
            f"a stream waits for the value {wanted}, but memory contains {seen}: "
            "operations run in the order in which they are submitted, so submit the write before "
            "the wait",
        )


@entry("cuStreamWriteValue32_v2")
def write_32(stream: int, address: int, value: int) -> None:
    _value(ctypes.c_uint32, stream, address).value = value


@entry("cuStreamWriteValue64_v2")
def write_64(stream: int, address: int, value: int) -> None:
    _value(ctypes.c_uint64, stream, address).value = value


@entry("cuStreamWaitValue32_v2")
def wait_32(stream: int, address: int, value: int, flags: int) -> None:
    ordering.stream_waits_for_all(stream)
    _wait(_value(ctypes.c_uint32, stream, address), value, flags)


@entry("cuStreamWaitValue64_v2")
def wait_64(stream: int, address: int, value: int, flags: int) -> None:
    ordering.stream_waits_for_all(stream)
    _wait(_value(ctypes.c_uint64, stream, address), value, flags)


# ---- events --------------------------------------------------------------------------------------


@entry("cuEventCreate")
def event_create(event: int, flags: int) -> None:
    context = state.current()
    put(event, state.own(context, Event(flags)))


@entry("cuEventRecord")
def event_record(event: int, stream: int) -> None:
    record_with(event, stream, 0)


@entry("cuEventRecordWithFlags")
def record_with(event: int, stream: int, flags: int) -> None:
    """Records an event: in a capture its position, unless it is external and recorded by the
    graph."""
    found = state.handles.get(event, Event)
    stream_of(stream)
    capture = capture_of(stream)
    if capture is None:
        found.after = do_in_order(stream, Task(Kind.EVENT_RECORD, found.record, event))
    elif flags & EXTERNAL:
        capture.add(stream, Task(Kind.EVENT_RECORD, found.record, event))
    else:
        capture.check()
        found.captured = capture, list(capture.last[stream])


@entry("cuCtxRecordEvent")
def context_record(context: int, event: int) -> None:
    state.context(context)
    event_record(event, DEFAULT)


@entry("cuCtxWaitEvent")
def context_wait(context: int, event: int) -> None:
    state.context(context)
    state.handles.get(event, Event)


def _recorded(event: int) -> Event:
    """Returns an event that no capture has recorded."""
    found = state.handles.get(event, Event)
    state.current()
    if found.captured is not None:
        raise found.captured[0].spoil(Result.CAPTURED_EVENT)
    return found


@entry("cuEventQuery")
def event_query(event: int) -> None:
    found = _recorded(event)
    works.let_some_run()
    if not found.is_done():
        raise DriverError(Result.NOT_READY)
    ordering.host_waits(found.before)


@entry("cuEventSynchronize")
def event_synchronize(event: int) -> None:
    found = _recorded(event)
    if found.after is not None:
        works.host_waits_for([found.after])
    ordering.host_waits(found.before)
    state.current()


@entry("cuEventDestroy", "cuEventDestroy_v2")
def event_destroy(event: int) -> None:
    state.handles.get(event, Event)
    state.handles.remove(event)


@entry("cuEventElapsedTime", "cuEventElapsedTime_v2")
def elapsed(milliseconds: int, start: int, end: int) -> None:
    """Writes the host's own time between two records."""
    first, second = state.handles.get(start, Event), state.handles.get(end, Event)
    if (first.flags | second.flags) & NO_TIMING or first.seconds is None or second.seconds is None:
        raise DriverError(Result.INVALID_HANDLE)
    if not (first.is_done() and second.is_done()):
        raise DriverError(Result.NOT_READY)
    if not milliseconds:
        raise DriverError(Result.INVALID_VALUE)
    session().has_event_times = True
    passed = (second.seconds - first.seconds) * 1e3
    ctypes.c_float.from_address(milliseconds).value = passed
