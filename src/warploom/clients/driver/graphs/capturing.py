"""The calls that begin and end a capture, and report its status."""

from __future__ import annotations

import ctypes

from warploom.clients.driver.graphs.captures import (
    ACTIVE,
    INVALIDATED,
    LEGACY_STREAMS,
    NOTHING,
    Capture,
    captures,
)
from warploom.clients.driver.graphs.graphs import Graph, Node, graph_at, node_at, own
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.streams import NON_BLOCKING, stream_of
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import int_at, offer, put, put_int, unsigned, word_at

MODES = (0, 1, 2)
"""CUstreamCaptureMode: global, of the thread, relaxed. All are relaxed here: which calls a capture
cannot take does not depend on them."""

_mode = [0]


@entry("cuStreamBeginCapture")
def begin_global(stream: int) -> None:
    begin(stream, 0)


@entry("cuStreamBeginCapture_v2")
def begin(stream: int, mode: int) -> None:
    _begin(stream, Graph(), [], mode)


@entry("cuStreamBeginCaptureToGraph")
def begin_in(
    stream: int, graph: int, dependencies: int, _edges: int, count: int, mode: int
) -> None:
    _begin(stream, graph_at(graph), nodes_at(dependencies, count), mode)


def _begin(stream: int, graph: Graph, behind: list[Node], mode: int) -> None:
    found = stream_of(stream)
    if mode not in MODES:
        raise DriverError(Result.INVALID_VALUE)
    if stream in LEGACY_STREAMS:
        raise DriverError(Result.STREAM_CAPTURE_UNSUPPORTED)
    if stream in captures:
        raise DriverError(Result.ILLEGAL_STATE)
    capture = Capture(graph, stream, blocking=not found.flags & NON_BLOCKING)
    capture.join(stream, behind)


@entry("cuStreamEndCapture")
def end(stream: int, graph: int) -> None:
    stream_of(stream)
    capture = captures.get(stream)
    if capture is None:
        raise DriverError(Result.ILLEGAL_STATE)
    if capture.origin != stream:
        raise capture.spoil(Result.STREAM_CAPTURE_UNMATCHED)
    offer(graph, 0)
    capture.end()
    capture.check()
    if capture.unjoined():
        raise capture.spoil(Result.STREAM_CAPTURE_UNJOINED)
    capture.invalid = True  # events that were recorded in it lead nowhere from now on
    offer(graph, own(capture.graph))


# ---- how it stands -------------------------------------------------------------------------------


def _status(stream: int) -> tuple[int, Capture | None]:
    stream_of(stream)
    capture = captures.get(stream)
    if capture is None:
        return NOTHING, None
    return (INVALIDATED if capture.invalid else ACTIVE), capture


@entry("cuStreamIsCapturing")
def is_capturing(stream: int, status: int) -> None:
    put_int(status, _status(stream)[0])


@entry("cuStreamGetCaptureInfo")
def info(stream: int, status: int, number: int) -> None:
    info_with(stream, status, number, 0, 0, 0)


@entry("cuStreamGetCaptureInfo_v2")
def info_with(
    stream: int, status: int, number: int, graph: int, dependencies: int, count: int
) -> None:
    code, capture = _status(stream)
    put_int(status, code)
    if capture is None or code != ACTIVE:
        return
    offer(number, capture.number)
    offer(graph, own(capture.graph))
    last = capture.last[stream]
    offer(count, len(last))
    if dependencies:
        handles = (ctypes.c_uint64 * max(1, len(last)))(*(node.handle for node in last))
        capture.dependency_handles = handles
        put(dependencies, ctypes.addressof(handles))


@entry("cuStreamGetCaptureInfo_v3")
def info_with_edges(
    stream: int,
    status: int,
    number: int,
    graph: int,
    dependencies: int,
    edges: int,
    count: int,
) -> None:
    """Writes the edges, each of which states only that one node waits for another."""
    info_with(stream, status, number, graph, dependencies, count)
    offer(edges, 0)


@entry("cuStreamUpdateCaptureDependencies")
def update(stream: int, dependencies: int, count: int, flags: int) -> None:
    """Makes what comes next wait for these nodes as well, or (flag 1) for these instead."""
    stream_of(stream)
    capture = captures.get(stream)
    if capture is None:
        raise DriverError(Result.ILLEGAL_STATE)
    nodes = nodes_at(dependencies, count)
    if any(node.graph is not capture.graph for node in nodes):
        raise DriverError(Result.INVALID_VALUE)
    if flags & 1:
        capture.last[stream] = []
    capture.join(stream, nodes)


@entry("cuStreamUpdateCaptureDependencies_v2")
def update_with_edges(stream: int, dependencies: int, _edges: int, count: int, flags: int) -> None:
    update(stream, dependencies, count, flags)


@entry("cuThreadExchangeStreamCaptureMode")
def exchange_mode(mode: int) -> None:
    if not mode or int_at(mode) not in MODES:
        raise DriverError(Result.INVALID_VALUE)
    before, _mode[0] = _mode[0], int_at(mode)
    put_int(mode, before)


def nodes_at(address: int, count: int) -> list[Node]:
    """Returns the nodes of an array of handles."""
    if unsigned(count) and not address:
        raise DriverError(Result.INVALID_VALUE)
    return [node_at(word_at(address + 8 * index)) for index in range(unsigned(count))]
