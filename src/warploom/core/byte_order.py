"""The byte order of arrays: memory of a device is little-endian, as that of every GPU is.

The rule of all interfaces that accept arrays: an array of the host in another byte order is
converted on the way to the device, and results are converted back where they return to it. Memory
of a device that claims another byte order is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def device_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the type with the same values in the byte order of devices, that of each field of a
    structure too; the type itself where it has this order."""
    return dtype if dtype.isnative else dtype.newbyteorder("<")


def in_device_order(array: Array) -> Array:
    """Returns an array with the same values in the byte order of devices; the array itself where it
    has this order."""
    return array.astype(device_type(array.dtype), copy=False)


def check_device_type(dtype: np.dtype[Any], what: str) -> None:
    """Raises ValueError for a type in another byte order than that of devices; `what` names the
    memory that is said to hold it."""
    if not dtype.isnative:
        raise ValueError(
            f"{what} cannot be read as {dtype}: device memory is little-endian. Copy the array to "
            f"the host and convert it with .astype({device_type(dtype)!r})."
        )
