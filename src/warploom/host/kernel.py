"""Kernels, and the configuration of a launch: `kernel[grid, block, stream, shared_bytes]`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

from warploom.core.errors import Dim3, LaunchError
from warploom.core.mangled import shown_name
from warploom.host.launcher import Launcher
from warploom.host.ready_launch import LaunchableKernel
from warploom.host.stream import Stream


class Kernel(LaunchableKernel):
    """One kernel; `kernel[grid, block, stream, shared_bytes](*args)` launches it.

    Grid and block are integers or tuples of one to three; the stream and the bytes of dynamic
    shared memory can be left out.
    """

    def __getitem__(self, configuration: Any) -> Launcher:
        given = _tuple(configuration)
        if not 2 <= len(given) <= 4:
            raise LaunchError(
                f"{self.name}[...] takes a grid, a block and, optionally, a stream and the size of "
                f"dynamic shared memory in bytes, but {len(given)} values were given. Try "
                f"{self.name}[blocks, threads]."
            )
        grid, block, stream, shared = given + (None, None, None, 0)[len(given) :]
        if not (stream is None or isinstance(stream, Stream) or _is_zero(stream)):
            raise LaunchError(
                f"{self.name}[...]: the third value must be a stream (`device.stream()`, or 0 for "
                f"none), not {stream!r}; the fourth is the number of bytes of dynamic shared memory"
            )
        if isinstance(stream, Stream):
            self.context.memory.check_owner(stream.memory, f"{self.name}[...]", "its stream")
        [dynamic] = _integers("shared memory", "a number of bytes", shared, 1)
        if dynamic < 0:
            raise LaunchError(f"{self.name}[...]: invalid shared memory size: {dynamic} bytes")
        return Launcher(self, _dims("grid", grid), _dims("block", block), stream or None, dynamic)

    def __repr__(self) -> str:
        return f"Kernel({shown_name(self.name)})"


def _dims(what: str, given: Any) -> Dim3:
    """Returns an integer, or one to three of them, as (x, y, z)."""
    if type(given) is int:
        return given, 1, 1
    numbers = _integers(what, "an integer or a tuple of one to three integers", given, 3)
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _integers(what: str, wanted: str, given: Any, most: int) -> tuple[int, ...]:
    try:
        numbers = tuple(operator.index(part) for part in _tuple(given))
    except TypeError:
        numbers = ()
    if not 1 <= len(numbers) <= most:
        raise LaunchError(f"the {what} of a launch must be {wanted}, not {given!r}")
    return numbers


def _is_zero(given: Any) -> bool:
    """Returns whether a value is the number 0, which stands for no stream."""
    return isinstance(given, int) and given == 0


def _tuple(given: Any) -> tuple[Any, ...]:
    """Returns a tuple as it is, a list as a tuple, anything else as a tuple of one."""
    return tuple(cast("Sequence[Any]", given)) if isinstance(given, (tuple, list)) else (given,)
