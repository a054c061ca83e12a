"""All memory of this process as one array of bytes, for rules that reach memory by host
addresses."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.tensors.entries import ORIGIN

ADDRESS_BITS = 47
"""Bits of the addresses that a program has on the processors of today."""


@cache
def host_memory() -> npt.NDArray[np.uint8]:
    """Return the bytes from `ORIGIN` on. Only bytes that are known to be there may be reached."""
    size = (1 << ADDRESS_BITS) - ORIGIN
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(ORIGIN))
