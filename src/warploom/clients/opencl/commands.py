"""Commands: what queues hold, when each may begin, and the events that stand for them.

A command is done by the call that puts it in, where nothing that it waits for is still to come.
Otherwise it is done by the call that ends the last of these: one that sets a user event, or another
thread's.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from warploom.clients.driver import ordering
from warploom.clients.driver.results import DriverError
from warploom.clients.driver.state import state
from warploom.clients.driver.table import explain
from warploom.clients.opencl.contexts import ClContext
from warploom.clients.opencl.errors import ClError, Status, demand, status_of
from warploom.clients.opencl.info import list_at
from warploom.clients.opencl.objects import ClObject, get, lock
from warploom.clients.opencl.queues import Queue
from warploom.core.errors import DeadlockError, InstructionLimit, KernelFault, WarploomError
from warploom.core.interrupts import wait_until
from warploom.sanitize.stream_order import HOST, StreamOrder, join

COMPLETE, RUNNING, SUBMITTED, QUEUED = range(4)
USER = 0x1204

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)

changed = threading.Condition(lock)
"""Notified when an event ends."""


class Event(ClObject):
    """The state of a command, or of a user event, which is in no queue: `status` is one of the four
    states, or a negative code; `times` are in nanoseconds, by state."""

    what = "event"
    invalid = Status.INVALID_EVENT

    def __init__(self, context: ClContext, queue: Queue | None, kind: int) -> None:
        super().__init__()
        self.context, self.queue, self.kind = context, queue, kind
        self.status = SUBMITTED if queue is None else QUEUED
        self.times = {QUEUED: time.perf_counter_ns()}
        self.before: Mapping[Hashable, int] = {}
        self.followers: list[Command] = []
        self._callbacks: list[tuple[int, int, int]] = []
        for owner in (context, queue):
            if owner is not None:
                owner.hold()

    @property
    def is_over(self) -> bool:
        """Returns whether the command has ended, well or not."""
        return self.status <= COMPLETE

    def enter(self, status: int) -> None:
        """Enters a state, and has those called who wait for it."""
        with lock:
            self.times[max(status, COMPLETE)] = time.perf_counter_ns()
            self.status = status
            due = [one for one in self._callbacks if status <= one[0]]
            self._callbacks = [one for one in self._callbacks if status > one[0]]
            if self.is_over:
                changed.notify_all()
        for state_, function, data in due:
            self._call(state_, function, data)

    def when(self, status: int, function: int, data: int) -> None:
        """Calls a function of the program once a state is entered."""
        with lock:
            waits = self.status > status
            if waits:
                self._callbacks.append((status, function, data))
                self.hold()
        if not waits:
            self.hold()
            self._call(status, function, data)

    def _call(self, status: int, function: int, data: int) -> None:
        note_wait([self])
        given = self.status if self.status < COMPLETE else status
        _CALLBACK(function)(self.handle, given, data or None)
        self.drop()

    def end(self) -> None:
        for owner in (self.queue, self.context):
            if owner is not None:
                owner.drop()


@dataclass(eq=False)
class Command:
    """A command that waits: for the events `required`, which must end well, and those `after` which
    it comes. `key` names its stream."""

    event: Event
    work: Callable[[], object]
    key: Hashable
    required: Sequence[Event]
    after: Sequence[Event]
    holds: Sequence[ClObject]
    waiting: int = 0


@dataclass(eq=False)
class Pending:
    """Holds the commands of a queue that are not done, and the last barrier."""

    events: dict[Event, None] = field(default_factory=dict[Event, None])
    last: Event | None = None
    barrier: Event | None = None


_pending: dict[Queue, Pending] = {}


def pending_in(queue: Queue) -> list[Event]:
    """Returns the events of a queue's commands that have not ended."""
    with lock:
        return list(_pending[queue].events) if queue in _pending else []


def never_ended() -> list[Event]:
    """Returns the events of all commands that still wait."""
    return [event for queue in list(_pending) for event in pending_in(queue)]


def wait_list(context: ClContext, count: int, address: int) -> list[Event]:
    """Returns the events that a command is to wait for."""
    given = list_at(address, count, Status.INVALID_EVENT_WAIT_LIST)
    events = [get(handle, Event, Status.INVALID_EVENT_WAIT_LIST) for handle in given]
    for event in events:
        same = event.context is context
        demand(same, Status.INVALID_CONTEXT, "an event in the wait list belongs to another context")
    return events


@dataclass(frozen=True)
class Asked:
    """The last three parameters of a call that enqueues: the events to wait for, and where the
    command's own is wanted."""

    count: int
    list: int
    event: int

    def events(self, queue: Queue) -> list[Event]:
        """Returns the events to wait for."""
        return wait_list(queue.context, self.count, self.list)


def enqueue(
    queue: Queue,
    kind: int,
    work: Callable[[], object],
    asked: Asked,
    *,
    blocking: bool = False,
    holds: Iterable[ClObject] = (),
    barrier: bool = False,
    gathers: bool = False,
) -> None:
    """Puts a command into a queue, and does it where it may begin. With `gathers` it waits for all
    before it, where it has no list; all later ones wait for a `barrier`. Raises ClError, with the
    codes of a call that blocks, where it did not end well."""
    required = asked.events(queue)
    queue.context.check()
    with lock:
        held = _pending.setdefault(queue, Pending())
        after = list(held.events) if gathers and not required else []
        after += [held.last] if queue.in_order and held.last is not None else []
        after += [held.barrier] if held.barrier is not None else []
        event = Event(queue.context, queue, kind)
        if not asked.event:
            event.references = 0
            event.uses += 1
        event.hold()
        command = Command(event, work, queue.next_key(), required, after, [*holds])
        for one in (*command.holds, *required):
            one.hold()
        held.events[event] = None
        held.last = event
        held.barrier = event if barrier else held.barrier
        open_ones = [one for one in (*required, *after) if not one.is_over]
        command.waiting = len(open_ones)
        for one in open_ones:
            one.followers.append(command)
    if asked.event:
        ctypes.c_uint64.from_address(asked.event).value = event.handle
    event.hold()
    try:
        if not command.waiting:
            run([command])
        if not asked.event:
            event.drop()
        if blocking:
            wait([event])
    finally:
        event.drop()


def run(ready: Iterable[Command]) -> None:
    """Does commands that may begin, and those that may begin when they have ended."""
    commands = deque(ready)
    while commands:
        command = commands.popleft()
        commands.extend(end(command.event, _perform(command)))
        _forget(command)


def end(event: Event, status: int) -> list[Command]:
    """Ends an event; returns the commands that may begin now."""
    event.enter(status)
    with lock:
        followers, event.followers = event.followers, []
        for command in followers:
            command.waiting -= 1
        return [command for command in followers if not command.waiting]


def _perform(command: Command) -> int:
    """Does a command; returns the state in which its event ends."""
    event = command.event
    if any(one.status < COMPLETE for one in command.required):
        return Status.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
    event.enter(SUBMITTED)
    event.enter(RUNNING)
    try:
        with _ordered(command):
            event.context.check()
            command.work()
    except ClError as error:
        return error.status
    except DriverError as error:
        if error.explained:
            explain(error.explained)
        return status_of(error)
    except WarploomError as error:
        explain(error)
        if isinstance(error, KernelFault | DeadlockError | InstructionLimit):
            event.context.fail(str(error))
        return status_of(error)
    return COMPLETE


@contextmanager
def _ordered(command: Command) -> Generator[None]:
    """Attributes what is done within the context to the command's stream, after all that it waits
    for."""
    if not ordering.orders_streams():
        yield
        return
    order = _order()
    for one in (*command.required, *command.after):
        order.wait(command.key, one.before)
    with order.within(command.key):
        yield
    command.event.before = order.recorded(command.key)
    if command.event.queue is not None:
        join(command.event.queue.before, command.event.before)


def _order() -> StreamOrder:
    return state.device.streams.order


def _forget(command: Command) -> None:
    """Lets go what a command that has ended needed."""
    event, queue = command.event, command.event.queue
    with lock:
        if queue is not None and queue in _pending:
            held = _pending[queue]
            held.events.pop(event, None)
            # The clock of an event that is over still orders those that come after it.
            if not ordering.orders_streams():
                held.last = None if held.last is event else held.last
                held.barrier = None if held.barrier is event else held.barrier
            if not held.events and held.last is None and held.barrier is None:
                del _pending[queue]
    for one in (*command.holds, *command.required):
        one.drop()
    event.drop()


def wait(events: Sequence[Event], failed: Status | None = None) -> None:
    """Waits until events have ended; `failed`, or its own code, where one did not end well."""
    wait_until(partial(_are_over, events))
    note_wait(events)
    for event in events:
        if event.status < COMPLETE:
            raise ClError(failed or code_of(event), f"a command failed with {shown(event.status)}")


def _are_over(events: Sequence[Event], seconds: float) -> bool:
    """Waits for so many seconds at most; returns whether events have ended."""
    with changed:
        return changed.wait_for(lambda: all(event.is_over for event in events), seconds)


def code_of(event: Event) -> Status:
    """Returns the code with which a command of the library ended."""
    return Status(event.status)


def shown(status: int) -> str:
    """Returns a code by its name, where it has one."""
    return f"CL_{Status(status).name}" if status in {*Status} else str(status)


def note_wait(events: Iterable[Event]) -> None:
    """Orders what the host does from now on after events."""
    if ordering.orders_streams():
        for event in events:
            _order().wait(HOST, event.before)


def note_finish(queue: Queue) -> None:
    """Orders what the host does from now on after all of a queue."""
    if ordering.orders_streams():
        _order().wait(HOST, queue.before)
