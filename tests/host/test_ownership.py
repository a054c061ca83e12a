"""Objects of another device, wrong keys, and read-only arrays: each is refused with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warploom as wl

KERNELS = """
extern "C" __global__ void add(float *x) { x[threadIdx.x] += 1; }
extern "C" __global__ void copy(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void fetch(cudaTextureObject_t t, float *y) {
    y[threadIdx.x] = tex1D<float>(t, threadIdx.x);
}
"""
BOUND = """.version 8.0
.target sm_90
.address_size 64
.global .texref image;
.visible .entry e() { ret; }
"""
LINE = np.zeros(4, np.float32)
SQUARE = np.zeros((16, 16), np.float32)


@pytest.fixture(scope="module")
def gpu() -> wl.Device:
    return wl.Device("h100")


@pytest.fixture(scope="module")
def module(gpu: wl.Device) -> wl.Module:
    return gpu.compile(KERNELS)


USES: dict[str, Callable[[wl.Device, wl.Module, wl.Device], Any]] = {
    "stream": lambda gpu, m, other: m["add"][1, 4, other.stream()](gpu.to_device(LINE)),
    "buffer": lambda gpu, m, other: m["add"][1, 4](other.to_device(LINE)),
    "texture": lambda gpu, m, other: m["fetch"][1, 4](other.texture(LINE), LINE),
    "surface": lambda gpu, m, other: gpu.texture(other.surface(LINE)),
    "bind": lambda gpu, m, other: gpu.compile(BOUND, "ptx").bind("image", other.texture(LINE)),
    "tensor map": lambda gpu, m, other: gpu.tensor_map(other.to_device(SQUARE), (16, 16)),
    "explore": lambda gpu, m, other: wl.explore(m["add"][1, 4], other.to_device(LINE)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_objects_of_another_device_are_refused(
    use: Callable[[wl.Device, wl.Module, wl.Device], Any], gpu: wl.Device, module: wl.Module
) -> None:
    with pytest.raises(wl.LaunchError, match="belongs to another device; create it on this device"):
        use(gpu, module, wl.Device("h100"))


def test_contents_of_another_device_can_be_copied(gpu: wl.Device) -> None:
    there: Any = wl.Device("h100").to_device(np.arange(4))
    assert gpu.to_device(there).copy_to_host().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("key", [3, None, b"add", slice(0, 1), ("add",), []])
def test_a_module_has_kernels_by_name_alone(key: Any, module: wl.Module) -> None:
    with pytest.raises(TypeError, match=r"takes the name of a kernel, not .*add, copy, fetch"):
        module[key]


def test_other_wrong_keys(gpu: wl.Device, module: wl.Module) -> None:
    run = module["add"][1, 4](gpu.to_device(LINE))
    with pytest.raises(
        KeyError, match="there is no counter 'nope'; the counters are warp_instructions"
    ):
        run.counters["nope"]
    wrong: Any = 3
    with pytest.raises(TypeError, match="name takes a string, not 3"):
        run.metric(wrong)
    with pytest.raises(TypeError, match="handle takes a Handle, not 3"):
        module.bind("image", wrong)
    with pytest.raises(TypeError, match="launcher takes a Launcher, not 3"):
        wl.debugger(wrong)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_results_for_a_read_only_array_are_an_error(engine: str) -> None:
    module = wl.Device("h100", engine=engine).compile(KERNELS)
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    with pytest.raises(wl.MemoryFault, match=r"inside x \(argument 0 of add\).*\n.*x\.copy\(\)"):
        module["add"][1, 4](x)
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_read_only_array_can_be_read(engine: str) -> None:
    module = wl.Device("h100", engine=engine).compile(KERNELS)
    y = np.zeros(4, np.float32)
    module["copy"][1, 4](np.broadcast_to(np.float32(3), 4), y)
    assert y.tolist() == [3, 3, 3, 3]
