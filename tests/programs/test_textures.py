"""Textures through CUDA C++ on both engines, against the formulas of the programming guide.

`guide` states them once more, in NumPy and in the guide's own terms: CUDA C++ Programming Guide,
"Texture Fetching". Tables that follow from them by hand are in tests/texture.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")
Values = npt.NDArray[Any]

SOURCE = """
typedef cudaTextureObject_t T;
#define KERNEL(name, fetch) \\
extern "C" __global__ void name(T t, const float4* at, float4* out, int n) { \\
    int i = blockIdx.x * blockDim.x + threadIdx.x; \\
    if (i < n) { float4 p = at[i]; out[i] = fetch; } \\
}
KERNEL(one, tex1D<float4>(t, p.x))
KERNEL(two, tex2D<float4>(t, p.x, p.y))
KERNEL(three, tex3D<float4>(t, p.x, p.y, p.z))
KERNEL(one_layer, tex1DLayered<float4>(t, p.x, (int)p.w))
KERNEL(two_layers, tex2DLayered<float4>(t, p.x, p.y, (int)p.w))
KERNEL(cube, texCubemap<float4>(t, p.x, p.y, p.z))
KERNEL(cubes, texCubemapLayered<float4>(t, p.x, p.y, p.z, (int)p.w))
KERNEL(level, tex2DLod<float4>(t, p.x, p.y, p.w))
KERNEL(gradient, tex2DGrad<float4>(t, p.x, p.y, make_float2(p.z, 0), make_float2(0, p.w)))
KERNEL(gather, tex2Dgather<float4>(t, p.x, p.y, 0))
KERNEL(place, tex1Dfetch<float4>(t, (int)p.x))
extern "C" __global__ void bytes(T t, const float4* at, int4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    char4 c = tex2D<char4>(t, at[i].x, at[i].y);
    out[i] = make_int4(c.x, c.y, c.z, c.w);
}
"""


@pytest.fixture(scope="module", params=ENGINES)
def module(request: pytest.FixtureRequest) -> tuple[wl.Device, Any]:
    gpu = wl.Device("h100", engine=request.param)
    return gpu, gpu.compile(SOURCE)


def run(module: tuple[wl.Device, Any], name: str, texture: Any, at: Values) -> Values:
    """What a kernel fetched at (n, 4) coordinates."""
    gpu, kernels = module
    given = np.ascontiguousarray(at, np.float32)
    out = gpu.zeros((len(at), 4), np.int32 if name == "bytes" else np.float32)
    kernels[name][-(-len(at) // 64), 64](texture, gpu.to_device(given), out, len(at))
    return out.copy_to_host()


def guide(
    texels: Values, at: Values, modes: tuple[str, ...], *, linear: bool, normalized: bool
) -> Values:
    """tex(x, y, z) for texels of shape (depth, height, width), or fewer axes; (n, axes) in x, y, z.

    Addressing comes first, then N times a normalized coordinate, then the table or the mixture.
    """
    sizes = texels.shape[::-1]
    columns = []
    for n, mode, x in zip(sizes, modes, at.T.astype(np.float64), strict=True):
        unit = x if normalized else x / n
        if mode == "wrap":
            x = (unit - np.floor(unit)) * n
        elif mode == "mirror":
            whole = np.floor(unit)
            x = np.where(whole % 2 == 0, unit - whole, 1 - (unit - whole)) * n
        else:
            x = x * n if normalized else x
        if not linear:
            columns.append([(np.floor(x), np.ones(len(x)))])
            continue
        left = np.floor(x - 0.5)
        weight = np.floor((x - 0.5 - left) * 256 + 0.5) / 256
        columns.append([(left, 1 - weight), (left + 1, weight)])
    total = np.zeros(len(at))
    for corner in product(*columns):
        weight, value = np.ones(len(at)), np.zeros(len(at))
        inside, index = np.ones(len(at), bool), []
        for (i, share), n, mode in zip(corner, sizes, modes, strict=True):
            weight = weight * share
            if mode == "border":
                inside &= (i >= 0) & (i < n)
            i = i % n if mode == "wrap" else np.clip(i, 0, n - 1)
            index.append(i.astype(int))
        value = np.where(inside, texels[tuple(reversed(index))], 0)
        total += weight * np.where(weight == 0, 0, value)
    return total.astype(np.float32)


def coordinates(axes: int, sizes: tuple[int, ...], *, normalized: bool) -> Values:
    """Inside and around, between texels and just on them."""
    rng = np.random.default_rng(7)
    at = np.zeros((256, 4), np.float32)
    for axis in range(axes):
        n = sizes[::-1][axis]
        at[:, axis] = rng.uniform(-1.5 * n, 2.5 * n, len(at))
        at[:64, axis] = rng.integers(-2 * n, 3 * n, 64) / 2
        if normalized:
            at[:, axis] /= n
    return at


SETTINGS = [
    *(((mode,) * 3, False) for mode in ("clamp", "border")),
    *(((mode,) * 3, True) for mode in ("clamp", "border", "wrap", "mirror")),
    (("wrap", "clamp", "mirror"), True),
]
NAMES = ("one", "two", "three")


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_formulas(module: tuple[wl.Device, Any], axes: int, linear: bool) -> None:
    sizes = (4, 8, 16)[3 - axes :]  # powers of two: dividing by them does not round
    texels = np.random.default_rng(axes).standard_normal(sizes).astype(np.float32)
    for modes, normalized in SETTINGS:
        at = coordinates(axes, sizes, normalized=normalized)
        texture = module[0].texture(
            texels,
            address=modes,
            filter="linear" if linear else "point",
            normalized=normalized,
        )
        got = run(module, NAMES[axes - 1], texture, at)[:, 0]
        expected = guide(texels, at[:, :axes], modes[:axes], linear=linear, normalized=normalized)
        np.testing.assert_array_equal(got, expected, str((modes, normalized)))


def test_channels_and_normalized_reads(module: tuple[wl.Device, Any]) -> None:
    gpu = module[0]
    middle = np.array([[0.5, 0.5, 0, 0], [1.5, 0.5, 0, 0]], np.float32)
    unsigned = np.array([[[0, 51, 255, 102], [255, 0, 0, 0]]], np.uint8)
    texture = gpu.texture(unsigned, channels=4, read="normalized", filter="linear")
    got = run(module, "two", texture, middle)
    np.testing.assert_array_equal(got[0], np.array([0, 0.2, 1, 0.4], np.float32))
    between = run(module, "two", texture, np.array([[1.0, 0.5, 0, 0]]))
    np.testing.assert_array_equal(between[0], np.array([0.5, 0.1, 0.5, 0.2], np.float32))
    signed = np.array([[[-128, -127], [127, 0]]], np.int8)
    got = run(module, "two", gpu.texture(signed, channels=2, read="normalized"), middle)
    np.testing.assert_array_equal(got, [[-1, -1, 0, 1], [1, 0, 0, 1]])
    halves = np.array([[0.5, 65504.0]], np.float16)
    got = run(module, "two", gpu.texture(halves), middle)
    np.testing.assert_array_equal(got[:, 0], [0.5, 65504.0])
    whole = np.array([[[-128, 5, 6, 7], [127, 1, 2, 3]]], np.int8)
    got = run(module, "bytes", gpu.texture(whole, channels=4), middle)
    np.testing.assert_array_equal(got, whole[0])


def test_layers_are_chosen_and_clamped(module: tuple[wl.Device, Any]) -> None:
    lines = np.array([[10, 11], [20, 21], [30, 31]], np.float32)
    at = np.array([[1.5, 0, 0, 0], [0.5, 0, 0, 2], [1.5, 0, 0, 9]])
    got = run(module, "one_layer", module[0].texture(lines, layers=True), at)[:, 0]
    np.testing.assert_array_equal(got, [11, 30, 31])
    images = np.arange(2 * 2 * 3, dtype=np.float32).reshape(2, 2, 3)
    at = np.array([[2.5, 1.5, 0, 1], [0.5, 1.5, 0, 0]])
    got = run(module, "two_layers", module[0].texture(images, layers=True), at)[:, 0]
    np.testing.assert_array_equal(got, [images[1, 1, 2], images[0, 1, 0]])


DIRECTIONS = np.eye(3)[[0, 0, 1, 1, 2, 2]] * np.array([1, -1] * 3)[:, None]


def test_faces_of_cubes(module: tuple[wl.Device, Any]) -> None:
    """Along an axis a fetch meets the middle of its face; +x, -x, +y, -y, +z, -z are 0 to 5."""
    gpu = module[0]
    faces = np.arange(6, dtype=np.float32)[:, None, None] + np.zeros((6, 2, 2), np.float32)
    at = np.concatenate([DIRECTIONS, np.zeros((6, 1))], axis=1)
    got = run(module, "cube", gpu.texture(faces, cube=True), at)[:, 0]
    np.testing.assert_array_equal(got, np.arange(6))
    several = np.concatenate([faces, faces + 10])
    at[:, 3] = 1
    got = run(module, "cubes", gpu.texture(several, cube=True, layers=True), at)[:, 0]
    np.testing.assert_array_equal(got, np.arange(6) + 10)
    # On +x, s = -z and t = -y (guide, "Cubemap Textures"): z < 0 is right, y > 0 is above.
    faces[0] = [[1, 2], [3, 4]]
    at = np.array([[1, 0.5, 0.5, 0], [1, 0.5, -0.5, 0], [1, -0.5, 0.5, 0], [1, -0.5, -0.5, 0]])
    got = run(module, "cube", gpu.texture(faces, cube=True), at)[:, 0]
    np.testing.assert_array_equal(got, [1, 2, 3, 4])


def test_levels_of_detail(module: tuple[wl.Device, Any]) -> None:
    """Levels of 8, 4, 2 and 1 texels a side that hold 0, 10, 20 and 30."""
    levels = [np.full((8 >> n, 8 >> n), 10 * n, np.float32) for n in range(4)]
    smooth, stepped = (
        module[0].texture(levels[0], mipmaps=levels[1:], normalized=True, mipmap_filter=how)
        for how in ("linear", "point")
    )
    at = np.full((6, 4), 0.5)
    at[:, 3] = [-1, 0, 0.25, 0.5, 1.75, 9]
    got = run(module, "level", smooth, at)[:, 0]
    np.testing.assert_array_equal(got, [0, 0, 2.5, 5, 17.5, 30])
    got = run(module, "level", stepped, at)[:, 0]
    np.testing.assert_array_equal(got, [0, 0, 0, 10, 20, 30])
    # A step of 1/8 is one texel of level 0, of 4/8 one of level 2; the longer one counts.
    at[:3, 2:] = [[1 / 8, 1 / 8], [4 / 8, 0], [1 / 8, 2 / 8]]
    got = run(module, "gradient", smooth, at[:3])[:, 0]
    np.testing.assert_array_equal(got, [0, 20, 10])


def test_gathers_go_round_the_point(module: tuple[wl.Device, Any]) -> None:
    """Between four texels: below left, below right, above right, above left (PTX ISA, tld4)."""
    texture = module[0].texture(np.array([[1, 2], [3, 4]], np.float32))
    got = run(module, "gather", texture, np.array([[1.0, 1.0, 0, 0]]))[0]
    np.testing.assert_array_equal(got, [3, 4, 2, 1])


def test_places_outside_read_zero(module: tuple[wl.Device, Any]) -> None:
    """tex1Dfetch has neither filtering nor address modes."""
    texture = module[0].texture(np.array([5, 6, 7], np.float32), filter="linear")
    at = np.array([[-1, 0, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]])
    got = run(module, "place", texture, at)[:, 0]
    np.testing.assert_array_equal(got, [0, 5, 7, 0])


@pytest.mark.parametrize("engine", ENGINES)
def test_counters(engine: str) -> None:
    """32 lanes in a row of 32 floats: 4 sectors of one line. Between two rows: 8 of two lines, and
    every lane mixes texels of both."""
    gpu = wl.Device("h100", engine=engine, caches=True)
    texels = np.zeros((2, 32), np.float32)
    at = np.zeros((32, 4), np.float32)
    at[:, 0] = np.arange(32) + 0.5
    source = gpu.to_device(at)
    for y, sectors in ((0.5, 4), (1.0, 8)):
        at[:, 1] = y
        source = gpu.to_device(at)
        texture = gpu.texture(texels, filter="linear")
        out = gpu.zeros((32, 4), np.float32)
        counters = gpu.compile(SOURCE)["two"][1, 32](texture, source, out, 32).counters
        assert counters.texture_load_requests == 1
        assert counters.texture_load_sectors == counters.texture_load_transactions == sectors
        assert counters.texture_load_lines == sectors // 4
        assert counters.texture_load_bytes_requested == 32 * 4
        assert counters.texture_load_bytes_moved == 32 * sectors
        assert counters.texture_load_l1_misses == counters.texture_load_l2_misses == sectors


@pytest.mark.parametrize("name", ["h100", "k40"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_fetched_is_in_the_cache(engine: str, name: str) -> None:
    """Twice the same 4 sectors: then they are in L1, or in a texture cache of its own."""
    source = """extern "C" __global__ void k(cudaTextureObject_t t, float* out) {
        float first = tex2D<float>(t, threadIdx.x, 0.5f);
        __syncthreads();
        out[threadIdx.x] = first + tex2D<float>(t, threadIdx.x, 0.25f);
    }"""
    gpu = wl.Device(name, engine=engine, caches=True)
    texture = gpu.texture(np.ones((1, 32), np.float32))
    counters = gpu.compile(source)["k"][1, 32](texture, gpu.zeros(32, np.float32)).counters
    assert (counters.texture_load_l1_hits, counters.texture_load_l1_misses) == (4, 4)
    assert (counters.texture_load_l2_hits, counters.texture_load_l2_misses) == (0, 4)
