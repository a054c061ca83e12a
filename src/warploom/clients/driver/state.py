"""Holds the state between calls: handles, contexts, which is current in which thread."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Protocol, TypeVar, runtime_checkable

from warploom.clients.driver.attributes import attributes_of
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.host_stack import Frame, is_program, program_frames, shown_frames
from warploom.clients.session import session
from warploom.core.lazy import cached_property
from warploom.host.device import Device
from warploom.sanitize.findings import LEAK
from warploom.sanitize.leaks import LiveAllocation

T = TypeVar("T")

FIRST_HANDLE, STEP = 0x5157_0000_0000, 0x100


@runtime_checkable
class EndsWithContext(Protocol):
    """An object that holds memory until it is unloaded, or its context ends."""

    def unload(self) -> None: ...


class Handles:
    """Objects by number. A number is never given twice, so an old one leads nowhere."""

    def __init__(self) -> None:
        self._objects: dict[int, object] = {}
        self._numbers = count(FIRST_HANDLE, STEP)

    def add(self, made: object) -> int:
        """Returns a handle for an object."""
        number = next(self._numbers)
        self._objects[number] = made
        return number

    def put(self, number: int, made: object) -> None:
        """Registers a number from elsewhere as a handle."""
        self._objects[number] = made

    def get(self, handle: int, kind: type[T], wrong: Result = Result.INVALID_HANDLE) -> T:
        """Returns the object of that kind; DriverError(`wrong`) where the handle is of none."""
        found = self.find(handle, kind)
        if found is None:
            raise DriverError(wrong)
        return found

    def find(self, handle: int, kind: type[T]) -> T | None:
        """Returns the object of that kind; None where the handle is of none."""
        found = self._objects.get(handle)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[T]) -> list[T]:
        """Returns the objects of that kind."""
        return [made for made in self._objects.values() if isinstance(made, kind)]

    def __contains__(self, handle: int) -> bool:
        """Returns whether a number is a handle of an object that exists."""
        return handle in self._objects

    def has(self, handle: int, kind: type[object]) -> bool:
        """True if the handle is of an object of that kind."""
        return isinstance(self._objects.get(handle), kind)

    def remove(self, handle: int) -> object:
        """Removes a handle; returns its object."""
        return self._objects.pop(handle, None)


@dataclass(eq=False)
class Context:
    """A context: what was made in it, and the error that ended it, if one did.

    `limits` are those of cuCtxSetLimit; `handles` lead to what ends with the context.
    """

    number: int
    flags: int = 0
    primary: bool = False
    handle: int = 0
    error: Result | None = None
    handles: set[int] = field(default_factory=set[int])
    limits: dict[int, int] = field(default_factory=dict[int, int])


def frames_if_wanted() -> tuple[Frame, ...]:
    """Returns the frames of the program that calls, where leaks are looked for in it; none of
    Python's, whose objects end with it in no order."""
    if LEAK not in session().settings.tools or not is_program():
        return ()
    return program_frames()


@dataclass(frozen=True)
class Owned:
    """Facts of an allocation: its `kind` ("device", "host", "managed", "registered"), the
    context that it ends with, the flags that it was made with, its pool, the frames of the program
    that made it where leaks are looked for."""

    kind: str
    context: Context
    size: int
    flags: int = 0
    pool: int = 0
    made: tuple[Frame, ...] = field(default_factory=frames_if_wanted)


@dataclass
class GraphUse:
    """True in `in_use` from a launch of the graph that allocates until something frees."""

    in_use: bool = False


@dataclass
class Total:
    """A sum that goes up and down: `current` and `peak`, all that was added and taken away."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def change(self, by: int) -> None:
        """Adds, or takes away what is negative."""
        self.current += by
        if by < 0:
            self.freed -= by
            return
        self.allocated += by
        if self.current > self.peak:
            self.peak = self.current

    def reset_peak(self) -> None:
        """Begins anew with what there is now."""
        self.peak = self.current

    def reset_sums(self) -> None:
        """Forgets what was allocated and freed before."""
        self.allocated = self.freed = 0


class State:
    """The driver in this process. There is one device, number 0."""

    def __init__(self) -> None:
        self.process = 0
        self.handles = Handles()
        self.numbers = count(1)
        self.allocations: dict[int, Owned] = {}
        self.graph_memory: dict[int, GraphUse] = {}
        """Allocations of graphs that are there, by address."""
        self.device_bytes, self.device_blocks = Total(), Total()
        """What allocations of device memory take, and how many there are."""
        self.has_streams = False
        """Whether work has gone to a stream other than the legacy default stream."""
        self.primary: Context | None = None
        self.primary_uses = 0
        self.primary_flags = 0
        self._stacks: dict[int, list[Context]] = {}
        self._launching: set[int] = set()
        session().alive = self.alive
        self._due: deque[Callable[[], object]] = deque()

    def alive(self) -> list[LiveAllocation]:
        """Returns what the program has allocated and not freed."""
        if not is_program():
            return []
        return [
            LiveAllocation(owned.kind, owned.size, address, shown_frames(owned.made))
            for address, owned in self.allocations.items()
            if address not in self.graph_memory
        ]

    @property
    def device(self) -> Device:
        """Returns the software GPU."""
        return session().device

    @cached_property
    def attributes(self) -> dict[int, int]:
        """Returns the attributes of the device, by number."""
        return attributes_of(self.device.spec)

    def initialise(self) -> None:
        """cuInit: a child of a process that has called it cannot use CUDA."""
        if self.process and self.process != os.getpid():
            raise DriverError(Result.NOT_INITIALIZED)
        self.process = os.getpid()

    def check(self) -> None:
        """Raises unless cuInit was called; a child that was forked since does not come this far."""
        if not self.process:
            raise DriverError(Result.NOT_INITIALIZED)

    @property
    def stack(self) -> list[Context]:
        """Returns the contexts of this thread; the last one is current."""
        return self._stacks.setdefault(threading.get_ident(), [])

    def current(self) -> Context:
        """Returns the current context, if work can be done in it."""
        self.check()
        stack = self.stack
        if not stack:
            raise DriverError(Result.INVALID_CONTEXT)
        context = stack[-1]
        if context.error is not None:
            raise DriverError(context.error)
        return context

    def new_context(self, flags: int, *, primary: bool = False) -> Context:
        """Returns a context that is current in no thread yet."""
        made = Context(next(self.numbers), flags, primary)
        made.handle = self.handles.add(made)
        return made

    def mend(self) -> None:
        """Lets contexts that an error has ended be used again, which a GPU allows in a new process
        alone; those that were destroyed stay so."""
        for context in self.handles.all(Context):
            if context.error is not Result.CONTEXT_IS_DESTROYED:
                context.error = None

    @property
    def may_change_memory(self) -> bool:
        """Returns whether anything can write memory while a kernel runs: the host, or another
        stream."""
        return self.has_streams or any(one.kind != "device" for one in self.allocations.values())

    def context(self, handle: int) -> Context:
        """Returns the context of a handle."""
        self.check()
        return self.handles.get(handle, Context, Result.INVALID_CONTEXT)

    def own(self, context: Context, made: object) -> int:
        """Returns a handle for what belongs to a context."""
        handle = self.handles.add(made)
        context.handles.add(handle)
        return handle

    def close(self, context: Context) -> None:
        """Frees all that a context has. It stays in the stacks of threads, and is of no use."""
        for address in [a for a, owned in self.allocations.items() if owned.context is context]:
            self.drop(address)
        for handle in (*context.handles, context.handle):
            gone = self.handles.remove(handle)
            if isinstance(gone, EndsWithContext):
                gone.unload()
        context.handles.clear()
        context.error = Result.CONTEXT_IS_DESTROYED

    def free(self, address: int) -> None:
        """Ends an allocation; one of a graph that can be launched again stays for that."""
        if address in self.graph_memory:
            self.graph_memory[address].in_use = False
        else:
            self.drop(address)

    def drop(self, address: int) -> None:
        """Ends an allocation when no kernel runs."""
        owned = self.allocations.pop(address, None)
        if owned is None:
            raise DriverError(Result.INVALID_VALUE)
        if owned.kind == "device":
            self.count_device_memory(-owned.size)
        self.when_idle(partial(self.device.memory.drop, address))

    def count_device_memory(self, size: int) -> None:
        """Counts an allocation of `size` bytes on the device, or one freed where that is
        negative."""
        self.device_bytes.change(size)
        self.device_blocks.change(1 if size > 0 else -1)

    def enter_launch(self) -> None:
        """Notes that this thread is about to launch; NOT_PERMITTED where it is launching
        already."""
        thread = threading.get_ident()
        if thread in self._launching:
            raise DriverError(
                Result.NOT_PERMITTED,
                "a signal handler or a finalizer launched a kernel while another launch from "
                "the same thread was running. Launch the kernel after the other launch has "
                "returned.",
            )
        self._launching.add(thread)

    def leave_launch(self) -> None:
        """Notes that the launch of this thread has ended."""
        self._launching.discard(threading.get_ident())
        if self._due:
            self._settle()

    def when_idle(self, work: Callable[[], object]) -> None:
        """Executes what may not happen while kernels run: now, after those of other threads; or
        where this thread is in the middle of a launch (finalizers run at any moment), when that
        ends."""
        self._due.append(work)
        self._settle()

    def _settle(self) -> None:
        thread = threading.get_ident()
        if thread in self._launching:
            return
        self._launching.add(thread)
        try:
            with self.device.turn:
                while self._due:
                    self._due.popleft()()
        finally:
            self._launching.discard(thread)


state = State()


def check_device(number: int) -> None:
    """Raises unless the device of that number is there."""
    state.check()
    if number != 0:
        raise DriverError(Result.INVALID_DEVICE)


def started_by(flag: ctypes.c_int | None) -> None:
    """Makes the C side refuse calls of forked children from now on."""
    if flag is not None:
        flag.value = 1
