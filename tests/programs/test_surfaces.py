"""Surfaces on both engines: CUDA C++ through NVRTC, and what only PTX can write.

Source: CUDA C++ Programming Guide, "Surface Memory"; PTX ISA, "Surface Instructions".
"""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")

SOURCE = """
typedef cudaSurfaceObject_t S;
extern "C" __global__ void invert(S in, S out, int w, int h) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x >= w || y >= h) return;
    uchar4 c = surf2Dread<uchar4>(in, 4 * x, y);
    surf2Dwrite(make_uchar4(255 - c.x, 255 - c.y, 255 - c.z, c.w), out, 4 * x, y);
}
extern "C" __global__ void edges(S s, float* out) {
    out[0] = surf2Dread<float>(s, -4, 1, cudaBoundaryModeZero);
    out[1] = surf2Dread<float>(s, -4, 1, cudaBoundaryModeClamp);
    out[2] = surf2Dread<float>(s, 4 * 99, 99, cudaBoundaryModeClamp);
    out[3] = surf2Dread<float>(s, 4, 0);
    surf2Dwrite(7.0f, s, 4 * 99, 0, cudaBoundaryModeZero);
    surf2Dwrite(8.0f, s, 4 * 99, 0, cudaBoundaryModeClamp);
}
extern "C" __global__ void shapes(S line, S box, S lines, S images, S cube, float* out) {
    int i = threadIdx.x;
    out[i] = surf1Dread<float>(line, 4 * i) + surf3Dread<float>(box, 4 * i, 1, 1)
        + surf1DLayeredread<float>(lines, 4 * i, 1) + surf2DLayeredread<float>(images, 4 * i, 1, 2);
    surfCubemapwrite(1.0f + i, cube, 4 * i, 1, 5);
}
extern "C" __global__ void outside(S s, int x) { surf2Dwrite(1.0f, s, x, threadIdx.x); }
"""


@pytest.fixture(params=ENGINES)
def gpu(request: pytest.FixtureRequest) -> wl.Device:
    return wl.Device("h100", engine=request.param)


def test_reads_and_writes(gpu: wl.Device) -> None:
    image = np.random.default_rng(3).integers(0, 256, (5, 9, 4), np.uint8)
    source, target = gpu.surface(image, channels=4), gpu.surface(np.zeros_like(image), channels=4)
    counters = gpu.compile(SOURCE)["invert"][5, 32](source, target, 9, 5).counters
    expected = np.concatenate([255 - image[..., :3], image[..., 3:]], axis=2)
    np.testing.assert_array_equal(target.copy_to_host(), expected)
    # Rows are 36 bytes, one after the other: bytes 0-35, 36-71, 72-107, 108-143, 144-179 are in
    # sectors 0-1, 1-2, 2-3, 3-4, 4-5.
    for op in ("load", "store"):
        assert counters[f"surface_{op}_requests"] == 5
        assert counters[f"surface_{op}_sectors"] == 10
        assert counters[f"surface_{op}_bytes_requested"] == 5 * 36
    fetch = 'extern "C" __global__ void k(cudaTextureObject_t t, float* o)'
    fetch += "{ o[threadIdx.x] = tex2D<uchar4>(t, threadIdx.x, 4).y; }"
    out = gpu.zeros(9, np.float32)
    gpu.compile(fetch)["k"][1, 9](gpu.texture(target), out)  # what was written, as a texture
    np.testing.assert_array_equal(out.copy_to_host(), expected[4, :, 1])


def test_boundary_modes(gpu: wl.Device) -> None:
    surface, out = gpu.surface(np.array([[1, 2, 3], [4, 5, 6]], np.float32)), gpu.zeros(4, "f4")
    gpu.compile(SOURCE)["edges"][1, 1](surface, out)
    np.testing.assert_array_equal(out.copy_to_host(), [0, 4, 6, 2])
    np.testing.assert_array_equal(surface.copy_to_host(), [[1, 2, 8], [4, 5, 6]])


def test_every_shape(gpu: wl.Device) -> None:
    line, box = np.arange(4, dtype="f4"), np.arange(16, dtype="f4").reshape(2, 2, 4) * 10
    lines = np.arange(8, dtype="f4").reshape(2, 4) * 1000
    images = np.arange(24, dtype="f4").reshape(3, 2, 4) * 10000
    cube, out = gpu.surface(np.zeros((6, 4, 4), "f4"), cube=True), gpu.zeros(4, "f4")
    given = [gpu.surface(line), gpu.surface(box)]
    given += [gpu.surface(lines, layers=True), gpu.surface(images, layers=True)]
    gpu.compile(SOURCE)["shapes"][1, 4](*given, cube, out)
    np.testing.assert_array_equal(out.copy_to_host(), line + box[1, 1] + lines[1] + images[2, 1])
    expected = np.zeros((6, 4, 4), "f4")
    expected[5, 1] = [1, 2, 3, 4]
    np.testing.assert_array_equal(cube.copy_to_host(), expected)


def test_faults_name_the_line_and_the_place(gpu: wl.Device) -> None:
    kernel = gpu.compile(SOURCE)["outside"]
    surface = gpu.surface(np.zeros((2, 3), np.float32))
    with pytest.raises(wl.MemoryFault, match=r"x = 12 bytes, y = 0 is outside") as fault:
        kernel[1, 1](surface, 12)
    assert fault.value.kind == "outside surface"
    line = SOURCE[: SOURCE.index("void outside")].count("\n") + 1
    assert fault.value.line.endswith(f"kernel.cu:{line}")  # the call, not the compiler's header
    with pytest.raises(wl.MemoryFault, match=r"y = 2 is outside") as fault:
        kernel[1, 3](surface, 0)
    assert fault.value.thread == (2, 0, 0)
    assert not surface.copy_to_host().any()  # nobody wrote, for one lane could not
    with pytest.raises(wl.MemoryFault, match="Misaligned __surface__ access: x = 2 bytes"):
        kernel[1, 1](surface, 2)
    with pytest.raises(wl.MemoryFault, match="cannot access a 1d surface"):
        kernel[1, 1](gpu.surface(np.zeros(9, np.float32)), 0)
    with pytest.raises(wl.MemoryFault, match="cannot access a 2d texture"):
        kernel[1, 1](gpu.texture(np.zeros((2, 2), np.float32)), 0)
    with pytest.raises(wl.MemoryFault, match="0x0 is not a surface"):
        kernel[1, 1](0, 0)
    handle = surface.handle
    surface.free()
    with pytest.raises(wl.MemoryFault, match="is not a surface") as fault:
        kernel[1, 1](handle, 0)
    assert fault.value.kind == "bad handle"
    with pytest.raises(wl.MemoryFault, match="is not a surface"):
        kernel[1, 1](gpu.zeros(4, np.float32), 0)  # a buffer is none


PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry formatted(.param .u64 s)
{
    .reg .b64 %s; .reg .b32 %x, %v<4>;
    ld.param.u64 %s, [s];
    mov.u32 %x, %tid.x;
    mov.b32 %v0, VALUE0; mov.b32 %v1, VALUE1; mov.b32 %v2, VALUE0; mov.b32 %v3, VALUE1;
    sust.p.1d.v4.b32.trap [%s, {%x}], {%v0, %v1, %v2, %v3};
    ret;
}
.visible .entry reduced(.param .u64 s, .param .u64 t)
{
    .reg .b64 %s, %t, %w; .reg .b32 %x, %y, %v;
    ld.param.u64 %s, [s]; ld.param.u64 %t, [t];
    mov.u32 %v, %tid.x;
    and.b32 %x, %v, 1; shl.b32 %y, %x, 2;
    sured.b.add.1d.u32.trap [%s, {%y}], %v;
    add.u32 %x, %x, 2;
    sured.p.max.1d.b32.trap [%s, {%x}], %v;
    neg.s32 %v, %v;
    sured.b.min.1d.s32.clamp [%s, {16}], %v;
    sured.b.or.1d.b32.zero [%s, {400}], %v;
    cvt.s64.s32 %w, %v;
    sured.b.min.1d.s64.trap [%t, {0}], %w;
    sured.b.max.1d.u64.trap [%t, {8}], %w;
    sured.b.and.1d.b32.trap [%t, {16}], %v;
    ret;
}
"""


@pytest.mark.parametrize(
    ("dtype", "value", "stored"),
    [("u1", "300", 255), ("i1", "-300", -128), ("u2", "70000", 65535), ("i2", "70000", 32767),
     ("f2", "0f3FC00000", 1.5), ("f4", "0f3FC00000", 1.5), ("u4", "70000", 70000)],
)  # fmt: skip
def test_texels_are_stored_in_their_format(
    gpu: wl.Device, dtype: str, value: str, stored: float
) -> None:
    """What is too large for a component is clamped; a second value is 1."""
    one = "0f3F800000" if dtype[0] == "f" else "1"
    text = PTX.replace("VALUE0", value).replace("VALUE1", one)
    surface = gpu.surface(np.zeros((8, 2), dtype), channels=2)
    gpu.compile(text, "ptx")["formatted"][1, 8](surface)
    np.testing.assert_array_equal(surface.copy_to_host(), [[stored, 1]] * 8)


def test_reductions(gpu: wl.Device) -> None:
    """Threads 0 to 31: even ones sum to 240, odd ones to 256; the greatest are 30 and 31."""
    text = PTX.replace("VALUE0", "0").replace("VALUE1", "0")
    words = gpu.surface(np.zeros(5, np.int32))
    wide = np.array([0, 0, (1 << 33) - 1], np.uint64).view(np.uint32)
    other = gpu.surface(wide)
    counters = gpu.compile(text, "ptx")["reduced"][1, 32](words, other).counters
    np.testing.assert_array_equal(words.copy_to_host(), [240, 256, 30, 31, -31])
    found = other.copy_to_host().view(np.uint64)
    # min of 0, -1, ... -31; the greatest of 0 and of -1 read as unsigned; all bits that every
    # negated number has, of which 0 has none.
    assert found[0] == np.uint64((1 << 64) - 31)
    assert found[1] == np.uint64((1 << 64) - 1)
    assert found[2] == np.uint64(1 << 32)
    assert counters.surface_atomic_requests == 7
    assert counters.atomic_requests == 7
