"""Copies of columns of pixels along W alone (PTX ISA, "im2col::w and im2col::w::128 modes"): a walk
through the pixels is written from the manual."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")
CHANNELS = 16
"""f16 numbers of a pixel: 32 bytes, the span of the swizzle."""

CAPACITY = 8192
KERNEL = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes,
                  .param .u32 c, .param .u32 w, .param .u32 h, .param .u32 n,
                  .param .u16 halo, .param .u16 offset)
{
    .reg .b64 %map, %out, %x; .reg .b32 %t, %buf, %bar, %v, %bytes, %c<4>; .reg .b16 %o<2>;
    .reg .pred %first, %p;
    .shared .align 1024 .b8 buf[ROOM]; .shared .align 8 .b64 bar;
    mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %out, [out];
    ld.param.u32 %bytes, [bytes]; ld.param.u32 %c0, [c]; ld.param.u32 %c1, [w];
    ld.param.u32 %c2, [h]; ld.param.u32 %c3, [n];
    ld.param.u16 %o0, [halo]; ld.param.u16 %o1, [offset];
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %buf, buf; mov.u32 %bar, bar;
    @%first mbarrier.init.shared::cta.b64 [%bar], 1;
    bar.sync 0;
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], %bytes;
    @%first cp.async.bulk.tensor.4d.shared::cluster.global.MODE.mbarrier::complete_tx::bytes
        [%buf], [%map, {%c0, %c1, %c2, %c3}], [%bar], {%o0, %o1};
waits:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
    @!%p bra waits;
    shl.b32 %t, %t, 2; add.u32 %buf, %buf, %t; cvt.u64.u32 %x, %t; add.u64 %out, %out, %x;
show:
    ld.shared.u32 %v, [%buf]; st.global.u32 [%out], %v;
    add.u32 %buf, %buf, 128; add.u64 %out, %out, 128; add.u32 %t, %t, 128;
    setp.lt.u32 %p, %t, %bytes;
    @%p bra show;
    ret;
}
"""


@dataclass(frozen=True)
class Column:
    """A copy from a tensor of N x H x W pixels: corners along W, the first pixel as (n, h, w)."""

    mode: str = "im2col::w"
    shape: tuple[int, int, int] = (6, 3, 9)
    lower: int = 0
    upper: int = 0
    stride: int = 1
    pixels: int = 32
    start: tuple[int, int, int] = (1, 2, 0)
    halo: int = 0
    offset: int = 0

    def walk(self) -> list[tuple[int, int, int]]:
        """The pixels in the order of shared memory, as (n, h, w)."""
        n, h, w = self.start
        lower, upper = self.lower + self.offset, self.shape[2] - 1 + self.upper + self.offset
        w += self.offset
        count, group = (self.pixels, self.pixels) if self.mode == "im2col::w" else (128, 32)
        found = list[tuple[int, int, int]]()
        for number in range(1, count + 1):
            found.append((n, h, w))
            if number % group == 0:
                found += [(n, h, w + self.stride * (1 + more)) for more in range(self.halo)]
            w += self.stride
            if w > upper:
                n, w = n + 1, lower
        return found


CASES = [
    Column(),
    Column(start=(0, 0, 4)),
    Column(lower=-1, stride=2, start=(0, 1, -1)),  # example 1 of wOffset, by its second buffer
    Column(lower=-1, stride=2, start=(0, 1, -1), offset=1),
    Column(lower=-1, upper=-1, stride=3, start=(0, 2, -1), offset=2),
    Column(lower=1, upper=-2, start=(0, 0, -2)),  # the first pixel lies left of the box
    Column(shape=(6, 3, 7), start=(0, 2, 3), pixels=27, halo=2),  # as the example of wHalo
    Column(shape=(4, 2, 70), lower=-1, stride=2, start=(0, 1, -1), pixels=40, halo=1, offset=0),
    Column(mode="im2col::w::128", shape=(40, 2, 9), start=(3, 1, 2)),
    Column(mode="im2col::w::128", shape=(3, 2, 140), start=(1, 1, 0), halo=2),
    Column(mode="im2col::w::128", shape=(4, 2, 90), start=(1, 0, 3), halo=5, offset=3, pixels=8),
]


def in_shared(offset: int) -> int:
    """Returns where a byte stands by the swizzle of 32 bytes."""
    return offset ^ (offset >> 7 & 1) << 4


def copy(gpu: wl.Device, case: Column) -> tuple[np.ndarray, np.ndarray]:
    """Returns what the copy puts into shared memory, pixel by pixel, and what is right."""
    n, h, w = case.shape
    content = np.arange(1, n * h * w * CHANNELS + 1, dtype=np.float32).astype(np.float16)
    tensor = content.reshape(n, h, w, CHANNELS)
    made = gpu.im2col_map(
        gpu.to_device(tensor), (case.lower,), (case.upper,), CHANNELS, case.pixels,
        element_strides=(1, 1, case.stride, 1), swizzle="32B", mode=case.mode,
    )  # fmt: skip
    pixels = case.walk()
    size = len(pixels) * 2 * CHANNELS
    out = gpu.zeros(CAPACITY, np.uint8)
    text = KERNEL.replace("MODE", case.mode).replace("ROOM", str(CAPACITY))
    first = case.start
    gpu.compile(text, "ptx")["k"][1, 32](
        made, out, size, 0, first[2], first[1], first[0], case.halo, case.offset
    )
    order = np.array([in_shared(offset) for offset in range(size)])
    found = out.copy_to_host()[order].view(np.float16).reshape(-1, CHANNELS)
    right = np.zeros_like(found)
    for row, at in zip(right, pixels, strict=True):
        if all(0 <= place < size for place, size in zip(at, case.shape, strict=True)):
            row[:] = tensor[at]
    return found, right


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_columns_along_w(case: Column, engine: str) -> None:
    found, right = copy(wl.Device("b200", engine=engine), case)
    assert right.any()
    np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_halo_beyond_the_bounding_box_is_a_fault(engine: str) -> None:
    gpu = wl.Device("b200", engine=engine)
    with pytest.raises(wl.MemoryFault, match=r"extends beyond the bounding box.*\n[^\n]*\n.*wHalo"):
        copy(gpu, replace(CASES[6], pixels=31))


def test_operands_and_maps_that_do_not_fit() -> None:
    gpu = wl.Device("b200")
    with pytest.raises(wl.MemoryFault, match="wOffset of 32"):
        copy(gpu, Column(offset=32))
    with pytest.raises(wl.WarploomError, match="do not support swizzle none"):
        gpu.im2col_map(gpu.zeros((2, 2, 4, 16), np.float16), (0,), (0,), 16, 8, mode="im2col::w")
    with pytest.raises(wl.WarploomError, match="do not support interleaving"):
        gpu.im2col_map(
            gpu.zeros((2, 2, 4, 16), np.float16), (0,), (0,), 16, 8,
            mode="im2col::w", interleave="32B", swizzle="32B",
        )  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_interleaved_tensors_of_several_slices_are_a_fault(engine: str) -> None:
    """Channels of one slice, 32 bytes, are where they would be without an interleave."""
    gpu = wl.Device("b200", engine=engine)
    text = KERNEL.replace("MODE", "tile").replace(", {%o0, %o1}", "").replace("ROOM", str(CAPACITY))
    kernel = gpu.compile(text, "ptx")["k"]

    def box(channels: int) -> list[int]:
        tensor = np.arange(2 * 4 * channels, dtype=np.float16).reshape(1, 2, 4, channels)
        buffer, out = gpu.to_device(tensor), gpu.zeros(CAPACITY // 2, np.float16)
        made = gpu.tensor_map(buffer, (1, 1, 1, 16), interleave="32B", swizzle="32B")
        kernel[1, 32](made, out, 32, 0, 2, 1, 0, 0, 0)
        return out.copy_to_host()[:16].tolist()

    assert box(16) == list(range(6 * 16, 7 * 16))
    with pytest.raises(wl.MemoryFault, match="several channel slices"):
        box(32)
