"""Stream capture: what is asked of a stream becomes nodes of a graph, instead of being done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from warploom.clients.driver.graphs.graphs import Graph, Node, Task
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state

NOTHING, ACTIVE, INVALIDATED = 0, 1, 2
"""CUstreamCaptureStatus."""

LEGACY_STREAMS = (0, 1)


@dataclass(eq=False)
class Capture:
    """A capture that goes on: its graph, the stream that began it, and for each of its streams the
    nodes that what comes next in it waits for. A `blocking` stream waits for the legacy one."""

    graph: Graph
    origin: int
    blocking: bool
    number: int = field(default_factory=lambda: next(state.numbers))
    last: dict[int, list[Node]] = field(default_factory=dict[int, "list[Node]"])
    invalid: bool = False
    dependency_handles: object = None
    """The array of node handles to which the caller has a pointer; the capture keeps it alive."""

    def add(self, stream: int, task: Task) -> None:
        """Adds a task after the others of a stream."""
        self.check()
        self.last[stream] = [self.graph.add(task, self.last[stream])]

    def join(self, stream: int, nodes: Iterable[Node]) -> None:
        """Makes what comes next in a stream wait for some nodes as well; the stream belongs to the
        capture from now on."""
        self.check()
        captures[stream] = self
        known = self.last.setdefault(stream, [])
        known.extend(node for node in nodes if node not in known)

    def check(self) -> None:
        """Raises where the capture is spoilt."""
        if self.invalid:
            raise DriverError(Result.STREAM_CAPTURE_INVALIDATED)

    def spoil(self, result: Result) -> DriverError:
        """Returns the error of a call that a capture cannot take; the capture ends without a
        graph."""
        self.invalid = True
        return DriverError(result)

    def unjoined(self) -> bool:
        """Returns whether a stream has work for which the origin does not wait."""
        visited: set[Node] = set()
        waiting = list(self.last[self.origin])
        while waiting:
            node = waiting.pop()
            if node not in visited:
                visited.add(node)
                waiting.extend(node.dependencies)
        return any(node not in visited for nodes in self.last.values() for node in nodes)

    def end(self) -> None:
        """Streams do what they are asked for again."""
        for stream in self.last:
            captures.pop(stream, None)


captures: dict[int, Capture] = {}
"""The capture in which a stream takes part."""


def capture_of(stream: int) -> Capture | None:
    """Returns the capture of a stream, if it takes part in one. Work in the legacy stream waits for
    that of blocking streams, which cannot be while they are captured (STREAM_CAPTURE_IMPLICIT)."""
    if not captures:
        return None
    if stream in LEGACY_STREAMS:
        for capture in captures.values():
            if capture.blocking:
                raise capture.spoil(Result.STREAM_CAPTURE_IMPLICIT)
    return captures.get(stream)


def refuse(stream: int) -> None:
    """Raises where a stream is captured: for calls that say how far its work is."""
    capture = captures.get(stream)
    if capture is not None:
        raise capture.spoil(Result.STREAM_CAPTURE_UNSUPPORTED)


def leave(stream: int) -> None:
    """Ends a stream; that in which a capture began takes the capture along."""
    capture = captures.pop(stream, None)
    if capture is not None and capture.origin == stream:
        capture.invalid = True
