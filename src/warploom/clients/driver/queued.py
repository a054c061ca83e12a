"""Queues the work of streams: does it at once, puts it into the graph that captures them, or adds
it to what an unfinished kernel holds up."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from inspect import signature

from warploom.clients.driver import ordering
from warploom.clients.driver.graphs.captures import capture_of
from warploom.clients.driver.graphs.graphs import Kind, Task
from warploom.clients.driver.overlap import works
from warploom.clients.driver.overlap.deferred import add_task, words_of
from warploom.clients.driver.streams import queue_of, stream_of
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
            stream = words[-1]
            stream_of(stream)
            capture, queue = capture_of(stream), queue_of(stream)
            if capture is None and not works.defers(queue):
                with ordering.within(stream):
                    return function(*words[:taken])
            if capture is not None:
                capture.check()
            given, about = words[:taken], None
            if description is not None:
                about = description.from_buffer_copy(
                    ctypes.string_at(given[0], ctypes.sizeof(description))
                )
                given = (ctypes.addressof(about), *given[1:])
            task = Task(kind, partial(function, *given), about)
            if capture is not None:
                capture.add(stream, task)
            else:
                add_task(queue, stream, task, given if about is None else words_of(about))
            return None

        entry(*names)(serve)
        return function

    return register
