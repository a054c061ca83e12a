"""Memory that graphs allocate, and how much of it there is."""

from __future__ import annotations

import weakref

from warploom.clients.driver.memory import allocate
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import GraphUse, Owned, Total, check_device, state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put

USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)
"""CUgraphMem_attribute. What is reserved is in use: freed memory is given back at once."""

_total = Total()


class GraphMemory:
    """An allocation of a graph's. It is there from when its node is made until that can no longer
    be launched, so that its address never changes, and then until it is freed, if a launch has
    allocated it and nothing has freed it since."""

    def __init__(self, size: int, pool: int) -> None:
        self.address = allocate(size, "device", pool=pool)
        self.size = size
        owned = state.allocations[self.address]
        _total.change(size)
        self._use = state.graph_memory[self.address] = GraphUse()
        self._end = weakref.finalize(self, _release, self.address, owned, self._use)

    def begin(self) -> None:
        """Allocates the memory, at the launch of the graph."""
        self._use.in_use = True

    def keep(self) -> None:
        """Makes the allocation last until it is freed: it belongs to no graph."""
        if self._end.detach() is not None:
            _total.change(-self.size)
            state.graph_memory.pop(self.address, None)


def give_back(address: int) -> None:
    """Frees an allocation in a launch of a graph."""
    if address in state.allocations:
        state.free(address)


def _release(address: int, owned: Owned, use: GraphUse) -> None:
    _total.change(-owned.size)
    state.graph_memory.pop(address, None)
    if not use.in_use and state.allocations.get(address) is owned:
        state.drop(address)


@entry("cuDeviceGetGraphMemAttribute")
def get_attribute(device: int, number: int, value: int) -> None:
    check_device(device)
    known = {USED: _total.current, RESERVED: _total.current}
    known |= {USED_HIGH: _total.peak, RESERVED_HIGH: _total.peak}
    if number not in known:
        raise DriverError(Result.INVALID_VALUE)
    put(value, known[number])


@entry("cuDeviceSetGraphMemAttribute")
def set_attribute(device: int, number: int, _value: int) -> None:
    """Resets the high watermarks; nothing else can be set."""
    check_device(device)
    if number not in (USED_HIGH, RESERVED_HIGH):
        raise DriverError(Result.INVALID_VALUE)
    _total.reset_peak()


@entry("cuDeviceGraphMemTrim")
def trim(device: int) -> None:
    """Does nothing: there is no memory to return."""
    check_device(device)
