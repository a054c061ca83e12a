"""Compares buffers after a launch with expected contents, for `warploom run --expect`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from warploom.core.errors import WarploomError
from warploom.host.buffer import Array, Buffer
from warploom.host.contents import ContentError, make_content, read_array

TOLERANCE = {2: 1e-2, 4: 1e-5, 8: 1e-10}
"""The relative difference up to which floating-point numbers are equal, by their bytes: a GPU adds
in another order."""


def differences(expected: Sequence[str], buffers: Mapping[str, Buffer]) -> Iterator[str]:
    """Yields what differs, a line for each buffer; `expected` are texts NAME=FILE or NAME=CONTENT
    (`host.contents`). Raises WarploomError for a text that is none of these."""
    for text in expected:
        name, equals, content = text.partition("=")
        if not equals or name not in buffers:
            raise WarploomError(
                f"--expect {text!r} must have the form NAME=FILE.npy or NAME=CONTENT, where NAME "
                f"is one of this launch's buffers ({', '.join(buffers) or 'none'})."
            )
        got = buffers[name].view
        try:
            wanted = _wanted(content, got)
        except ContentError as error:
            raise WarploomError(f"--expect {text!r} cannot be read: {error}.") from None
        yield from _difference(name, got.reshape(-1), wanted)


def _wanted(content: str, got: Array) -> Array:
    """Returns the expected elements, as many as the buffer has."""
    if content.endswith(".npy"):
        loaded = read_array(content).reshape(-1)
        if loaded.size != got.size:
            raise ContentError(
                f"the file has {loaded.size} elements, but the buffer has {got.size}"
            )
        return loaded
    return make_content(content, got.dtype.type, got.size)


def _difference(name: str, got: Array, wanted: Array) -> Iterator[str]:
    """Yields the first element that differs and the number of those, if one does."""
    is_exact = got.dtype.kind not in "fc"
    tolerance = 0.0 if is_exact else TOLERANCE.get(got.dtype.itemsize, 1e-5)
    same = np.isclose(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    where = np.flatnonzero(~same)
    if where.size:
        first = int(where[0])
        yield (
            f"{name}[{first}] is {got[first]}, but {wanted[first]} was expected; {where.size:,} "
            f"of {got.size:,} elements differ"
        )
