"""Arguments of Numba kernels as the bytes of their parameters.

Source: numba-cuda's own launch (`dispatcher._prepare_args`): an array is seven or more values, a
tuple its elements, a complex number two floats, a record a pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba.cuda import types

from warploom.clients.numba.arrays import DeviceArray, In, MappedArray, to_device
from warploom.host.buffer import Array

Words = list[Any]
Back = list[Callable[[], object]]
Packer = Callable[[Any, Words, Back], None]
"""Appends the values of an argument, and what is to be done after the launch."""


def packer_of(type: Any) -> tuple[str, Packer]:
    """Returns the `struct` format of an argument of a Numba type, and what fills it. Raises
    TypeError for types that kernels do not take."""
    match type:
        case types.Array():
            return "QQqqQ" + "q" * 2 * type.ndim, _array
        case types.Boolean():
            return "B", lambda value, words, back: words.append(bool(value))
        case types.IntegerLiteral() | types.Integer():
            format = {8: "b", 16: "h", 32: "i", 64: "q"}[type.bitwidth]
            mask = (1 << type.bitwidth) - 1
            return format.upper(), lambda value, words, back: words.append(int(value) & mask)
        case types.Float():
            format = {16: "e", 32: "f", 64: "d"}[type.bitwidth]
            return format, _float32 if format == "f" else _append
        case types.Complex():
            format = "f" if type.bitwidth == 64 else "d"
            return format * 2, _complex
        case types.NPDatetime() | types.NPTimedelta():
            return "q", lambda value, words, back: words.append(int(value.view(np.int64)))
        case types.Record():
            return "Q", _record
        case types.BaseTuple():
            return _tuple([packer_of(one) for one in type])
        case types.EnumMember():
            format, packer = packer_of(type.dtype)
            return format, lambda value, words, back: packer(value.value, words, back)
        case types.CPointer():
            return "Q", _append
        case _:
            raise TypeError(f"kernels do not support arguments of type {type}")


def _append(value: Any, words: Words, back: Back) -> None:
    words.append(value)


def _float32(value: Any, words: Words, back: Back) -> None:
    with np.errstate(over="ignore"):
        words.append(float(np.float32(value)))


def _complex(value: Any, words: Words, back: Back) -> None:
    words += (value.real, value.imag)


def _tuple(parts: list[tuple[str, Packer]]) -> tuple[str, Packer]:
    def fill(value: Any, words: Words, back: Back) -> None:
        for (_, packer), one in zip(parts, value, strict=True):
            packer(one, words, back)

    return "".join(format for format, _ in parts), fill


def _array(value: Any, words: Words, back: Back) -> None:
    device = on_device(value, back)
    view = device.view_of_memory
    words += (0, 0, view.size, view.dtype.itemsize, device.address)
    words += view.shape
    words += view.strides


def on_device(value: Any, back: Back) -> DeviceArray:
    """Returns the argument in device memory: itself, or a copy that comes back after the launch."""
    if isinstance(value, DeviceArray):
        return value
    if isinstance(value, MappedArray):
        return DeviceArray(value, value.owner)
    travel = value if isinstance(value, In) else None
    host = cast("Array", travel.value if travel else value)
    if isinstance(host, DeviceArray):
        return host
    device = to_device(host, copy=travel is None or travel.there)
    if (travel is None or travel.back) and host.flags.writeable:
        back.append(lambda: _copy_back(device, host))
    else:
        back.append(device.is_c_contiguous)  # it lives until the launch is over
    return device


def _copy_back(device: DeviceArray, host: Array) -> None:
    np.copyto(host, device.view_of_memory)


def _record(value: Any, words: Words, back: Back) -> None:
    """Packs a record as an array of one."""
    if isinstance(value, DeviceArray):
        words.append(value.address)
        return
    host = np.asarray(value).reshape(1)
    device = to_device(host)

    def take_back() -> None:
        if value.flags.writeable:
            for name in host.dtype.names or ():
                value[name] = device.view_of_memory[0][name]

    back.append(take_back)
    words.append(device.address)
