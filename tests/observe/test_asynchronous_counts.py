"""Checks counts of tensor copies, products of warp groups and tensor memory, and cluster barriers,
worked out by hand; both machines count alike."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")

COPIES = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 data)
{
    .reg .b32 %t; .reg .b64 %map, %data, %s; .reg .pred %p;
    .shared .align 128 .b8 box[2048]; .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0;
    mov.u64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %data, [data];
    @%p bra JOIN;
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 %s, [bar], 1536;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [box], [%map, {0, 0}], [bar];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [box+1024], [%data], 512, [bar];
WAIT:
    mbarrier.try_wait.shared.b64 %p, [bar], %s;
    @!%p bra WAIT;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {0, 8}], [box];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
JOIN:
    barrier.cluster.arrive; barrier.cluster.wait;
    bar.sync 0;
    ret;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_of_tensors_and_barriers_of_clusters(engine: str) -> None:
    """Has each of four blocks load a box of 8 x 32 floats (1,024 bytes) and 512 contiguous bytes,
    and store a box; two warps arrive at each barrier."""
    gpu = wl.Device("h100", engine=engine)
    data = gpu.to_device(np.arange(16 * 32, dtype=np.float32).reshape(16, 32))
    map = gpu.tensor_map(data, box=(8, 32))
    run = gpu.compile(COPIES, "ptx")["k"][4, 64](map, data, cluster_dims=2)
    counters = run.counters
    assert counters.tensor_copies == 4 * 3
    assert counters.tensor_copy_bytes_loaded == 4 * (1024 + 512)
    assert counters.tensor_copy_bytes_stored == 4 * 1024
    assert counters.cluster_barriers == counters.barriers == 4 * 2
    assert counters.warp_group_products == counters.launch_cancellations == 0
    report = str(run.report())
    assert "Asynchronous Work" in report
    assert "Tensor Copies, Into Shared Memory" in report
    by_line = [each.tensor_copies for each in counters.by_line().values()]
    assert sorted(filter(None, by_line)) == [4, 4, 4]


def test_both_machines_count_what_signals_an_mbarrier_alike() -> None:
    """Counts the store that signals the mbarrier (eight bytes) and the pieces of the copy (sixteen
    each)."""
    counted = []
    for engine in ENGINES:
        gpu = wl.Device("h100", engine=engine)
        data = gpu.to_device(np.zeros((16, 32), np.float32))
        map = gpu.tensor_map(data, box=(8, 32))
        run = gpu.compile(COPIES, "ptx")["k"][4, 64](map, data, cluster_dims=2)
        counted.append(dict(run.counters))
    assert counted[0] == counted[1]
    assert counted[0]["shared_store_bytes_requested"] == 4 * (1024 + 512 + 8)


def test_kernels_without_any_have_no_such_section() -> None:
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { bar.sync 0; ret; }"
    run = wl.Device("h100").compile(text, "ptx")["k"][1, 32]()
    assert "Asynchronous Work" not in str(run.report())


TENSOR_MEMORY = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k()
{
    .reg .b32 %t, %r<5>; .shared .align 4 .b32 at;
    mov.u32 %t, at;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%t], 32;
    ld.shared.b32 %t, [at];
    mov.u32 %r1, 7;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%t], {%r1};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%t];
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r2, %r3}, [%t];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;
    ret;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_loads_and_stores_of_tensor_memory(engine: str) -> None:
    run = wl.Device("b200", engine=engine).compile(TENSOR_MEMORY, "ptx")["k"][3, 32]()
    assert run.counters.tensor_memory_loads == 3 * 2
    assert run.counters.tensor_memory_stores == 3
    assert run.counters.tensor_memory_products == 0
