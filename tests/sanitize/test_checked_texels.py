"""Textures and surfaces under the race detector. Each kernel has a wrong and a right twin.

What a launch has written is not to be read as a texel by the same launch, however it is ordered:
CUDA C++ Programming Guide, "Texture and Surface Memory", "Read/Write Coherency".
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import warploom as wl

SOURCE = r"""
#define KERNEL(name) extern "C" __global__ void name(cudaTextureObject_t t, cudaSurfaceObject_t s, \
    float *out)
#define I int i = threadIdx.x; float v = i;
KERNEL(two_lanes_store_fail) { I surf1Dwrite(v, s, 4 * (i / 2)); }  // race
KERNEL(two_lanes_store_pass) { I surf1Dwrite(v, s, 4 * i); }
KERNEL(same_value_fail) { I surf1Dwrite(7.0f, s, 4 * (i / 2)); }  // same-value
KERNEL(same_value_pass) { I surf1Dwrite(7.0f, s, 4 * i); }
KERNEL(read_of_another_fail) {
  I surf1Dread(&v, s, 4 * (63 - i));  // race
  surf1Dwrite(v + 1, s, 4 * i);  // race
}
KERNEL(read_of_another_pass) {
  I surf1Dread(&v, s, 4 * i);
  surf1Dwrite(v + 1, s, 4 * i);
}
KERNEL(surface_read_back_fail) {
  I surf1Dwrite(v, s, 4 * i);  // stale
  __syncthreads();
  surf1Dread(&v, s, 4 * (63 - i));  // stale
  out[i] = v;
}
KERNEL(surface_read_back_pass) {
  I surf1Dread(&v, s, 4 * (63 - i));
  __syncthreads();
  surf1Dwrite(v, s, 4 * i);
}
KERNEL(texture_of_stores_fail) {
  I surf1Dwrite(v, s, 4 * i);  // stale
  __syncthreads();
  out[i] = tex1Dfetch<float>(t, 63 - i);  // stale
}
KERNEL(texture_of_stores_pass) {
  I out[i] = v;
  __syncthreads();
  out[i] = out[i] + tex1Dfetch<float>(t, 63 - i);
}
KERNEL(texture_before_the_stores_fail) {
  I v = tex1Dfetch<float>(t, 63 - i);  // race
  surf1Dwrite(v, s, 4 * i);  // race
}
KERNEL(texture_before_the_stores_pass) {
  I v = tex1Dfetch<float>(t, 63 - i);
  __syncthreads();
  surf1Dwrite(v, s, 4 * i);
}
KERNEL(neighbors_of_stores_pass) {
  I if (i % 2) surf1Dwrite(v, s, 4 * i);
  else out[i] = tex1Dfetch<float>(t, i);
}
"""
NAMES = sorted({line[7:].split(")")[0] for line in SOURCE.splitlines() if line[:7] == "KERNEL("})


@cache
def loaded(engine: str) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device(engine=engine)
    return gpu, gpu.compile(SOURCE)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("name", NAMES)
def test_texels(name: str, engine: str) -> None:
    gpu, module = loaded(engine)
    lines = SOURCE.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"KERNEL({name})"))
    ends = (
        n for n, line in enumerate(lines[start:], start) if line.endswith("}") or "}  //" in line
    )
    marked = {n + 1 for n in range(start, next(ends) + 1) if "// " in lines[n]}
    kinds = {lines[n - 1].rpartition("// ")[2] for n in marked}
    surface = gpu.surface(np.zeros(64, np.float32))
    given = gpu.texture(surface), surface, gpu.zeros(64, np.float32, "out")
    found = module[name][1, 64](*given, sanitize=("mem", "race", "init", "sync")).findings
    shown = "\n".join(map(str, found))
    assert {one.kind for one in found} == kinds, shown
    places = {int(p.rpartition(":")[2]) for one in found for p in (one.line, one.other_line)}
    assert places == marked, shown


GATHERS = r"""
#define KERNEL(name) extern "C" __global__ void name(cudaTextureObject_t t, cudaSurfaceObject_t s, \
    float *out)
KERNEL(wrong) {
  int i = threadIdx.x;
  surf2Dwrite((float)i, s, 4 * (i % 8), i / 8);
  __syncthreads();
  out[i] = tex2Dgather<float4>(t, 3.0f, 3.0f).x;
}
KERNEL(right) {
  int i = threadIdx.x;
  out[i] = tex2Dgather<float4>(t, 3.0f, 3.0f).x;
  __syncthreads();
  surf2Dwrite((float)i, s, 4 * (i % 8), i / 8);
}
"""
"""`tld4` reads four texels, which are as stale as those of `tex` are."""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_gathered_texels(engine: str) -> None:
    gpu = wl.Device(engine=engine)
    module = gpu.compile(GATHERS)
    kinds: dict[str, set[str]] = {}
    for name in ("wrong", "right"):
        surface = gpu.surface(np.zeros((8, 8), np.float32))
        given = gpu.texture(surface), surface, gpu.zeros(64, np.float32, "out")
        found = module[name][1, 64](*given, sanitize=("race",)).findings
        kinds[name] = {one.kind for one in found}
    assert kinds == {"wrong": {"stale"}, "right": set()}
