"""Command queues."""

from __future__ import annotations

from collections.abc import Hashable

from warploom.clients.driver import ordering
from warploom.clients.driver.state import state
from warploom.clients.opencl.contexts import ClContext
from warploom.clients.opencl.devices import ClDevice, device
from warploom.clients.opencl.errors import ClError, Status, demand
from warploom.clients.opencl.info import Answers, answer, properties_at, property_words, uint, word
from warploom.clients.opencl.objects import ClObject, get, register_counting
from warploom.clients.opencl.table import entry

OUT_OF_ORDER, PROFILING, ON_DEVICE = 1, 2, 4
PROPERTIES, SIZE = 0x1093, 0x1094
KNOWN = 0b1111


class Queue(ClObject):
    """A queue of commands of a context; what has been put in and is not done is for `commands`."""

    what = "command queue"
    invalid = Status.INVALID_COMMAND_QUEUE

    def __init__(self, context: ClContext, flags: int, properties: dict[int, int] | None) -> None:
        super().__init__()
        self.context, self.flags, self.properties = context, flags, properties
        self.before: dict[Hashable, int] = {}
        """The clock of all that is done (`sanitize.stream_order`)."""
        self._commands = 0
        context.hold()
        ordering.made(self.handle, blocking=False)

    @property
    def in_order(self) -> bool:
        """Returns whether each command begins after the one before."""
        return not self.flags & OUT_OF_ORDER

    def next_key(self) -> Hashable:
        """Returns what names the stream of the next command: the queue, or where commands may
        overlap, one of its own."""
        if self.in_order or not ordering.orders_streams():
            return self.handle
        self._commands += 1
        key = self.handle, self._commands
        state.device.streams.order.add(key, blocking=False)
        return key

    def end(self) -> None:
        self.context.drop()


register_counting(entry, "CommandQueue", Queue)


@entry("clCreateCommandQueue")
def create(context: int, on: int, flags: int) -> int:
    made = get(context, ClContext)
    get(on, ClDevice)
    return _queue(made, flags, None)


@entry("clCreateCommandQueueWithProperties")
def create_with(context: int, on: int, properties: int) -> int:
    made = get(context, ClContext)
    get(on, ClDevice)
    given = properties_at(properties, Status.INVALID_VALUE)
    for name in given:
        known = name in (PROPERTIES, SIZE)
        demand(known, Status.INVALID_VALUE, f"{name:#x} is not a command queue property")
    sized = "CL_QUEUE_SIZE applies only to on-device queues, which are not supported"
    demand(SIZE not in given, Status.INVALID_QUEUE_PROPERTIES, sized)
    return _queue(made, given.get(PROPERTIES, 0), given if properties else None)


def _queue(context: ClContext, flags: int, properties: dict[int, int] | None) -> int:
    demand(not flags & ~KNOWN, Status.INVALID_VALUE, f"invalid queue properties: {flags:#x}")
    on_host = not flags & ~(OUT_OF_ORDER | PROFILING)
    demand(on_host, Status.INVALID_QUEUE_PROPERTIES, "on-device queues are not supported")
    return Queue(context, flags, properties).handle


def _no_size(queue: Queue) -> bytes:
    raise ClError(Status.INVALID_COMMAND_QUEUE, "only on-device queues have a size")


ANSWERS: Answers[Queue] = {
    0x1090: lambda q: word(q.context.handle),
    0x1091: lambda q: word(device().handle),
    0x1092: lambda q: uint(q.references),
    0x1093: lambda q: word(q.flags),
    0x1094: _no_size,
    0x1095: lambda q: word(0),
    0x1098: lambda q: b"" if q.properties is None else property_words(q.properties),
}


@entry("clGetCommandQueueInfo")
def queue_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    answer(ANSWERS, get(handle, Queue), question, capacity, target, size)


@entry("clSetCommandQueueProperty")
def set_property(handle: int) -> None:
    get(handle, Queue)
    demand(
        False, Status.INVALID_OPERATION, "this function is not supported: OpenCL 1.1 deprecated it"
    )
