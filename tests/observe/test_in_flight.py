"""Checks asynchronous operations in traces, from issue to wait, and the states of mbarriers,
against the kernels' sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

import warploom as wl
from warploom.observe.schema import Asynchronous
from warploom.observe.trace import Trace
from warploom.program.effects.asynchronous import BULK, COPY, KINDS, PRODUCT

PIPELINE = Path(__file__).parents[1] / "timing" / "pipeline.cu"
STAGES, BYTES, TILES = 2, 512, 4

Rows = npt.NDArray[np.int64]


def asynchronous(trace: Trace) -> Asynchronous:
    """Returns the asynchronous operations of a trace after writing and reading its file."""
    found = Trace.from_bytes(trace.to_bytes()).asynchronous
    assert found is not None
    return found


def rows(columns: object, *names: str) -> Rows:
    """Returns columns as rows."""
    found = [np.frombuffer(getattr(columns, name), "<i4") for name in names]
    return np.stack(found, axis=1).astype(np.int64)


def flights(found: Asynchronous) -> Rows:
    return rows(found.flights, "step", "until", "kind", "size", "barrier")


def steps_of(trace: Trace, ptx: str) -> list[int]:
    """Returns the steps that execute an instruction whose text begins with `text`."""
    chosen = [n for n, code in enumerate(trace.code) if code.text.startswith(ptx)]
    return np.flatnonzero(np.isin(trace.columns["instruction"], chosen)).tolist()


def pipeline() -> Trace:
    gpu = wl.Device("h100")
    options = [f"-DSTAGES={STAGES}", f"-DBYTES={BYTES}", "-DSKIP=1"]
    kernel = gpu.compile(PIPELINE.read_text("utf-8"), options=options)["sums"]
    tiles = gpu.to_device(np.ones(TILES * BYTES // 4, np.float32))
    return kernel[1, 160].trace(tiles, gpu.zeros(128, np.float32), TILES)


def test_copies_are_in_flight_until_their_phase_is_awaited() -> None:
    """Pipelines four tiles of 512 bytes through two buffers; a thread waits for each by its
    mbarrier."""
    trace = pipeline()
    found = asynchronous(trace)
    made = flights(found)
    assert made[:, 0].tolist() == steps_of(trace, "cp.async.bulk")
    assert made[:, 2:4].tolist() == [[BULK, BYTES]] * TILES
    addresses = [found.barriers[number - 1].address for number in made[:, 4].tolist()]
    full = next(one.address for one in trace.shared if one.name == "full")
    assert addresses == [full, full + 8] * 2
    waits = set(steps_of(trace, "mbarrier.try_wait"))
    assert set(made[:, 1].tolist()) <= waits
    assert (made[:, 1] > made[:, 0]).all()
    warp = trace.columns["warp"]
    assert {trace.warps[warp[step]].warp for step in made[:, 1].tolist()} == {0}, "who looks first"


def test_the_states_of_mbarriers() -> None:
    """Expects each phase of a full mbarrier to await an arrival and 512 bytes; of an empty one, 128
    arrivals, 32 by each warp."""
    trace = pipeline()
    found = asynchronous(trace)
    assert found.barriers[0].block == 0
    states = rows(found.states, "barrier", "phase", "pending", "expected", "bytes_left")
    full = next(one.address for one in trace.shared if one.name == "full")
    empty = next(one.address for one in trace.shared if one.name == "empty")
    names = [one.address for one in found.barriers]
    assert states[states[:, 0] == names.index(full)][:, 1:].tolist() == [
        [0, 1, 1, 0],
        [0, 0, 1, BYTES],
        [1, 1, 1, 0],
        [1, 0, 1, BYTES],
        [2, 1, 1, 0],
    ]
    assert states[states[:, 0] == names.index(empty)][:, 1:].tolist() == [
        [phase, pending, 128, 0] for phase in (0, 1) for pending in (128, 96, 64, 32)
    ] + [[2, 128, 128, 0]]


GROUPS = r"""
extern "C" __global__ void groups(const float4 *x, float4 *y) {
  __shared__ float4 s[2][32];
  unsigned to = (unsigned)__cvta_generic_to_shared(&s[0][threadIdx.x]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + threadIdx.x));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + 512), "l"(x + threadIdx.x));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 1;");
  asm volatile("cp.async.wait_group 0;");
  __syncwarp();
  y[threadIdx.x] = s[1][31 - threadIdx.x];
}
"""


def test_groups_of_copies_are_in_flight_until_a_wait_leaves_them_out_no_more() -> None:
    gpu = wl.Device("a100")
    kernel = gpu.compile(GROUPS)["groups"]
    x, y = gpu.zeros((32, 4), np.float32), gpu.zeros((32, 4), np.float32)
    trace = kernel[1, 32].trace(x, y)
    first, second = steps_of(trace, "cp.async.cg")
    one, none = steps_of(trace, "cp.async.wait_group")
    assert flights(asynchronous(trace)).tolist() == [
        [first, one, COPY, 512, 0],
        [second, none, COPY, 512, 0],
    ]


PRODUCTS = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k()
{
    .reg .f32 %f<4>; .reg .b64 %d<2>; .reg .b32 %r<1>;
    .shared .align 128 .b8 tile[4096];
    mov.u64 %d0, 0; mov.u64 %d1, 0; mov.u32 %r0, 0; st.shared.u32 [tile], %r0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %d0, %d1, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 1;
    wgmma.wait_group.sync.aligned 0;
    ret;
}
"""


def test_products_of_a_warp_group_are_those_of_each_of_its_warps() -> None:
    kernel = wl.Device("h100").compile(PRODUCTS, "ptx")["k"]
    trace = kernel[1, 128].trace()
    made = flights(asynchronous(trace))
    waits = steps_of(trace, "wgmma.wait_group")
    assert made[:, 2:].tolist() == [[PRODUCT, 0, 0]] * 4
    assert sorted(made[:, 0].tolist()) == steps_of(trace, "wgmma.mma_async")
    assert set(made[:, 1].tolist()) < set(waits)
    assert KINDS[PRODUCT] == "warp group product"


def test_operations_without_a_wait_are_in_flight_to_the_end() -> None:
    gpu = wl.Device("a100")
    text = "\n".join(row for row in GROUPS.splitlines() if "wait_group 0" not in row)
    x, y = gpu.zeros((32, 4), np.float32), gpu.zeros((32, 4), np.float32)
    trace = gpu.compile(text)["groups"][1, 32].trace(x, y)
    assert flights(asynchronous(trace))[:, 1].tolist()[1] == trace.steps.count


def test_kernels_without_asynchronous_work_have_none() -> None:
    gpu = wl.Device("h100")
    trace = gpu.load("examples/saxpy.cu")["saxpy"][1, 32].trace(
        32, 2.0, np.ones(32, np.float32), np.ones(32, np.float32)
    )
    assert trace.asynchronous is None
