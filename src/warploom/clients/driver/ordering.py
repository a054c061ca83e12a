"""Reports to the sanitizers what copies and fills write, and what orders the work of streams: all
of it is done when it is asked for, and would not be on a GPU."""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from warploom.clients.driver.state import state
from warploom.clients.host_stack import Frame, is_program, program_frames, shown_frames
from warploom.clients.session import session
from warploom.host.timelines import Copy
from warploom.sanitize.stream_order import HOST, LEGACY
from warploom.sanitize.streams import Copied
from warploom.timing.timeline.work import Engine

PACKAGES = (str(Path(__file__).parents[2]), *map(str, sysconfig.get_paths().values()))
"""Where packages lie, this one first; a program calls them."""

PER_THREAD = 2
"""The handle of the default stream that each thread has for itself; 0 and 1 are the other one's."""


def looks_for_races() -> bool:
    """Returns whether launches of this process are checked for races."""
    return "race" in session().settings.tools


def orders_streams() -> bool:
    """Returns whether the order of streams is recorded: for races, or for a timeline."""
    return looks_for_races() or session().settings.timeline


def stream_key(handle: int) -> Hashable:
    """Returns what names a stream among the others."""
    if handle == PER_THREAD:
        key = PER_THREAD, threading.get_ident()
        state.device.streams.order.add(key, blocking=True)
        return key
    return handle if handle > PER_THREAD else LEGACY


def made(handle: int, *, blocking: bool) -> None:
    """Reports a stream that has been made."""
    if orders_streams():
        state.device.streams.order.add(handle, blocking=blocking)


def within(handle: int) -> AbstractContextManager[None]:
    """Attributes what is done within the context to a stream."""
    if not orders_streams():
        return nullcontext()
    return state.device.streams.order.within(stream_key(handle))


def recorded() -> Mapping[Hashable, int]:
    """Returns what an event stands for that is recorded in the current stream now."""
    if not orders_streams():
        return {}
    order = state.device.streams.order
    return order.recorded(LEGACY if order.current is None else order.current)


def stream_waits(handle: int, event: Mapping[Hashable, int]) -> None:
    """Orders a stream after an event."""
    if orders_streams():
        state.device.streams.order.wait(stream_key(handle), event)


def stream_waits_for_all(handle: int) -> None:
    """Orders a stream after a value in memory, which any agent may have written."""
    if orders_streams():
        state.device.streams.order.wait_for_all(stream_key(handle))


def host_waits(event: Mapping[Hashable, int]) -> None:
    """Orders the host after an event."""
    if orders_streams():
        state.device.streams.order.wait(HOST, event)


def host_waits_for(handle: int | None) -> None:
    """Orders the host after a stream, or after all streams."""
    if orders_streams():
        key = None if handle is None else stream_key(handle)
        state.device.streams.order.synchronize(key)


def copied(target: int, source: int, size: int, *, waits: bool | None = None) -> None:
    """Reports a copy that has been made. The host waits for copies that are in no stream, and,
    where `waits` does not say, for those to memory that is pageable (CUDA Driver API, "API
    synchronization behavior")."""
    memory = state.device.memory
    memory.mark_written(target, size)
    ranges = [Copied(source, size, writes=False), Copied(target, size, writes=True)]
    on_device = range(memory.base, memory.base + memory.capacity)  # page-locked memory is not
    engine = Engine.ON_DEVICE
    if source not in on_device:
        engine = Engine.TO_DEVICE
    elif target not in on_device:
        engine = Engine.TO_HOST
    waits = memory.find(target) is None if waits is None else waits
    _done("a copy", ranges, waits=waits, copy=Copy(engine, size))


def copied_whole(address: int, size: int, *, writes: bool) -> None:
    """Reports a copy from the host, or to memory of it that may be pageable."""
    if writes:
        state.device.memory.mark_written(address, size)
    copy = Copy(Engine.TO_DEVICE if writes else Engine.TO_HOST, size)
    _done("a copy", [Copied(address, size, writes=writes)], waits=not writes, copy=copy)


def filled(address: int, size: int) -> None:
    """Reports bytes that have been set."""
    state.device.memory.mark_written(address, size)
    ranges = [Copied(address, size, writes=True)]
    _done("a memset", ranges, waits=False, copy=Copy(Engine.FILL, size))


def allocated(address: int, size: int) -> None:
    """Reports memory that a stream allocates: other streams must wait for the allocation."""
    _done("an allocation", [Copied(address, size, writes=True)], waits=False, verb="makes")


def freed(address: int, size: int) -> None:
    """Reports memory that a stream frees."""
    _done("a free", [Copied(address, size, writes=True)], waits=False, verb="ends")


def _done(
    what: str,
    ranges: list[Copied],
    *,
    waits: bool,
    verb: str = "writes",
    copy: Copy | None = None,
) -> None:
    """Reports a copy, an allocation or a free in the current stream: to the race detector and, a
    copy, to the timeline."""
    timeline = session().timeline if copy is not None else None
    looks = looks_for_races() and state.device.streams.order.several
    if not looks and timeline is None:
        return
    streams = state.device.streams
    stream = streams.order.current
    issued = streams.order.issue(LEGACY if stream is None else stream)
    if timeline is not None and copy is not None:
        timeline.add_copy(issued, copy)
    if looks:
        line = partial(_program_line, program_frames()) if is_program() else _python_line()
        streams.copied(issued, what, ranges, line, verb)
    if waits or stream is None:
        streams.order.wait(HOST, issued.clock)


def program_place() -> str:
    """Returns the source line of the program that called, as `file:line`, or "" where it is not
    known."""
    return _program_line(program_frames(), 0) if is_program() else _python_line()(0)


def _program_line(frames: Sequence[Frame], instruction: int) -> str:
    """Returns the source line of the C or C++ program that made the driver call, or "" where the
    debug information does not give it."""
    shown = shown_frames(frames)
    return shown[0].rpartition("(")[2].rstrip(")") if shown else ""


def _python_line() -> Callable[[int], str]:
    """Returns a function that gives the source line of the Python program, outside of installed
    packages, that made the driver call."""
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(PACKAGES) and not path.startswith("<"):
            place = f"{path}:{frame.f_lineno}"
            return lambda _: place
        frame = frame.f_back
    return lambda _: ""
