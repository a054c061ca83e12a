"""Values that depend on which lanes run together: `__activemask()` promises no more than that the
lanes that it names run together (PTX ISA, "activemask"; CUDA C++ Programming Guide, "Warp Vote
Functions": "this does not mean that the threads are converged")."""

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

HEAD = 'extern "C" __global__ void count(int *total, const int *x, int *out)\n{\n'

COUNTED_BY_LANE_0 = """
    int lanes = __popc(__activemask());
    if (threadIdx.x % 32 == 0) atomicAdd(total, lanes);
}"""
STORED_BY_EACH_LANE = """
    if (x[threadIdx.x] > 0) out[threadIdx.x] = __activemask();
}"""
REDUCED_OVER_THE_MASK = """
    unsigned any = __ballot_sync(__activemask(), x[threadIdx.x] > 0);
    if (threadIdx.x == 0) *total = any;
}"""

NAMED = """
    int lanes = __popc(__ballot_sync(0xffffffffu, 1));
    if (threadIdx.x % 32 == 0) atomicAdd(total, lanes);
}"""
LEADER_BY_THE_MASK = """
    if (x[threadIdx.x] > 0) {
        unsigned mask = __activemask();
        if (threadIdx.x % 32 == __ffs(mask) - 1) atomicAdd(total, __popc(mask));
    }
}"""
# CUDA Pro Tip: warp-aggregated atomics; each lane gets a number of its own.
AGGREGATED = """
    if (x[threadIdx.x] > 0) {
        unsigned mask = __activemask(), lane = threadIdx.x % 32, leader = __ffs(mask) - 1;
        int base;
        if (lane == leader) base = atomicAdd(total, __popc(mask));
        base = __shfl_sync(mask, base, leader);
        int slot = base + __popc(mask & ((1u << lane) - 1));
        out[slot] = x[threadIdx.x];
        out[32 + threadIdx.x] = slot;
    }
}"""
NOT_EXECUTED = """
    if (x[threadIdx.x] < 0) out[threadIdx.x] = __activemask();
}"""


def findings(source: str, device: str = "h100") -> list[tuple[str, str, str, str]]:
    gpu = wl.Device(device, sanitize=("sync",))
    kernel = gpu.compile(HEAD + source, name="count.cu")["count"]
    x = np.arange(32, dtype=np.int32) % 2
    run = kernel[1, 32](np.zeros(1, np.int32), x, np.zeros(64, np.int32))
    return [
        (one.kind, one.severity, Path(one.line).name, Path(one.other_line).name)
        for one in run.findings
    ]


@pytest.mark.parametrize(
    ("source", "store", "mask"),
    [
        (COUNTED_BY_LANE_0, "count.cu:5", "count.cu:4"),
        (STORED_BY_EACH_LANE, "count.cu:4", "count.cu:4"),
        (REDUCED_OVER_THE_MASK, "count.cu:5", "count.cu:4"),
    ],
)
def test_values_that_depend_on_the_schedule_are_named(source: str, store: str, mask: str) -> None:
    assert findings(source) == [("active mask", "warning", store, mask)]


@pytest.mark.parametrize("source", [NAMED, LEADER_BY_THE_MASK, AGGREGATED, NOT_EXECUTED])
def test_groups_that_work_whatever_the_mask_are_no_findings(source: str) -> None:
    assert findings(source) == []


def test_lanes_run_together_below_7_0() -> None:
    assert findings(COUNTED_BY_LANE_0, "gtx-980") == []
