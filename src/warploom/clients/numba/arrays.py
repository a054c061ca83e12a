"""Arrays in device memory as Numba programs use them.

Device memory is memory of this process, so an array is a NumPy view of it: slicing, reshaping and
transposing are NumPy's own, and give device arrays again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from warploom.clients.driver import ordering
from warploom.clients.numba.streams import handle_of
from warploom.clients.session import session
from warploom.core.byte_order import check_device_type, device_type
from warploom.core.errors import WarploomError
from warploom.host.buffer import Array, Buffer

Shape = int | tuple[int, ...]


class DeviceArray:
    """An array in device memory; `owner` is what keeps the memory."""

    def __init__(self, view: Array, owner: object) -> None:
        """Raises ValueError for a view in another byte order than that of devices."""
        check_device_type(view.dtype, "memory of a device")
        self._view, self._owner = view, owner
        self.numba_type: Any = None
        """Its type in Numba's words, once that was asked for."""

    # ---- what it is -------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._view.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._view.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._view.dtype

    @property
    def ndim(self) -> int:
        return self._view.ndim

    @property
    def size(self) -> int:
        return self._view.size

    @property
    def nbytes(self) -> int:
        return self._view.nbytes

    @property
    def flags(self) -> Any:
        return self._view.flags

    @property
    def address(self) -> int:
        """Returns where its first element is."""
        return int(self._view.ctypes.data)

    @property
    def view_of_memory(self) -> Array:
        """Returns the device memory itself as an array."""
        return self._view

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the CUDA array interface."""
        contiguous = self._view.flags.c_contiguous
        return {
            "shape": self.shape,
            "strides": None if contiguous else self.strides,
            "data": (self.address if self.size else 0, False),
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "stream": None,
            "version": 3,
        }

    def is_c_contiguous(self) -> bool:
        return bool(self._view.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        return bool(self._view.flags.f_contiguous)

    def __len__(self) -> int:
        return len(self._view)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype})"

    # ---- copies -----------------------------------------------------------------------------

    def copy_to_host(self, ary: Array | None = None, stream: object = 0) -> Array:
        """Returns its content as a new array, or copied into `ary`."""
        self._copied(stream, writes=False)
        if ary is None:
            return self._view.copy(order="K")
        if ary.size != self.size or device_type(ary.dtype) != self.dtype:
            raise ValueError(
                f"an array of shape {self.shape} and type {self.dtype} does not fit into an array "
                f"of shape {ary.shape} and type {ary.dtype}"
            )
        ary.reshape(self.shape)[...] = self._view
        return ary

    def copy_to_device(self, ary: npt.ArrayLike | DeviceArray, stream: object = 0) -> None:
        """Copies the content of an array of the host or of the device into this one."""
        source = ary.view_of_memory if isinstance(ary, DeviceArray) else np.asarray(ary)
        if source.size != self.size:
            raise ValueError(
                f"an array of shape {source.shape} does not fit into an array of shape {self.shape}"
            )
        self._copied(stream, writes=True)
        if isinstance(ary, DeviceArray):
            ary._copied(stream, writes=False)
        self._view[...] = source.reshape(self.shape)

    def _copied(self, stream: object, *, writes: bool) -> None:
        """Reports a copy of the whole array in a stream."""
        if self._view.flags.c_contiguous or self._view.flags.f_contiguous:
            with ordering.within(handle_of(stream)) if stream else nullcontext():
                ordering.copied_whole(self.address, self.nbytes, writes=writes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype)

    # ---- parts and other shapes -------------------------------------------------------------

    def _made(self, view: Array) -> DeviceArray:
        return DeviceArray(view, self._owner)

    def __getitem__(self, index: Any) -> Any:
        """Returns a part; one element comes as a number of the host."""
        found: Any = self._view[index]
        return self._made(cast("Array", found)) if isinstance(found, np.ndarray) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        source = value.view_of_memory if isinstance(value, DeviceArray) else value
        self._view[index] = source

    def setitem(self, index: Any, value: Any, stream: object = 0) -> None:
        self[index] = value

    def getitem(self, index: Any, stream: object = 0) -> Any:
        return self[index]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def reshape(self, *shape: Any, order: Any = "C") -> DeviceArray:
        """Returns the same memory in another shape; ValueError where that takes a copy."""
        made = self._view.reshape(*shape, order=order)
        if not np.shares_memory(made, self._view) and made.size:
            raise ValueError(
                "this array cannot be reshaped without a copy; copy it to the host and back instead"
            )
        return self._made(made)

    def ravel(self, order: Any = "C", stream: object = 0) -> DeviceArray:
        return self._made(self._view.reshape(-1, order=order))

    def transpose(self, *axes: Any) -> DeviceArray:
        return self._made(self._view.transpose(*axes))

    @property
    def T(self) -> DeviceArray:  # noqa: N802 - NumPy's name
        return self.transpose()

    def view(self, dtype: npt.DTypeLike) -> DeviceArray:
        return self._made(self._view.view(dtype))

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> DeviceArray:
        return self._made(self._view.squeeze(axis))

    def split(self, section: int, stream: object = 0) -> list[DeviceArray]:
        """Parts of so many elements."""
        return [self[start : start + section] for start in range(0, self.size, section)]

    def bind(self, stream: object = 0) -> DeviceArray:
        return self


def _buffer(nbytes: int) -> Buffer:
    device = session().device
    return device.empty(max(1, nbytes), np.uint8)


def device_array(
    shape: Shape,
    dtype: npt.DTypeLike = np.float64,
    strides: tuple[int, ...] | None = None,
    order: Any = "C",
    stream: object = 0,
) -> DeviceArray:
    """Returns an array in device memory, in the byte order of devices; what it holds is not
    promised."""
    made = device_type(np.dtype(dtype))
    dims = shape if isinstance(shape, tuple) else (int(shape),)
    count = 1
    for n in dims:
        count *= n
    if strides is not None:
        count = sum(abs(s) * (n - 1) for s, n in zip(strides, dims, strict=True)) // made.itemsize
        count += 1
    buffer = _buffer(count * made.itemsize)
    flat = buffer.view[: count * made.itemsize].view(made)
    if strides is None:
        return DeviceArray(flat.reshape(dims, order=order), buffer)
    return DeviceArray(np.lib.stride_tricks.as_strided(flat, dims, strides), buffer)


def device_array_like(ary: Any, stream: object = 0) -> DeviceArray:
    """Returns an array of the shape, type and order of another."""
    order = "F" if ary.flags["F_CONTIGUOUS"] and not ary.flags["C_CONTIGUOUS"] else "C"
    return device_array(ary.shape, ary.dtype, order=order)


def to_device(
    obj: Any, stream: object = 0, copy: bool = True, to: DeviceArray | None = None
) -> DeviceArray:
    """Returns the content of a host array on the device: in a new array, or in `to`."""
    if isinstance(obj, DeviceArray):
        return obj
    host: Array = np.asarray(obj)
    target = device_array_like(host) if to is None else to
    if copy:
        target.copy_to_device(host)
    return target


def is_cuda_array(obj: object) -> bool:
    """Returns whether it has the CUDA array interface."""
    return hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceArray:
    """Returns a device array over the memory that another object describes."""
    if isinstance(obj, DeviceArray):
        return obj
    if not is_cuda_array(obj):
        raise TypeError(f"{type(obj).__name__} does not implement the CUDA array interface")
    interface = obj.__cuda_array_interface__
    made = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    shape: tuple[int, ...] = tuple(interface["shape"])
    address = interface["data"][0]
    size = made.itemsize
    for index, n in enumerate(shape):
        step = strides[index] if strides else 0
        size = size + step * (n - 1) if strides else size * n
    try:
        memory = session().device.memory.view(address, size)
    except WarploomError:
        raise ValueError(f"{address:#x} is not in the memory of this device") from None
    flat = memory.view(made)
    if strides:
        return DeviceArray(np.lib.stride_tricks.as_strided(flat, shape, strides), obj)
    return DeviceArray(flat.reshape(shape), obj)


# ---- arrays that host and device share -----------------------------------------------------------


def pinned_array(
    shape: Shape, dtype: npt.DTypeLike = np.float64, strides: Any = None, order: Any = "C"
) -> Array:
    """Returns an array of the host; copies need no pinning here."""
    return np.empty(shape, dtype, order=order)


def pinned_array_like(ary: Array) -> Array:
    return np.empty_like(ary)


class MappedArray(np.ndarray[Any, Any]):
    """An array of the host that kernels take by its address: it is in device memory."""

    owner: object = None


def mapped_array(
    shape: Shape,
    dtype: npt.DTypeLike = np.float64,
    strides: Any = None,
    order: Any = "C",
    stream: object = 0,
    portable: bool = False,
    wc: bool = False,
) -> MappedArray:
    """Returns an array that host and kernels see as one."""
    device = device_array(shape, dtype, strides, order)
    made = device.view_of_memory.view(MappedArray)
    made.owner = device
    return made


def mapped_array_like(ary: Array, stream: object = 0) -> MappedArray:
    like = device_array_like(ary)
    made = like.view_of_memory.view(MappedArray)
    made.owner = like
    return made


def managed_array(
    shape: Shape,
    dtype: npt.DTypeLike = np.float64,
    strides: Any = None,
    order: Any = "C",
    stream: object = 0,
    attach_global: bool = True,
) -> MappedArray:
    """Managed memory; the same as a mapped array here."""
    return mapped_array(shape, dtype, strides, order)


@contextmanager
def pinned(*arylist: Array) -> Any:
    """Pinning changes nothing here."""
    yield


# ---- how host arrays travel with a launch --------------------------------------------------------


class In:
    """A host array that is copied to the device only."""

    back = False
    there = True

    def __init__(self, value: Any) -> None:
        self.value = value


class Out(In):
    """A host array that is copied from the device only."""

    back = True
    there = False


class InOut(In):
    """A host array that is copied both ways, as a bare one is."""

    back = True
