"""Accesses that name an order, and instructions that are only hints: they move what plain
ones would, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")
LOADS = (
    *("ld.relaxed.cta.global.b32", "ld.relaxed.sys.b32", "ld.acquire.gpu.global.b32"),
    *("ld.acquire.cluster.b32", "ld.mmio.relaxed.sys.global.b32", "ld.volatile.global.b32"),
    *("ldu.global.b32", "ld.weak.global.L1::evict_first.L2::128B.b32"),
)
STORES = (
    *("st.relaxed.cta.global.b32", "st.relaxed.sys.b32", "st.release.gpu.global.b32"),
    *("st.release.cluster.b32", "st.mmio.relaxed.sys.global.b32", "st.volatile.global.b32"),
    *("st.volatile.b32", "st.weak.global.L1::no_allocate.b32"),
)
HINTS = (
    *(
        "prefetch.global.L2 [%in]",
        "prefetch.tensormap [%in]",
        "prefetchu.L1 [%in]",
        "discard.global.L2 [%spare], 128",
    ),
    *("applypriority.global.L2::evict_normal [%spare], 128", "pmevent 7", "pmevent.mask 3"),
    *("createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %policy, [%in], 64, 128",),
    *(
        "membar.proxy.alias",
        "membar.proxy.async",
        "fence.acquire.sync_restrict::shared::cluster.cluster",
    ),
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster",
    "fence.release.sync_restrict::shared::cta.cluster",
    *("fence.proxy.alias", "fence.proxy.async", "fence.proxy.tensormap::generic.release.gpu"),
    "fence.proxy.tensormap::generic.acquire.cta [%spare], 128",
)


def kernel() -> str:
    """Word i of every lane goes from `inputs` to `results` through load i and store i, with all
    hints in between."""
    moved = "".join(
        f"{load} %r, [%in+{128 * i}];\n{store} [%out+{128 * i}], %r;\n"
        for i, (load, store) in enumerate(zip(LOADS, STORES, strict=True))
    )
    return f"""
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 inputs, .param .u64 results, .param .u64 unused)
{{
    .reg .b32 %r;
    .reg .b64 %in, %out, %spare, %at, %policy;
    mov.u32 %r, %tid.x;
    mul.wide.u32 %at, %r, 4;
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [results];
    ld.param.u64 %spare, [unused];
    {"".join(f"{hint};" for hint in HINTS)}
    add.u64 %in, %in, %at;
    add.u64 %out, %out, %at;
    {moved}
    ret;
}}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_each_moves_what_a_plain_access_would(engine: str) -> None:
    inputs = np.random.default_rng(3).integers(0, 1 << 32, (len(LOADS), 32), np.uint32)
    results, spare = np.zeros_like(inputs), np.arange(32, dtype=np.uint32)
    made = wl.Device("h100", engine=engine).compile(kernel(), "ptx")["k"]
    made[1, 32](inputs, results, spare)
    assert np.array_equal(results, inputs)
    assert np.array_equal(spare, np.arange(32))
