"""Arrays in the byte order of another machine: kernels read their values, results come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.host.values import BufferArgument, parse_arguments
from warploom.observe.observer import observer

ADD = """
struct Pair { float x; int n; };
extern "C" __global__ void add(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
extern "C" __global__ void pairs(Pair *p) { p[threadIdx.x].x += p[threadIdx.x].n; }
extern "C" __global__ void by_value(Pair p, float *y) { *y = p.x + p.n; }
extern "C" __global__ void fetch(cudaTextureObject_t t, float *y) {
    y[threadIdx.x] = tex1D<float>(t, threadIdx.x);
}
"""
COUNT = np.arange(4, dtype=">f4")
PAIR = np.dtype([("x", ">f4"), ("n", ">i4")])


@pytest.fixture(scope="module", params=["compiled", "reference"])
def gpu(request: pytest.FixtureRequest) -> wl.Device:
    return wl.Device("h100", engine=request.param)


@pytest.fixture(scope="module")
def module(gpu: wl.Device) -> wl.Module:
    return gpu.compile(ADD)


def test_host_arrays_are_converted_there_and_back(module: wl.Module) -> None:
    y = np.zeros(4, ">f4")
    module["add"][1, 4](COUNT, y)
    assert y.tolist() == [1, 2, 3, 4]
    assert y.dtype == ">f4"


def test_buffers_have_the_order_of_the_device(gpu: wl.Device, module: wl.Module) -> None:
    x, y = gpu.to_device(COUNT), gpu.zeros(4, np.dtype(">f4"))
    module["add"][1, 4](x, y)
    assert x.dtype == y.dtype == np.float32
    assert y.copy_to_host().tolist() == [1, 2, 3, 4]


def test_fields_of_structures_are_converted(module: wl.Module) -> None:
    pairs, y = np.array([(1.5, 2), (2.5, 3)], PAIR), np.zeros(1, np.float32)
    module["by_value"][1, 1](pairs[1], y)
    assert y.tolist() == [5.5]
    module["pairs"][1, 2](pairs)
    assert pairs["x"].tolist() == [3.5, 5.5]


def test_texels_are_converted(gpu: wl.Device, module: wl.Module) -> None:
    y = np.zeros(4, np.float32)
    module["fetch"][1, 4](gpu.texture(COUNT), y)
    assert y.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["{file}", "x:f32[4]={file}"])
def test_files_are_converted(text: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", COUNT)
    [argument] = parse_arguments([text.format(file=tmp_path / "x.npy")])
    assert isinstance(argument, BufferArgument)
    assert argument.content.dtype == np.float32
    assert argument.content.tolist() == [0, 1, 2, 3]


def test_the_state_of_an_observer_is_refused() -> None:
    @observer
    class Blocks:
        @staticmethod
        def on_block_begin(block: Any, state: Any) -> None:
            state[0] += 1

    with pytest.raises(TypeError, match=r"in native byte order.*Got ndarray of >f4"):
        Blocks(np.zeros(1, ">f4"))
