"""Queues the work of streams: does it at once, or puts it into the graph that captures them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from inspect import signature

from warploom.clients.driver import ordering
from warploom.clients.driver.graphs.captures import capture_of
from warploom.clients.driver.graphs.graphs import Kind, Task
from warploom.clients.driver.streams import stream_of
from warploom.clients.registry import Entry, Register


def queued(
    entry: Register, kind: Kind, *names: str, description: type[ctypes.Structure] | None = None
) -> Callable[[Entry], Entry]:
    """Registers a function for entries whose last parameter is a stream as well: what it does
    becomes a node where that is captured. Its first parameter may point to a `description`, which
    is copied then."""

    def register(function: Entry) -> Entry:
        taken = len(signature(function).parameters)

        def serve(*words: int) -> int | None:
            stream_of(words[-1])
            capture = capture_of(words[-1])
            if capture is None:
                with ordering.within(words[-1]):
                    return function(*words[:taken])
            capture.check()
            given, about = words[:taken], None
            if description is not None:
                about = description.from_buffer_copy(
                    ctypes.string_at(given[0], ctypes.sizeof(description))
                )
                given = (ctypes.addressof(about), *given[1:])
            capture.add(words[-1], Task(kind, partial(function, *given), about))
            return None

        entry(*names)(serve)
        return function

    return register
