"""Tensor maps of buffers: the options of a device's `tensor_map` and `im2col_map`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from warploom.asynchronous.tensors.maps import (
    ELEMENT_TYPES,
    FIRST_PACKED,
    IM2COL,
    IM2COL_W,
    IM2COL_W128,
)
from warploom.asynchronous.tensors.packed import global_group_bytes, global_size, group_elements
from warploom.core.errors import WarploomError
from warploom.core.options import checked
from warploom.core.values import Integer, OneOf
from warploom.host.buffer import Buffer
from warploom.host.textures.tensor_map import (
    FILLS,
    INTERLEAVES,
    SWIZZLES,
    Tensor,
    TensorMap,
    encode_im2col,
    encode_tiled,
    type_of,
)
from warploom.machine.memory.device_memory import DeviceMemory

Swizzle = Annotated[str, OneOf(tuple(SWIZZLES))]
Interleave = Annotated[str, OneOf(tuple(INTERLEAVES))]
Fill = Annotated[str, OneOf(tuple(FILLS))]
COLUMN_MODES = {"im2col": IM2COL, "im2col::w": IM2COL_W, "im2col::w::128": IM2COL_W128}
ColumnMode = Annotated[str, OneOf(tuple(COLUMN_MODES))]
Type = Annotated[str, OneOf(ELEMENT_TYPES)]
Sizes = Sequence[Annotated[int, Integer(0, 1 << 40)]]
Corners = Sequence[Annotated[int, Integer(-(1 << 15), (1 << 15) - 1)]]


@dataclass(frozen=True)
class _Layout:
    """The layout of a tensor in a buffer; axes begin with the outermost, as NumPy's."""

    shape: Sequence[int] | None
    strides: Sequence[int] | None
    element_strides: Sequence[int] | None
    offset: int
    type: str | None


def _tensor(buffer: Buffer, layout: _Layout, interleave: str, swizzle: str, fill: str) -> Tensor:
    """Returns the tensor of a buffer, with axes from the innermost on. Raises WarploomError where
    it does not lie in the buffer."""
    type = layout.type or type_of(buffer.dtype)
    number = ELEMENT_TYPES.index(type)
    shape = tuple(buffer.shape if layout.shape is None else layout.shape)
    row = shape[-1] * buffer.dtype.itemsize
    if number >= FIRST_PACKED and layout.shape is None:
        shape = (*shape[:-1], row * group_elements(number) // global_group_bytes(number))
    elif number >= FIRST_PACKED:
        row = global_size(number, shape[-1])
    strides = layout.strides
    if strides is None:
        inner = [row]
        for n in reversed(shape[1:-1]):
            inner.append(inner[-1] * n)
        strides = list(reversed(inner))[: len(shape) - 1]
    if len(strides) != len(shape) - 1:
        raise WarploomError(f"tensor map: {len(shape)} axes require {len(shape) - 1} strides")
    outer = sum((n - 1) * stride for n, stride in zip(shape[:-1], strides, strict=True))
    if layout.offset + outer + row > buffer.nbytes:
        raise WarploomError(f"tensor map: the tensor extends past the end of {buffer}")
    steps = layout.element_strides or [1] * len(shape)
    return Tensor(
        type,
        buffer.address + layout.offset,
        shape[::-1],
        tuple(strides)[::-1],
        tuple(steps)[::-1],
        interleave,
        swizzle,
        fill,
    )


class MakesTensorMaps:
    """The tensor maps of a device."""

    memory: DeviceMemory

    @checked("Device.tensor_map(...)")
    def tensor_map(
        self,
        buffer: Buffer,
        box: Sizes,
        *,
        shape: Sizes | None = None,
        strides: Sizes | None = None,
        element_strides: Sizes | None = None,
        offset: Annotated[int, Integer(0, 1 << 47)] = 0,
        type: Type | None = None,
        interleave: Interleave = "none",
        swizzle: Swizzle = "none",
        fill: Fill = "zeros",
    ) -> TensorMap:
        """Returns a map of boxes of a buffer, for `const __grid_constant__ CUtensorMap` parameters.

        All axes are in NumPy's order: the outermost first. `shape` and `strides` (in bytes, of all
        axes but the innermost) are the buffer's unless given, `offset` is in bytes; `type` is the
        one of the buffer's elements unless given ("tf32" for float32, for example). Of the packed
        types "b4x16", "b4x16_p64" and "b6x16_p32", `shape` and `box` count elements of 4 or 6
        bits. Raises WarploomError for what cuTensorMapEncodeTiled refuses.
        """
        layout = _Layout(shape, strides, element_strides, offset, type)
        self.memory.check_owner(buffer.memory, buffer)
        made = encode_tiled(_tensor(buffer, layout, interleave, swizzle, fill), tuple(box)[::-1])
        made.buffer = buffer
        return made

    @checked("Device.im2col_map(...)")
    def im2col_map(
        self,
        buffer: Buffer,
        lower: Corners,
        upper: Corners,
        channels: Annotated[int, Integer(1, 256)],
        pixels: Annotated[int, Integer(1, 1024)],
        *,
        shape: Sizes | None = None,
        strides: Sizes | None = None,
        element_strides: Sizes | None = None,
        offset: Annotated[int, Integer(0, 1 << 47)] = 0,
        type: Type | None = None,
        interleave: Interleave = "none",
        swizzle: Swizzle = "none",
        fill: Fill = "zeros",
        mode: ColumnMode = "im2col",
    ) -> TensorMap:
        """Returns a map of columns of pixels of a buffer with the axes N, D, H, W, C (D, or D and
        H, left out); corners of the bounding box are along D, H, W. Of the modes `im2col::w` and
        `im2col::w::128` they are along W alone. The other options are those of `tensor_map`. Raises
        WarploomError for what cuTensorMapEncodeIm2col and -Im2colWide refuse.
        """
        layout = _Layout(shape, strides, element_strides, offset, type)
        self.memory.check_owner(buffer.memory, buffer)
        tensor = _tensor(buffer, layout, interleave, swizzle, fill)
        corners = tuple(lower)[::-1], tuple(upper)[::-1]
        made = encode_im2col(tensor, *corners, channels, pixels, COLUMN_MODES[mode])
        made.buffer = buffer
        return made
