"""Exposes the address space of this process as one array of bytes, for functions shared with
compiled code that access memory by host address (`asynchronous`)."""

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
    """Returns all bytes from address ORIGIN on, as an array that owns none of them: byte i is at
    address ORIGIN + i. Access to an unmapped one kills the process."""
    size = (1 << ADDRESS_BITS) - ORIGIN
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(ORIGIN))
