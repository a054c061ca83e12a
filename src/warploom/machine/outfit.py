"""The arrays of a launch of compiled code, laid out once for a kernel and its configuration.

They lie in one stretch of memory, the environment first. What they hold at the start is kept as
bytes, so that a launch begins with one copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.analysis.program import Program
from warploom.analysis.services import service_of
from warploom.codegen.environment import MEMO_STEP, NO_STEP, ROW_WIDTH, CountLayout, Slot
from warploom.codegen.jit import CompiledKernel
from warploom.codegen.places import local_stride
from warploom.isa.special import LAUNCH_WIDE
from warploom.machine.common import common_cost
from warploom.machine.launch import WARP_SIZE, Launch, all_shared_bytes, launch_values
from warploom.rules import plan_words
from warploom.rules.fields import EXAMPLE_COST, TRANSACTIONS

Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NO_LIMIT = 1 << 62

ALIGNMENT = 128
"""Of every array, in bytes."""


KEPT_BYTES = 1 << 20
"""Rooms of up to this size are kept for the next launch: to clear one is cheaper than to have the
system make another."""


@dataclass(frozen=True)
class Outfit:
    """What every launch of a kernel in one configuration starts from.

    `slots` is how many blocks it has room for at once. `starts` says where the array begins to
    whose address a slot of the environment is set; `counts_at` and `rows_at` where those begin that
    have no slot. `start` holds the first bytes, with those places where the environment has
    addresses, in the slots `addressed`; behind them there are zeros up to `size`. `serves` says
    whether the host serves calls of the kernel, `most_instructions` how many of its instructions a
    warp can issue, where nothing repeats.
    """

    kernel: CompiledKernel
    slots: int
    starts: Mapping[Slot, int]
    counts_at: int
    rows_at: int
    start: Bytes
    size: int
    addressed: npt.NDArray[np.intp]
    serves: bool
    most_instructions: int | None
    _free: list[Room] = field(default_factory=list["Room"])

    @classmethod
    def of(cls, kernel: CompiledKernel, launch: Launch) -> Outfit:
        """The outfit for launches like this one, whatever their arguments."""
        plan = launch.schedule.plan(launch, kernel.program.exit)
        slots = int(plan[plan_words.SLOTS]) if kernel.suspends else 1
        environment = np.zeros(len(Slot), np.int64)
        counts = np.zeros(max(1, kernel.layout.size), np.int64)
        filled = _filled(kernel, launch, plan)
        filled[Slot.SLOTS_AT] = np.full(slots, -1, np.int64)
        zeros = _zeros(kernel, launch, slots)
        arrays = (environment, counts, _access_rows(kernel.layout), *filled.values())
        places, end = _placed((*(array.nbytes for array in arrays), *zeros.values()))
        starts = dict(zip((*filled, *zeros), places[3:], strict=True))
        starts |= {at: starts[base] for base, at in _CURRENT.items()}
        for slot, value in (*_values(kernel, launch).items(), *starts.items()):
            environment[slot] = value
        start = np.zeros(places[len(arrays)], np.uint8)
        for array, place in zip(arrays, places, strict=False):
            start[place : place + array.nbytes] = array.view(np.uint8).reshape(-1)
        addressed = np.array(sorted(starts), np.intp)
        program = kernel.program
        serves = any(service_of(made) for made in program.instructions)
        return cls(
            kernel,
            slots,
            starts,
            places[1],
            places[2],
            start,
            end,
            addressed,
            serves,
            None if serves else _most_instructions(program),
        )

    def room(self) -> Room:
        """The arrays of one launch, as it starts."""
        try:
            room = self._free.pop()
        except IndexError:
            return Room(self)
        room.clear()
        return room

    def give_back(self, room: Room) -> None:
        """A launch has ended, and nobody looks at its arrays any more."""
        if self.size <= KEPT_BYTES:
            self._free.append(room)


class Room:
    """The arrays of one launch: `arena` has them all, as `Outfit` lays them out; `address` is its
    own."""

    def __init__(self, outfit: Outfit) -> None:
        raw = np.zeros(outfit.size + ALIGNMENT, np.uint8)
        skipped = -int(raw.ctypes.data) % ALIGNMENT
        self.arena = raw[skipped : skipped + outfit.size]
        self.address = int(self.arena.ctypes.data)
        self._start = outfit.start.copy()
        self._start[: 8 * len(Slot)].view(np.int64)[outfit.addressed] += self.address
        self._head, self._rest = np.split(self.arena, [len(self._start)])
        self._head[:] = self._start
        self.environment = self.words(0, len(Slot))
        self.plan = self.words(outfit.starts[Slot.PLAN_AT], plan_words.PLAN_WORDS)
        self.cache = self.words(outfit.starts[Slot.CACHE_AT], _cache_words(outfit.kernel))
        ends = outfit.starts[Slot.GLOBALS_AT]
        self.parameters = self.arena[outfit.starts[Slot.PARAMETERS_AT] : ends]
        self.globals = self.words(ends, (outfit.starts[Slot.SLOTS_AT] - ends) // 8)
        self.counted = self.arena[outfit.counts_at : outfit.starts[Slot.PLAN_AT]]

    def clear(self) -> None:
        """As it was at first."""
        self._head[:] = self._start
        self._rest[:] = 0

    def words(self, start: int, count: int) -> Words:
        """So many 64-bit words."""
        return self.arena[start : start + 8 * count].view(np.int64)


def _most_instructions(program: Program) -> int | None:
    """How many instructions a warp can issue: each once in every lane, if the program never goes
    back and calls nothing; else None."""
    goes_back = any(to <= block.index for block in program.blocks for to in block.successors)
    if goes_back or any(made.operation.name == "call" for made in program.instructions):
        return None
    return len(program.instructions) * WARP_SIZE


def _placed(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Where arrays of these sizes begin, one after the other, and where the last ends."""
    places: list[int] = []
    end = 0
    for size in sizes:
        places.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return places, end


_CURRENT = {
    Slot.SHARED_BASE: Slot.SHARED_AT,
    Slot.LOCAL_BASE: Slot.LOCAL_AT,
    Slot.CONTEXTS_BASE: Slot.CONTEXTS_AT,
    Slot.STATES_BASE: Slot.STATES_AT,
}
"""Where the current block's arrays are, behind where the first slot's are; at first the same."""


def _filled(kernel: CompiledKernel, launch: Launch, plan: Words) -> dict[Slot, npt.NDArray[Any]]:
    """The arrays that do not begin as zeros, and those that each launch fills in anew."""
    specials = launch_values(kernel.program, launch)
    return {
        Slot.PLAN_AT: plan,
        Slot.SPECIALS_AT: np.array([specials[name] for name in LAUNCH_WIDE], np.uint32),
        Slot.TIDS_AT: _thread_indices(launch),
        Slot.PARAMETERS_AT: np.zeros(len(launch.parameters), np.uint8),
        Slot.GLOBALS_AT: np.array(launch.globals, np.uint64),
    }


def _zeros(kernel: CompiledKernel, launch: Launch, slots: int) -> dict[Slot, int]:
    """The arrays that begin as zeros, with their sizes in bytes."""
    warps, local = launch.warps_per_block, local_stride(kernel.program.local_bytes)
    return {
        Slot.CACHE_AT: 8 * _cache_words(kernel),
        Slot.STATES_BASE: 8 * slots * warps * plan_words.STATE_WORDS,
        Slot.CONTEXTS_BASE: slots * kernel.context_bytes * warps,
        Slot.SHARED_BASE: slots * _shared_stride(kernel, launch),
        Slot.LOCAL_BASE: slots * local * warps,
    }


def _cache_words(kernel: CompiledKernel) -> int:
    """Of the bounds that accesses remember."""
    return 2 * max(1, len(kernel.layout.rows))


def _values(kernel: CompiledKernel, launch: Launch) -> Mapping[Slot, int]:
    """The numbers of an environment that are no addresses."""
    warps = launch.warps_per_block
    return {
        Slot.BUDGET: NO_LIMIT if launch.max_instructions is None else launch.max_instructions,
        Slot.BLOCK: -1,
        Slot.SHARED_STRIDE: _shared_stride(kernel, launch),
        Slot.SHARED_BYTES: all_shared_bytes(kernel.program, launch),
        Slot.CONTEXT_BYTES: kernel.context_bytes,
        Slot.THREADS: launch.threads_per_block,
        Slot.WARPS: warps,
        Slot.LOCAL_BYTES: local_stride(kernel.program.local_bytes) * warps,
        **dict(zip((Slot.NTID_X, Slot.NTID_Y, Slot.NTID_Z), launch.block, strict=True)),
        **dict(zip((Slot.NCTAID_X, Slot.NCTAID_Y, Slot.NCTAID_Z), launch.grid, strict=True)),
    }


def _shared_stride(kernel: CompiledKernel, launch: Launch) -> int:
    """Bytes from one block's shared memory to the next one's."""
    return -(-all_shared_bytes(kernel.program, launch) // 128) * 128


def _access_rows(layout: CountLayout) -> Words:
    """The rows in which accesses are counted, before the first."""
    rows = np.zeros((max(1, len(layout.rows)), ROW_WIDTH), np.int64)
    for number, row in enumerate(layout.rows):
        cost = common_cost(layout.program, row, layout.rules)
        rows[number, EXAMPLE_COST] = cost[TRANSACTIONS]
        rows[number, MEMO_STEP] = NO_STEP
    return rows


def _thread_indices(launch: Launch) -> npt.NDArray[np.uint32]:
    """x, y and z of every thread of a block, shape (3, warps * 32), x fastest."""
    x, y, z = launch.block
    linear = np.arange(launch.warps_per_block * WARP_SIZE, dtype=np.uint32)
    return np.stack((linear % x, linear // x % y, linear // (x * y) % max(1, z)))
