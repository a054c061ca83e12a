"""Warp schedulers and prefetchers that users write in Python.

    @wl.warp_scheduler
    def youngest(slot, age, last, instruction, now, words):
        return -age                      # the ready warp with the least number goes first

    @wl.prefetcher
    def next_line(line, missed, instruction, slot, nth, words):
        return line + 1 if missed and nth == 0 else -1

    run.time(scheduler=youngest, prefetcher=next_line)

Numba compiles them, and the engine calls them by address. `words` is an array of OWN_WORDS integers
of 64 bits, zero at first, one for each SM and function: the memory of a policy. Where a function
raises an exception (an index beyond that array, a division by zero), the replay fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from warploom.core.errors import WarploomError
from warploom.timing.words import OWN_WORDS

_ARGUMENTS = 6


@dataclass(frozen=True)
class _Policy:
    """A function of the user's that the engine calls."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def address(self) -> int:
        """Return where its machine code is. Raises WarploomError where Numba cannot compile it."""
        return int(self._compiled.address)

    @cached_property
    def _compiled(self) -> Any:
        from importlib import import_module

        numba: Any = import_module("numba")  # without types for what is used here
        inner = numba.njit(boundscheck=True)(self.function)
        number = numba.types.int64
        kind = number(*[number] * (_ARGUMENTS - 1), numba.types.CPointer(number))

        def call(a: Any, b: Any, c: Any, d: Any, e: Any, words: Any) -> Any:
            try:
                return inner(a, b, c, d, e, numba.carray(words, OWN_WORDS))
            except Exception:
                words[OWN_WORDS] = 1
                return 0

        try:
            return numba.cfunc(kind)(call)
        except numba.core.errors.NumbaError as error:
            raise WarploomError(
                f"Numba cannot compile {self.name}, which has to take {_ARGUMENTS} arguments, the"
                f" last an array of integers, and to return an integer: {error}"
            ) from error


class WarpScheduler(_Policy):
    """A warp scheduler: of the ready warps the one goes first for which it returns the least.

    Its arguments are the warp's slot on its SM; its age (warps of the SM that began before it);
    whether it issued last (0 or 1); its next instruction (a number in the program, or in the
    listing of its machine code); the cycle; and its words.
    """


class Prefetcher(_Policy):
    """A prefetcher of L1: returns a line to ask for, -1 for none.

    It is called for each line (of 128 bytes, by its number) that a load reaches, and again, up to
    four times, while it returns one. Its arguments are the line; whether L1 lacked some of it (0 or
    1); the instruction; the slot of its warp; how often it was called for that line before; and its
    words. Where no request is free, a line is not asked for.
    """


def warp_scheduler(function: Callable[..., Any]) -> WarpScheduler:
    """Make a function a warp scheduler, for `run.time(scheduler=)`."""
    return WarpScheduler(function)


def prefetcher(function: Callable[..., Any]) -> Prefetcher:
    """Make a function a prefetcher, for `run.time(prefetcher=)`."""
    return Prefetcher(function)


@dataclass(frozen=True)
class Policies:
    """The policies of a replay: a scheduler, one of `schedulers.POLICIES` or the user's, and a
    prefetcher, None for none."""

    scheduler: str | WarpScheduler
    prefetcher: Prefetcher | None = None

    @property
    def name(self) -> str:
        """Return the name of the scheduler."""
        return self.scheduler if isinstance(self.scheduler, str) else self.scheduler.name
