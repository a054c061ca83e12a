"""Exposes all memory of this process as one array of bytes, for rules that access memory by host
addresses."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import numpy.typing as npt

from warploom.asynchronous.tensors.entries import ORIGIN

ADDRESS_BITS = 47
"""The width of user-space addresses on current processors."""


@cache
def host_memory() -> npt.NDArray[np.uint8]:
    """Returns the bytes from address `ORIGIN` on. Only mapped bytes may be accessed."""
    size = (1 << ADDRESS_BITS) - ORIGIN
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(ORIGIN))
