"""Compiles warp schedulers, prefetchers, replacement policies and address mappings that users write
in Python.

    @wl.warp_scheduler
    def youngest(slot, age, last, instruction, now, words):
        return -age                      # the ready warp with the least number goes first

    @wl.prefetcher
    def next_line(line, missed, instruction, slot, nth, words):
        return line + 1 if missed and nth == 0 else -1

    @wl.replacement_policy
    def first_in(index, way, line, ways, now, words):
        words[0] += way < 0              # a miss evicts the line that came first
        return (words[0] - 1) % ways

    @wl.address_mapping
    def modulo(line, count):
        return line % count

    run.time(scheduler=youngest, prefetcher=next_line, l1=first_in, dram=modulo)

Numba compiles the functions, and the engine calls them by address. `words` is the memory of a
policy: an array of 64-bit integers, zero at first. Schedulers and prefetchers have an array of
USER_WORDS on each SM, replacement policies one of SET_WORDS for each set. If a function raises an
exception (an index beyond that array, a division by zero), the replay fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from warploom.core.errors import WarploomError
from warploom.core.lazy import cached_property
from warploom.core.options import checked_fields
from warploom.timing.layout import LINE_BYTES, MOST_WAYS, SET_WORDS, USER_WORDS

_ARGUMENT_COUNT = 6
"""Arguments that the engine passes to any function; the last one is the address of its words."""


@dataclass(frozen=True)
class _UserFunction:
    """Holds a function of the user's that the engine calls, and compiles it."""

    function: Callable[..., Any]
    arguments: ClassVar[int] = _ARGUMENT_COUNT
    words: ClassVar[int] = USER_WORDS

    @property
    def name(self) -> str:
        """Returns the name of the Python function."""
        return self.function.__name__

    @property
    def address(self) -> int:
        """Returns the address of the function's machine code. Raises WarploomError if Numba cannot
        compile it."""
        return int(self._compiled.address)

    @cached_property
    def _compiled(self) -> Any:
        """Returns the function, compiled by Numba, as a C callback with six arguments (one that has
        fewer ignores the rest) that sets the word after its memory and returns 0 if it raises an
        exception. Raises WarploomError if Numba cannot compile it."""
        from importlib import import_module

        numba: Any = import_module("numba")  # without types for what is used here
        compiled = numba.njit(boundscheck=True)(self.function)
        int64 = numba.types.int64
        signature = int64(*[int64] * (_ARGUMENT_COUNT - 1), numba.types.CPointer(int64))
        count = self.words

        def call(arg0: Any, arg1: Any, arg2: Any, arg3: Any, arg4: Any, words: Any) -> Any:
            """Returns the result of the user's function for the five integers and its words; if the
            function raises an exception, sets the word after the words to 1 and returns 0."""
            try:
                return compiled(arg0, arg1, arg2, arg3, arg4, numba.carray(words, count))
            except Exception:
                words[count] = 1
                return 0

        def call_without_words(
            arg0: Any, arg1: Any, arg2: Any, arg3: Any, arg4: Any, words: Any
        ) -> Any:
            """Returns the result of an address mapping, which has two integers and no words; if the
            mapping raises an exception, sets the word after its memory to 1 and returns 0."""
            try:
                return compiled(arg0, arg1)
            except Exception:
                words[count] = 1
                return 0

        try:
            return numba.cfunc(signature)(
                call if self.arguments == _ARGUMENT_COUNT else call_without_words
            )
        except numba.core.errors.NumbaError as error:
            last = (
                (", the last of which is an array of integers,")
                if self.arguments == _ARGUMENT_COUNT
                else ""
            )
            raise WarploomError(
                f"Numba cannot compile {self.name}, which must take {self.arguments} "
                f"arguments{last} and return an integer: {error}"
            ) from error


class WarpScheduler(_UserFunction):
    """Ranks warps for a warp scheduler: the ready warp goes first for which the function returns
    the least number, of several with this number the next in turn (loose round robin).

    Its arguments are the warp's slot on its SM; its age (warps of the SM that began before it);
    whether it issued last (0 or 1); its next instruction (a number in the program, or in the
    listing of its machine code); the cycle; and its words.
    """


class Prefetcher(_UserFunction):
    """Names lines that L1 prefetches: the function returns a line to request, or -1 for none.

    It is called for each line (of 128 bytes, by its number) that a load accesses, and again, up to
    four times, while it returns one. Its arguments are the line; whether L1 lacked some of it (0 or
    1); the instruction; the slot of its warp; how often it was called for that line before; and its
    words. A line is not requested while no request is free.
    """


class ReplacementPolicy(_UserFunction):
    """Chooses the line that a cache evicts: the function returns the way of that line.

    It is called whenever a line is used. Its arguments are the number of the set; the way of the
    line, -1 for a line that is not in the cache; the line (of 128 bytes, by its number); how many
    ways a set has; the cycle; and the words of the set. The result is ignored if the line is in the
    cache, else it is taken modulo the ways.
    """

    words = SET_WORDS


class AddressMapping(_UserFunction):
    """Maps lines to the sets of a cache or to the banks of DRAM.

    Its arguments are the line (of 128 bytes, by its number) and how many sets or banks there are.
    The result is taken modulo that number.
    """

    arguments = 2


def warp_scheduler(function: Callable[..., Any]) -> WarpScheduler:
    """Returns a Python function as a warp scheduler, for `run.time(scheduler=)`; a decorator. Numba
    compiles the function when a replay first needs it."""
    return WarpScheduler(function)


def prefetcher(function: Callable[..., Any]) -> Prefetcher:
    """Returns a Python function as a prefetcher of L1, for `run.time(prefetcher=)`; a decorator.
    Numba compiles the function when a replay first needs it."""
    return Prefetcher(function)


def replacement_policy(function: Callable[..., Any]) -> ReplacementPolicy:
    """Returns a Python function as the replacement policy of a cache, for `run.time(l1=, l2=)` and
    `CacheModel`; a decorator. Numba compiles the function when a replay first needs it."""
    return ReplacementPolicy(function)


def address_mapping(function: Callable[..., Any]) -> AddressMapping:
    """Returns a Python function as a mapping of lines to the sets of a cache or the banks of DRAM,
    for `run.time(dram=)` and `CacheModel`; a decorator. Numba compiles the function when a replay
    first needs it."""
    return AddressMapping(function)


@checked_fields
@dataclass(frozen=True)
class CacheModel:
    """Describes a cache in the model of time: its bytes (L1's on each SM), the ways of a set (at
    most 16), the replacement policy, and the mapping of lines to sets. None leaves a value as the
    model has it.

    `dirty`: L2 begins full of data of earlier launches, and this share of its lines, from 0 to 1,
    is still to be written to DRAM; with 0 it begins empty.
    """

    bytes: int | None = None
    ways: int | None = None
    replacement: ReplacementPolicy | None = None
    mapping: AddressMapping | None = None
    dirty: float = 0.0

    def sets(self, name: str, device_bytes: int, ways: int) -> int:
        """Returns the number of sets of the cache `name` ("L1" or "L2"), which has `device_bytes`
        bytes on the device, or the model's own `bytes`, rounded down; 0 for a cache that the device
        lacks. Raises WarploomError if it lacks one of which something is chosen, for ways below 1
        or above MOST_WAYS, own bytes that make no set, dirty lines of L1, and a dirty share beyond
        0 to 1."""
        size = device_bytes if self.bytes is None else self.bytes
        if self != CacheModel() and not device_bytes:
            raise WarploomError(
                f"the launch does not use the {name} on this device, so no policy can be chosen "
                "for this cache"
            )
        sets = size // (LINE_BYTES * max(ways, 1))
        if not 1 <= ways <= MOST_WAYS or (self.bytes is not None and sets < 1):
            raise WarploomError(
                f"invalid {name} of {size:,} bytes with {ways} ways. It must have 1 to "
                f"{MOST_WAYS} ways, and at least {LINE_BYTES} bytes per way."
            )
        if self.dirty and name != "L2":
            raise WarploomError(f"{name} has no dirty lines: it writes through to L2")
        if not 0 <= self.dirty <= 1:
            raise WarploomError(
                f"the share of dirty lines in L2 is {self.dirty}; it must be from 0 to 1"
            )
        return sets


def cache_model(model: CacheModel | ReplacementPolicy | None) -> CacheModel:
    """Returns the model of a cache: the one given; one with only this replacement policy; or, for
    None, one that leaves all values as the model has them."""
    if isinstance(model, ReplacementPolicy):
        return CacheModel(replacement=model)
    return model or CacheModel()


@dataclass(frozen=True)
class Policies:
    """Holds the policies of a replay: a warp scheduler (a name in `layout.SCHEDULERS`, or the
    user's); a prefetcher, or None; the caches; and the mapping of lines to the banks of DRAM, None
    for the model's."""

    scheduler: str | WarpScheduler
    prefetcher: Prefetcher | None = None
    l1: CacheModel = field(default_factory=CacheModel)
    l2: CacheModel = field(default_factory=CacheModel)
    dram: AddressMapping | None = None

    @property
    def name(self) -> str:
        """Returns the name of the scheduler."""
        return self.scheduler if isinstance(self.scheduler, str) else self.scheduler.name
