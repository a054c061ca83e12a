"""Reads a thread's registers, memory, special values and symbols at the current position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.core.errors import WarploomError
from warploom.debug.stepper import Stepper
from warploom.isa.instruction import Space
from warploom.machine.launch import Launch
from warploom.machine.reference.operands import special
from warploom.machine.reference.state import Warp
from warploom.program.program import Program
from warploom.simt.address_windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE


class EvaluationError(WarploomError):
    """An expression has no value here; the message says why."""


class UnknownName(EvaluationError):
    """An expression has a name that stands for nothing here."""


@dataclass(frozen=True)
class Place:
    """A place in memory: an address in a state space (GENERIC where it is a generic one)."""

    space: Space
    address: int

    def moved(self, offset: int) -> Place:
        """Returns the place that many bytes after this one."""
        return Place(self.space, self.address + offset)

    @property
    def resolved(self) -> Place:
        """Returns the same place in the space that a generic address leads to."""
        if self.space is not Space.GENERIC:
            return self
        for window, space in ((SHARED_WINDOW, Space.SHARED), (LOCAL_WINDOW, Space.LOCAL)):
            if window <= self.address < window + WINDOW_SIZE:
                return Place(space, self.address - window)
        return Place(Space.GLOBAL, self.address)

    @property
    def generic(self) -> int:
        """Returns its generic address."""
        windows = {Space.SHARED: SHARED_WINDOW, Space.LOCAL: LOCAL_WINDOW}
        return self.address + windows.get(self.space, 0)


@dataclass(frozen=True)
class Thread:
    """Reads and writes as one lane of a warp does, where the launch stands."""

    stepper: Stepper
    warp: Warp
    lane: int

    @property
    def program(self) -> Program:
        return self.warp.run.program

    @property
    def launch(self) -> Launch:
        return self.warp.run.launch

    @property
    def block_index(self) -> tuple[int, int, int]:
        """Returns `blockIdx`."""
        return self.launch.block_index(self.warp.block.number)

    @property
    def thread_index(self) -> tuple[int, int, int]:
        """Returns `threadIdx`."""
        return self.launch.thread_index(self.warp.number, self.lane)

    # ---- registers ------------------------------------------------------------------------------

    def register(self, name: str) -> int | None:
        """Returns the bits of a register of the program, None where there is none of that name."""
        values = self.warp.registers.get(name)
        return None if values is None else int(values[self.lane])

    def set_register(self, name: str, bits: int) -> None:
        """Changes a register of this lane."""
        values = self.warp.registers[name].copy()
        values[self.lane] = bits
        self.warp.registers[name] = values

    def special(self, name: str) -> int:
        """Returns the value of a special register, such as `%tid.x`."""
        timed = self.warp.state.timed
        value = int(special(self.warp, name)[self.lane])
        self.warp.state.timed = timed
        return value

    # ---- memory ---------------------------------------------------------------------------------

    def read(self, place: Place, size: int) -> bytes:
        """Returns bytes as this thread reads them. Raises EvaluationError where they are not all
        its own."""
        return self._access(place, size, lambda part: part.tobytes())

    def write(self, place: Place, data: bytes) -> None:
        """Changes bytes as this thread writes them. Raises EvaluationError."""

        def put(part: Any) -> None:
            part[:] = np.frombuffer(data, np.uint8)

        self._access(place, len(data), put)

    def _access(self, place: Place, size: int, use: Callable[[Any], Any]) -> Any:
        where = place.resolved
        own = {
            Space.SHARED: (self.warp.block.shared, "the block's shared memory"),
            Space.LOCAL: (self.warp.local[self.lane], "the thread's local memory"),
        }
        if where.space is Space.PARAM:
            part = bytes(self.launch.parameters[where.address : where.address + size])
            return use(np.frombuffer(part, np.uint8))
        if where.space in own:
            data, name = own[where.space]
            if not 0 <= where.address <= len(data) - size:
                raise EvaluationError(
                    f"{where.address:#x} is not in {name}, which has {len(data)} bytes"
                )
            return use(data[where.address : where.address + size])
        memory = self.warp.run.memory
        try:
            return use(memory.view(where.address, size))
        except WarploomError:
            nearest = memory.nearest(where.address)
            hint = f"; the nearest is {nearest.name} at {nearest.address:#x}" if nearest else ""
            raise EvaluationError(
                f"{size} bytes at {where.address:#x} are not in any allocation{hint}"
            ) from None
