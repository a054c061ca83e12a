"""Observers: functions that users write in Python, and that a launch calls as it runs.

    @wl.observer
    class Sectors:
        @staticmethod
        def on_access(block, warp, instruction, line, mask, space, kind, size, addresses, state):
            if space == wl.MemorySpace.GLOBAL:
                state[line] += 1

    state = np.zeros(100, np.int64)
    kernel[grid, block](x, y, observe=Sectors(state))

Numba compiles the functions, and both machines call them by address. A class has those of FUNCTIONS
that it wants, each with the arguments that FUNCTIONS names, in that order. `state` is the array
that the observer was made with: a function reads and writes it in place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from warploom.core.errors import OptionTypeError, WarploomError
from warploom.machine.observation import Observation
from warploom.simt import event_layout as words

_LANES, _ADDRESSES = words.E_LANES, words.E_ADDRESSES

_OF_WARP = ("block", "warp", "instruction", "line", "mask")

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "on_access": (*_OF_WARP, "space", "kind", "size", "addresses", "state"),
    "on_branch": (*_OF_WARP, "taken", "state"),
    "on_barrier": (*_OF_WARP, "number", "threads", "state"),
    "on_block_begin": ("block", "state"),
    "on_block_end": ("block", "state"),
}
"""The functions of an observer, and their arguments.

`block` is the number of the block in the grid, x fastest; `warp` that of the warp in its block;
`instruction` that of the PTX instruction in the kernel, as `by_instruction` counts; `line` the line
of the source, or of the PTX where that does not say; `mask` has bit l set where lane l is active:
in `on_access` and `on_barrier`, where the instruction's guard holds, in `on_branch` whatever it is.

`on_access` comes after a legal access of lanes to one of `wl.MemorySpace`, by one of
`wl.AccessKind`, of `size` bytes a lane; `addresses` has one for each lane of the warp: a device
address, an offset in shared or local memory; 0 for lanes that are off. `on_branch` comes before
each `bra` and `brx`; `taken` are the lanes that take it. `on_barrier` comes when lanes come to a
barrier of their block, of that `number`, which awaits so many `threads` (0: all), or to that of
their cluster, number 24; warps of a group that meet at a `wgmma` come to number 16 and more.
`on_block_end` comes when all warps of a block have ended.
"""


class Observer:
    """An observer without a state: call it with an array to have one for a launch."""

    def __init__(self, name: str, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.name, self._functions = name, functions

    def __call__(self, state: npt.NDArray[Any]) -> Observation:
        """Return the observer with a state. Raises OptionTypeError for what is no array that can be
        written in place, WarploomError for functions that Numba cannot compile."""
        usable = isinstance(cast(object, state), np.ndarray)
        usable = usable and state.flags.c_contiguous and state.flags.writeable
        if not usable or state.dtype.hasobject:
            kind = type(cast(object, state)).__name__
            raise OptionTypeError(
                f"{self.name}(...) takes its state: an array of NumPy in C order, of numbers, which"
                f" can be written to. Got {kind}."
            )
        dtype: np.dtype[Any] = state.dtype
        compiled = {
            kind: _compile(self.name, number, self._functions[f"on_{kind}"], state.shape, dtype)
            for number, kind in enumerate(words.KINDS)
            if f"on_{kind}" in self._functions
        }
        addresses = {kind: int(one.address) for kind, one in compiled.items()}
        return Observation(self.name, addresses, state, tuple(compiled.values()))


def observer(made: type) -> Observer:
    """Make a class of functions an observer, for `kernel[grid, block](..., observe=)`. Raises
    WarploomError for a class that has none, or one with other arguments than FUNCTIONS says."""
    found = {name: getattr(made, name) for name in vars(made) if name.startswith("on_")}
    for name, function in found.items():
        if name not in FUNCTIONS:
            raise WarploomError(
                f"{made.__name__}.{name} is no function of an observer. Those are"
                f" {', '.join(FUNCTIONS)}."
            )
        count = len(inspect.signature(function).parameters)
        if count != len(FUNCTIONS[name]):
            raise WarploomError(
                f"{made.__name__}.{name} takes {count} arguments. Give it"
                f" {len(FUNCTIONS[name])}: ({', '.join(FUNCTIONS[name])})."
            )
    if not found:
        raise WarploomError(
            f"{made.__name__} has no function of an observer. Write at least one of"
            f" {', '.join(FUNCTIONS)}."
        )
    return Observer(made.__name__, found)


@lru_cache(maxsize=256)
def _compile(
    name: str, kind: int, function: Callable[..., Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Any:
    """Return the machine code of a function of the user's, as both machines call it."""
    numba: Any = import_module("numba")  # without types for what is used here
    inner = numba.njit(boundscheck=True)(function)
    number, pointer = numba.types.int64, numba.types.voidptr
    numbers = numba.types.CPointer(number)
    call = numba.njit(_unpack_event(numba, inner, kind))

    def guarded(event: Any, lines: Any, state: Any, failed: Any) -> None:
        if failed[0] == 0:
            try:
                call(event, lines, numba.carray(state, shape, dtype))
            except Exception:
                failed[0] = kind + 1

    try:
        return numba.cfunc(numba.types.void(numbers, numbers, pointer, numbers))(guarded)
    except numba.core.errors.NumbaError as error:
        raise WarploomError(
            f"Numba cannot compile {function.__name__} of the observer {name}: {error}"
        ) from error


def _unpack_event(numba: Any, inner: Any, kind: int) -> Callable[..., None]:
    """Return what calls a function of the user's with the words of an event as its arguments."""

    def of_access(event: Any, lines: Any, state: Any) -> None:
        addresses = numba.carray(event, (_ADDRESSES + event[_LANES],))[_ADDRESSES:]
        line, first = lines[event[2]], (event[4], event[5], event[6])
        inner(event[0], event[1], event[2], line, event[3], *first, addresses, state)

    def of_branch(event: Any, lines: Any, state: Any) -> None:
        inner(event[0], event[1], event[2], lines[event[2]], event[3], event[4], state)

    def of_barrier(event: Any, lines: Any, state: Any) -> None:
        inner(event[0], event[1], event[2], lines[event[2]], event[3], event[4], event[5], state)

    def of_block(event: Any, lines: Any, state: Any) -> None:
        inner(event[0], state)

    return (of_access, of_branch, of_barrier, of_block, of_block)[kind]
