"""What compiled code asks about memory and barriers, written in Python that Numba compiles.

Each function takes plain pointers: `environment` is the worker's (`Slot`), `addresses` 32 unsigned
addresses, bit l of `mask` lane l. A check answers 0, or records the fault of the lowest failing
lane and answers 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.codegen.environment import FUEL_SLICE, Slot, State, Status
from warploom.rules.distinct import jitable

# Numba reads these as constants; enumerations it would have to import.
_STATES = len(State)
_STATUS, _BARRIER, _BARRIER_THREADS = (
    int(State.STATUS),
    int(State.BARRIER),
    int(State.BARRIER_THREADS),
)
_RUNNABLE, _ENDED, _WAITING = int(Status.RUNNABLE), int(Status.ENDED), int(Status.BARRIER)
_STOPPED, _LIMIT, _DEADLOCK = int(Status.STOPPED), int(Status.LIMIT), int(Status.DEADLOCK)
_STOP, _FUEL, _BUDGET = int(Slot.STOP), int(Slot.FUEL), int(Slot.BUDGET)
_ALLOCATIONS = int(Slot.ALLOCATIONS)
_FAULT_KIND, _FAULT_LANE = int(Slot.FAULT_KIND), int(Slot.FAULT_LANE)
_FAULT_ADDRESS, _FAULT_SIZE = int(Slot.FAULT_ADDRESS), int(Slot.FAULT_SIZE)

OUT_OF_BOUNDS, MISALIGNED, READ_ONLY, TRAP = 1, 2, 3, 4
"""Kinds of fault, as `machine.faults.FaultKind` numbers them."""


def check_global(
    addresses: Any,
    mask: int,
    size: int,
    write: int,
    environment: Any,
    starts: Any,
    ends: Any,
    flags: Any,
    cache: Any,
) -> int:
    """Whether every lane's access lies in one live allocation and is aligned.

    `cache` holds the bounds of the allocation that the last lane looked up.
    """
    bytes_wanted = np.uint64(size)
    for lane in range(32):
        if (mask >> lane) & 1:
            address = addresses[lane]
            kind = 0
            if address < cache[0] or address > cache[1] or cache[1] - address < bytes_wanted:
                index = find_allocation(address, starts, environment[_ALLOCATIONS])
                if index < 0 or address >= ends[index] or ends[index] - address < bytes_wanted:
                    kind = OUT_OF_BOUNDS
                elif address % bytes_wanted != np.uint64(0):
                    kind = MISALIGNED
                elif write and flags[index] != 0:
                    kind = READ_ONLY
                else:
                    cache[0] = starts[index]
                    cache[1] = ends[index]
            elif address % bytes_wanted != np.uint64(0):
                kind = MISALIGNED
            if kind != 0:
                record_fault(environment, kind, lane, int(np.int64(address)), size)
                return 1
    return 0


def check_span(addresses: Any, mask: int, size: int, limit: int, environment: Any) -> int:
    """Whether every lane's access lies below `limit` and is aligned."""
    for lane in range(32):
        if (mask >> lane) & 1:
            address = addresses[lane]
            kind = 0
            if address > np.uint64(limit) or np.uint64(limit) - address < np.uint64(size):
                kind = OUT_OF_BOUNDS
            elif address % np.uint64(size) != np.uint64(0):
                kind = MISALIGNED
            if kind != 0:
                record_fault(environment, kind, lane, int(np.int64(address)), size)
                return 1
    return 0


@jitable
def find_allocation(address: Any, starts: Any, count: int) -> int:
    """Index of the last allocation that starts at or below `address`, -1 where none does."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if starts[middle] <= address:
            low = middle + 1
        else:
            high = middle
    return low - 1


@jitable
def record_fault(environment: Any, kind: int, lane: int, address: int, size: int) -> None:
    environment[_FAULT_KIND] = kind
    environment[_FAULT_LANE] = lane
    environment[_FAULT_ADDRESS] = address
    environment[_FAULT_SIZE] = size


def poll(environment: Any) -> int:
    """Called when the fuel is used up: RUNNABLE with more of it, or why to end."""
    if environment[_STOP] != 0:
        return _STOPPED
    if environment[_BUDGET] <= 0:
        return _LIMIT
    more = min(FUEL_SLICE, environment[_BUDGET])
    environment[_BUDGET] -= more
    environment[_FUEL] += more
    return _RUNNABLE


def settle(states: Any, warps: int) -> int:
    """Complete the barriers of a block whose warps have all ended or wait.

    A barrier completes when as many threads wait at it as it awaits: the number it names, or those
    of every warp that has not ended (PTX ISA, bar.sync: warps count whole). Answers ENDED,
    RUNNABLE where some warp goes on, or DEADLOCK.
    """
    living = 0
    for warp in range(warps):
        if states[warp * _STATES + _STATUS] != _ENDED:
            living += 1
    if living == 0:
        return _ENDED
    released = 0
    for warp in range(warps):
        at = warp * _STATES
        if states[at + _STATUS] == _WAITING:
            arrived = count_arrived(states, warps, states[at + _BARRIER])
            expected = states[at + _BARRIER_THREADS]
            if expected == 0:
                expected = 32 * living
            if 32 * arrived == expected:
                release(states, warps, states[at + _BARRIER])
                released += 1
    return _RUNNABLE if released > 0 else _DEADLOCK


@jitable
def count_arrived(states: Any, warps: int, barrier: int) -> int:
    """How many warps wait at a barrier."""
    count = 0
    for warp in range(warps):
        at = warp * _STATES
        if states[at + _STATUS] == _WAITING and states[at + _BARRIER] == barrier:
            count += 1
    return count


@jitable
def release(states: Any, warps: int, barrier: int) -> None:
    """Let the warps that wait at a barrier go on."""
    for warp in range(warps):
        at = warp * _STATES
        if states[at + _STATUS] == _WAITING and states[at + _BARRIER] == barrier:
            states[at + _STATUS] = _RUNNABLE
