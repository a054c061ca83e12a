"""Conditional nodes of graphs: bodies that are done if, or as long as, a kernel has set a value.

A handle of a condition is the address of its value in device memory: `cudaGraphSetConditional`
(`device_runtime`) stores there. Source: CUDA C++ Programming Guide, "Conditional Graph Nodes".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from warploom.clients.driver.graphs.graphs import Graph, Kind, Task, graph_at, own, perform
from warploom.clients.driver.memory import allocate
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put

ASSIGN_DEFAULT = 1
"""CU_GRAPH_COND_ASSIGN_DEFAULT: each launch of the graph begins with the default value."""


class Type(IntEnum):
    """CUgraphConditionalNodeType."""

    IF = 0
    WHILE = 1
    SWITCH = 2


class _Parameters(ctypes.Structure):
    """CUDA_CONDITIONAL_NODE_PARAMS."""

    _fields_ = (
        ("handle", ctypes.c_uint64),
        ("type", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("graphs", ctypes.c_uint64),
        ("context", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Condition:
    """A value in device memory; `default` is what each launch begins with, None for nothing."""

    address: int
    default: int | None

    @property
    def value(self) -> int:
        """Returns the value now."""
        return ctypes.c_uint32.from_address(self.address).value

    def reset(self) -> None:
        """Assigns the default value, if there is one."""
        if self.default is not None:
            ctypes.c_uint32.from_address(self.address).value = self.default


@dataclass(frozen=True)
class Conditional:
    """Represents a conditional node, which runs the body that its condition selects. `handles` is
    the array of the bodies' graph handles, to which the program has a pointer."""

    condition: Condition
    type: Type
    bodies: tuple[Graph, ...]
    handles: ctypes.Array[ctypes.c_uint64]

    def run(self) -> None:
        """Runs the body that the condition's value selects; for WHILE, repeats until the value is
        0. Returns early where a kernel has put the context into an error state."""
        context = state.current()
        while (body := self._chosen()) is not None:
            perform(body)
            if self.type is not Type.WHILE or context.error is not None:
                return

    def _chosen(self) -> Graph | None:
        value = self.condition.value
        number = value if self.type is Type.SWITCH else int(not value)
        return self.bodies[number] if number < len(self.bodies) else None


@entry("cuGraphConditionalHandleCreate")
def create(handle: int, graph: int, _context: int, default: int, flags: int) -> None:
    """Creates the handle of a condition, for a node that is to be added to the graph."""
    found = graph_at(graph)
    if flags & ~ASSIGN_DEFAULT:
        raise DriverError(Result.INVALID_VALUE)
    address = allocate(ctypes.sizeof(ctypes.c_uint32), "device")
    ctypes.c_uint32.from_address(address).value = 0
    begins = default & 0xFFFF_FFFF if flags & ASSIGN_DEFAULT else None
    found.conditions[address] = Condition(address, begins)
    put(handle, address)


def conditional_task(graph: Graph, parameters: int) -> Task:
    """Returns the task of a conditional node that is added to `graph`, and writes the address of
    the array of its empty bodies' handles to the field `graphs` of the `parameters`.

    Raises DriverError(INVALID_VALUE) for a condition handle of another graph or a wrong number of
    bodies.
    """
    given = _Parameters.from_address(parameters)
    condition = graph.conditions.get(given.handle)
    sizes = {Type.IF: (1, 2), Type.WHILE: (1,), Type.SWITCH: range(1, 1 << 32)}
    if condition is None or given.type not in sizes or given.size not in sizes[Type(given.type)]:
        raise DriverError(Result.INVALID_VALUE)
    bodies = tuple(Graph(conditions=graph.conditions) for _ in range(given.size))
    handles = (ctypes.c_uint64 * given.size)(*map(own, bodies))
    given.graphs = ctypes.addressof(handles)
    made = Conditional(condition, Type(given.type), bodies, handles)
    return Task(Kind.CONDITIONAL, partial(Conditional.run, made), made)


def reset_conditions(tasks: Iterable[Task]) -> None:
    """Assigns the default values of all conditions in the tasks, and in graphs inside of them."""
    for task in tasks:
        if isinstance(task.about, Conditional):
            task.about.condition.reset()
            for body in task.about.bodies:
                reset_conditions(node.task for node in body.nodes)
        elif isinstance(task.about, Graph):
            reset_conditions(node.task for node in task.about.nodes)
