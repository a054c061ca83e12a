"""`from warploom import cuda`: Numba's own programs with one import changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import warploom as wl

pytest.importorskip("numba_cuda")

from warploom import cuda
from warploom.cuda.random import (
    create_xoroshiro128p_states,
    xoroshiro128p_uniform_float32,
)


def test_the_saxpy_of_any_tutorial() -> None:
    @cuda.jit
    def saxpy(a: Any, x: Any, y: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a * x[i] + y[i]

    x, y = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    dx, dy = cuda.to_device(x), cuda.to_device(y)
    out = cuda.device_array_like(dx)
    saxpy[8, 128](np.float32(2.0), dx, dy, out)
    assert str(out.copy_to_host()[:5]) == "[2. 2. 2. 2. 2.]"


def test_host_arrays_come_back_and_read_only_ones_stay() -> None:
    @cuda.jit
    def double(x: Any, y: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            y[i] = 2 * x[i]

    x, y = np.arange(10.0), np.zeros(10)
    x.flags.writeable = False
    double[1, 32](x, y)
    np.testing.assert_array_equal(y, 2 * np.arange(10.0))


def test_out_arrays_are_not_copied_in() -> None:
    @cuda.jit
    def increment(x: Any) -> None:
        x[cuda.grid(1)] += 1

    given, taken = np.full(32, 5), np.full(32, 5)
    increment[1, 32](cuda.In(given))
    increment[1, 32](cuda.Out(taken))
    assert given[0] == 5
    assert taken[0] == 1  # new device memory is zero


def test_a_matrix_product_with_shared_tiles() -> None:
    tile = 8

    @cuda.jit
    def product(a: Any, b: Any, c: Any) -> None:
        left = cuda.shared.array((tile, tile), np.float32)
        right = cuda.shared.array((tile, tile), np.float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = np.float32(0)
        for step in range(cuda.gridDim.x):
            left[ty, tx] = a[y, tx + step * tile]
            right[ty, tx] = b[ty + step * tile, x]
            cuda.syncthreads()
            for k in range(tile):
                total += left[ty, k] * right[k, tx]
            cuda.syncthreads()
        c[y, x] = total

    rng = np.random.default_rng(1)
    a = rng.integers(-4, 4, (16, 16)).astype(np.float32)
    b = rng.integers(-4, 4, (16, 16)).astype(np.float32)
    c = cuda.device_array((16, 16), np.float32)
    product[(2, 2), (tile, tile)](cuda.to_device(a), cuda.to_device(b), c)
    np.testing.assert_array_equal(c.copy_to_host(), a @ b)  # small integers: exact


def test_atomics_shuffles_votes_and_dynamic_shared_memory() -> None:
    @cuda.jit
    def count(data: Any, histogram: Any, sums: Any, votes: Any) -> None:
        bins = cuda.shared.array(0, np.int32)
        i = cuda.grid(1)
        if cuda.threadIdx.x < 4:
            bins[cuda.threadIdx.x] = 0
        cuda.syncthreads()
        cuda.atomic.add(bins, data[i], 1)
        value = data[i]
        for step in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        if cuda.laneid == 0:
            sums[i // 32] = value
        votes[i] = cuda.ballot_sync(0xFFFFFFFF, data[i] == 3)
        all_of_them = cuda.syncthreads_count(data[i] + 1)
        if cuda.threadIdx.x < 4:
            cuda.atomic.add(histogram, cuda.threadIdx.x, bins[cuda.threadIdx.x])
        if i == 0:
            histogram[4] = all_of_them

    data = np.arange(128, dtype=np.int32) % 4
    histogram, sums = np.zeros(5, np.int32), np.zeros(4, np.int32)
    votes = np.zeros(128, np.uint32)
    count[2, 64, 0, 16](data, histogram, sums, votes)
    assert histogram.tolist() == [32, 32, 32, 32, 64]
    assert sums.tolist() == [48] * 4  # eight times 0 + 1 + 2 + 3
    assert set(votes.tolist()) == {0x88888888}


def test_device_functions_closures_constants_and_local_arrays() -> None:
    table = np.array([1.0, 10.0, 100.0])

    @cuda.jit(device=True)
    def pick(values: Any, index: Any) -> Any:
        return values[index % 3]

    @cuda.jit
    def fill(out: Any) -> None:
        constants = cuda.const.array_like(table)
        mine = cuda.local.array(2, np.float64)
        i = cuda.grid(1)
        mine[0], mine[1] = pick(constants, i), 1.0
        out[i] = mine[0] + mine[1]

    out = np.zeros(32)
    fill[1, 32](out)
    np.testing.assert_array_equal(out, np.resize(table, 32) + 1)


def test_device_functions_with_a_signature_recursion_included() -> None:
    @cuda.jit("int64(int64)", device=True)
    def fibonacci(n: Any) -> Any:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    @cuda.jit
    def fill(out: Any) -> None:
        i = cuda.grid(1)
        out[i] = fibonacci(i % 10)

    out = np.zeros(32, np.int64)
    fill[1, 32](out)
    np.testing.assert_array_equal(out, np.resize([0, 1, 1, 2, 3, 5, 8, 13, 21, 34], 32))


def test_halves_whose_functions_are_cuda_sources() -> None:
    """Numba hands sources of its own to the linker for these."""

    @cuda.jit
    def fill(x: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            out[i] = cuda.fp16.hfma(x[i], x[i], cuda.fp16.hdiv(x[i], x[i])) + cuda.fp16.hsqrt(x[i])

    x = np.array([1, 4, 9, 16], np.float16)  # squares, one and roots are exact
    out = np.zeros(4, np.float16)
    fill[1, 32](x, out)
    np.testing.assert_array_equal(out, [1 + 1 + 1, 16 + 1 + 2, 81 + 1 + 3, 256 + 1 + 4])


def test_blocks_wait_for_the_whole_grid() -> None:
    @cuda.jit
    def copy_after(x: Any, out: Any) -> None:
        whole = cuda.cg.this_grid()
        i = cuda.grid(1)
        x[i] = i
        whole.sync()
        out[i] = x[x.size - 1 - i]

    x, out = np.zeros(128, np.int64), np.zeros(128, np.int64)
    copy_after[4, 32](x, out)
    np.testing.assert_array_equal(out, np.arange(128)[::-1])


def test_records_complex_numbers_tuples_and_booleans() -> None:
    point = np.dtype([("x", np.float32), ("n", np.int16)], align=True)

    @cuda.jit
    def move(points: Any, by: Any, pair: Any, go: Any, out: Any) -> None:
        i = cuda.grid(1)
        if go and i < points.size:
            points[i].x += pair[0]
            points[i].n += pair[1]
            out[i] = by * by

    points = np.zeros(40, point)
    out = np.zeros(40, np.complex128)
    move[2, 32](points, 1 + 2j, (np.float32(1.5), np.int64(3)), True, out)
    assert points["x"].tolist() == [1.5] * 40
    assert points["n"].tolist() == [3] * 40
    assert out.tolist() == [-3 + 4j] * 40


def test_signatures_compile_at_once_and_convert() -> None:
    @cuda.jit("void(float64[:], float64)")
    def scale(x: Any, by: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= by

    assert len(scale.specialized) == 1
    x = np.ones(8)
    scale[1, 32](x, 3)  # an integer for a double
    assert x.tolist() == [3.0] * 8


def test_forall_libdevice_and_random() -> None:
    @cuda.jit
    def estimate(states: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < out.size:
            x = xoroshiro128p_uniform_float32(states, i)
            out[i] = cuda.libdevice.sqrt(np.float64(x) * x) + math.floor(0.5)

    out = np.full(300, -1.0)
    estimate.forall(out.size)(create_xoroshiro128p_states(300, seed=1), out)
    assert 0 <= out.min() < out.max() <= 1
    assert len(set(out.tolist())) > 290


def test_views_of_device_arrays_share_memory() -> None:
    array = cuda.to_device(np.arange(12.0))
    grid = array.reshape(3, 4)
    grid[1] = 0
    assert grid.T.shape == (4, 3)
    assert array.copy_to_host()[4:8].tolist() == [0.0] * 4
    assert array[3] == 3.0
    assert array[2:4].copy_to_host().tolist() == [2.0, 3.0]
    assert array.__cuda_array_interface__["data"][0] == array.address
    assert cuda.as_cuda_array(array) is array


def test_mapped_arrays_are_one_for_host_and_device() -> None:
    @cuda.jit
    def increment(x: Any) -> None:
        x[cuda.grid(1)] += 1

    shared = cuda.mapped_array(32, np.int32)
    shared[:] = 1
    increment[1, 32](shared)
    assert shared.tolist() == [2] * 32


def test_streams_and_events() -> None:
    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    seen: list[Any] = []
    start.record(stream)
    with stream.auto_synchronize():
        stream.add_callback(lambda _, status, arg: seen.append((status, arg)), "told")
    end.record(stream)
    assert seen == [(0, "told")]
    assert cuda.event_elapsed_time(start, end) >= 0


def test_the_device_says_what_it_is() -> None:
    device = cuda.get_current_device()
    assert device.MAX_THREADS_PER_BLOCK == 1024
    assert device.WARP_SIZE == 32
    assert cuda.select_device(0) is device
    with pytest.raises(IndexError):
        cuda.select_device(1)
    free, total = cuda.current_context().get_memory_info()
    assert 0 < free <= total


def test_a_fault_is_raised_where_the_kernel_is_launched() -> None:
    @cuda.jit
    def beyond(x: Any) -> None:
        x[cuda.grid(1) + 1] = 1

    with pytest.raises(wl.MemoryFault) as caught:
        beyond[1, 32](cuda.device_array(32, np.int32))
    assert caught.value.thread == (31, 0, 0)
    assert caught.value.line.startswith(__file__)


def test_random_is_there_without_an_import_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(cuda, "random")  # as the import above left it
    assert cuda.random.create_xoroshiro128p_states is create_xoroshiro128p_states


def test_what_needs_a_driver_says_so() -> None:
    with pytest.raises(AttributeError, match="warploom run"):
        _ = cuda.set_memory_manager
    with pytest.raises(wl.WarploomError, match="warploom run"):
        cuda.jit(link=["x.cu"])


def _add_one(x: Any, y: Any) -> None:
    i = cuda.grid(1)
    y[i] = x[i] + 1


READ_ONLY = np.zeros(4, np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize("wrong", [np.zeros(4), np.zeros(4, ">f4"), READ_ONLY, np.zeros((2, 2))])
def test_a_signature_refuses_arrays_of_other_types(wrong: Any) -> None:
    kernel = cuda.jit("void(float32[:], float32[:])")(_add_one)
    y = np.full(4, 7, np.float32)
    with pytest.raises(Exception, match=r"No matching definition|Unsupported array dtype: >f4"):
        kernel[1, 4](wrong, y)
    with pytest.raises(Exception, match=r"No matching definition|Unsupported array dtype: >f4"):
        kernel[1, 4](y, wrong)
    assert y.tolist() == [7] * 4


def test_device_arrays_have_the_byte_order_of_devices() -> None:
    kernel = cuda.jit(_add_one)
    x, y = cuda.to_device(np.arange(4, dtype=">f4")), cuda.device_array(4, np.dtype(">f4"))
    kernel[1, 4](x, y)
    host = np.zeros(4, ">f4")
    assert y.copy_to_host(host).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="device memory is little-endian"):
        y.view(np.dtype(">f4"))
