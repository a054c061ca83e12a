"""Arrays in device memory, as the host sees them."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.byte_order import device_type
from warploom.core.errors import LaunchError, WarploomError
from warploom.machine.memory.device_memory import DeviceMemory

Array = npt.NDArray[Any]


class Buffer:
    """An array in the memory of a device; exactly as long as its shape and type say.

    It lives until `free()` is called or it is no longer referenced. Kernels cannot write a constant
    one. Its type has the byte order of devices (`core.byte_order`).
    """

    def __init__(
        self,
        memory: DeviceMemory,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        name: str,
        *,
        constant: bool = False,
    ) -> None:
        self.shape = shape
        self.dtype = device_type(dtype)
        self.nbytes = dtype.itemsize
        for n in shape:
            self.nbytes *= n
        self.name = name
        self.memory = memory
        self._address = memory.allocate(self.nbytes, name, constant).address
        self._release = weakref.finalize(self, memory.drop, self._address)
        self._release.atexit = False

    @classmethod
    def over(cls, memory: DeviceMemory, address: int, dtype: np.dtype[Any], name: str) -> Buffer:
        """Returns a buffer of one dimension over an allocation that begins at `address` and that
        others own: as many elements as are whole in it."""
        allocation = memory.find(address)
        assert allocation is not None
        assert allocation.address == address
        made = cls.__new__(cls)
        made.shape, made.dtype = (allocation.size // dtype.itemsize,), device_type(dtype)
        made.nbytes, made.name = made.shape[0] * dtype.itemsize, name
        made.memory, made._address = memory, address
        made._release = weakref.finalize(made, int)  # frees nothing
        made._release.atexit = False
        return made

    @property
    def address(self) -> int:
        """Returns where it begins; WarploomError after `free()`."""
        if not self._release.alive:
            raise WarploomError(f"{self.name} has been freed; create a new buffer")
        return self._address

    @property
    def view(self) -> Array:
        """Returns the device memory itself as an array, without a copy; use it before `free()`."""
        self.memory.unwritten.pop(self.address, None)  # whoever has the view can write it
        return self._view()

    def _view(self) -> Array:
        return self.memory.view(self.address, self.nbytes).view(self.dtype).reshape(self.shape)

    def copy_to_host(self) -> Array:
        """Returns its content as a new array."""
        self.memory.note_copy(self.address, self.nbytes, writes=False)
        return self._view().copy()

    def free(self) -> None:
        """Frees the buffer's memory now. A second call does nothing."""
        if self._release.detach():
            self.memory.free(self._address)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Buffer({self.name}, shape={self.shape}, dtype={self.dtype})"


def upload(memory: DeviceMemory, host: Any, name: str, *, constant: bool = False) -> Buffer:
    """Returns a new buffer with the content of an array, or of anything that NumPy makes one of."""
    if isinstance(host, Buffer):
        host = host.copy_to_host()
    array = np.asarray(host)
    if array.dtype.hasobject:
        raise LaunchError(
            f"{name}: an array of {array.dtype} contains Python objects, which a device cannot "
            "read; "
            "use a numeric element type"
        )
    buffer = Buffer(memory, array.shape, array.dtype, name, constant=constant)
    if buffer.nbytes:
        buffer.view[...] = array
    return buffer
