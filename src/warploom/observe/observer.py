"""Compiles observers: functions that users write in Python and that a launch calls while it runs.

    @wl.observer
    class Sectors:
        @staticmethod
        def on_access(block, warp, instruction, line, mask, space, kind, size, addresses, state):
            if space == wl.MemorySpace.GLOBAL:
                state[line] += 1

    state = np.zeros(100, np.int64)
    kernel[grid, block](x, y, observe=Sectors(state))

Numba compiles the functions, and both machines call them by address. A class defines any of the
functions in FUNCTIONS, each with the arguments that it has there, in that order. `state` is the
array that the observer was created with; functions read and write it in place.
"""

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
from warploom.simt.compiled_records import register_records
from warploom.simt.event_layout import KINDS, ObservedEvent

_OF_WARP = ("block", "warp", "instruction", "line", "mask")

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "on_access": (*_OF_WARP, "space", "kind", "size", "addresses", "state"),
    "on_branch": (*_OF_WARP, "taken", "state"),
    "on_barrier": (*_OF_WARP, "number", "threads", "state"),
    "on_block_begin": ("block", "state"),
    "on_block_end": ("block", "state"),
}
"""The functions of an observer, and their arguments.

`block` is the number of the thread block in the grid, x fastest; `warp` the number of the warp in
its block; `instruction` that of the PTX instruction in the kernel, as in `by_instruction`; `line`
the source line, or the line of the PTX without line information; `mask` has bit l set if lane l is
active: in `on_access` and `on_barrier`, if the instruction's guard is true too, in `on_branch`
whatever the guard.

`on_access` is called after a legal access of lanes to one of `wl.MemorySpace`, by one of
`wl.AccessKind`, of `size` bytes a lane; `addresses` has one entry for each lane of the warp: a
device address, an offset in shared or local memory; 0 for inactive lanes. `on_branch` is called
before each `bra` and `brx`; `taken` are the lanes that take it. `on_barrier` is called when lanes
arrive at a barrier of their thread block with that `number`, which awaits `threads` threads (0:
all), or at the barrier of their cluster, number 24; the warps of a warp group that synchronize at a
`wgmma` arrive at number 16 and higher. `on_block_end` is called when all warps of a block have
ended.
"""


class Observer:
    """An observer class without a state; calling it with an array binds the state for a launch."""

    def __init__(self, name: str, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.name, self._functions = name, functions

    def __call__(self, state: npt.NDArray[Any]) -> Observation:
        """Returns the observer with a state. Raises OptionTypeError for an array that cannot be
        written in place, WarploomError for functions that Numba cannot compile."""
        is_usable = isinstance(cast(object, state), np.ndarray)
        is_usable = is_usable and state.flags.c_contiguous and state.flags.writeable
        if not is_usable or state.dtype.hasobject or not state.dtype.isnative:
            kind = type(cast(object, state)).__name__
            kind += f" of {state.dtype}" if isinstance(cast(object, state), np.ndarray) else ""
            raise OptionTypeError(
                f"{self.name}(...) requires a state, which must be a writable NumPy array in C "
                f"order, with numbers in native byte order. Got {kind}."
            )
        dtype: np.dtype[Any] = state.dtype
        compiled = {
            kind: _compile(self.name, number, self._functions[f"on_{kind}"], state.shape, dtype)
            for number, kind in enumerate(KINDS)
            if f"on_{kind}" in self._functions
        }
        addresses = {kind: int(function.address) for kind, function in compiled.items()}
        return Observation(self.name, addresses, state, tuple(compiled.values()))


def observer(cls: type) -> Observer:
    """Turns a class of functions into an observer, for `kernel[grid, block](..., observe=)`. Raises
    WarploomError for a class without such functions, or for a function with other arguments than
    FUNCTIONS says."""
    functions = {name: getattr(cls, name) for name in vars(cls) if name.startswith("on_")}
    for name, function in functions.items():
        if name not in FUNCTIONS:
            raise WarploomError(
                f"{cls.__name__}.{name} is not an observer function. The observer functions are "
                f"{', '.join(FUNCTIONS)}."
            )
        count = len(inspect.signature(function).parameters)
        if count != len(FUNCTIONS[name]):
            raise WarploomError(
                f"{cls.__name__}.{name} takes {count} arguments. It must take "
                f"{len(FUNCTIONS[name])}: ({', '.join(FUNCTIONS[name])})."
            )
    if not functions:
        raise WarploomError(
            f"{cls.__name__} has no observer function. Define at least one of "
            f"{', '.join(FUNCTIONS)}."
        )
    return Observer(cls.__name__, functions)


@lru_cache(maxsize=256)
def _compile(
    name: str, kind: int, function: Callable[..., Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Any:
    """Returns the machine code of a user's function, with the signature that both machines call."""
    numba: Any = import_module("numba")  # without types for what is used here
    # Bounds checks, since an index error in user code would otherwise corrupt memory.
    inner = numba.njit(boundscheck=True)(function)
    number, pointer = numba.types.int64, numba.types.voidptr
    numbers = numba.types.CPointer(number)
    register_records()
    call = numba.njit(_unpack_event(numba, inner, kind))

    # An exception cannot propagate through compiled code: the first is recorded, and no function is
    # called after it.
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
    """Returns a function that calls the user's function `inner` with the words of an event as
    arguments."""

    head = ObservedEvent.WORDS

    def of_access(words: Any, lines: Any, state: Any) -> None:
        event = ObservedEvent(words, 0)
        addresses = numba.carray(words, (head + event.lanes,))[head:]
        place = event.block, event.warp, event.instruction, lines[event.instruction], event.mask
        inner(*place, event.space, event.kind, event.size, addresses, state)

    def of_branch(words: Any, lines: Any, state: Any) -> None:
        event = ObservedEvent(words, 0)
        place = event.block, event.warp, event.instruction, lines[event.instruction], event.mask
        inner(*place, event.taken, state)

    def of_barrier(words: Any, lines: Any, state: Any) -> None:
        event = ObservedEvent(words, 0)
        place = event.block, event.warp, event.instruction, lines[event.instruction], event.mask
        inner(*place, event.number, event.threads, state)

    def of_block(words: Any, lines: Any, state: Any) -> None:
        inner(ObservedEvent(words, 0).block, state)

    return (of_access, of_branch, of_barrier, of_block, of_block)[kind]
