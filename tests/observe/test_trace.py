"""Checks traces: their content matches the counters, and both ways of recording give the same."""

from __future__ import annotations

import dataclasses
import gzip
from typing import Any

import msgspec
import numpy as np
import pytest

import warploom as wl
from warploom.cost.fields import FIELDS
from warploom.observe.schema import DIVERGED, MET
from warploom.observe.trace import Step, Trace

BRANCHY = """
__global__ void k(const int *in, int *out, int n)
{
    __shared__ int part[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    int value = i < n ? in[i] : 0;
    for (int lap = 0; lap < value % 4; lap++)
        value = value * 3 + in[(value + lap) % n];
    part[t] = value;
    __syncthreads();
    if (t % 3 == 0)
        value += part[(2 * t) % 64];
    int own[8];
    for (int k = 0; k < 8; k++) own[k] = value + k;
    value = own[t & 7];
    if (i < n) atomicAdd(&out[value & 7], 1);
}
"""


def launcher(device: str, **options: Any) -> tuple[Any, tuple[Any, ...]]:
    gpu = wl.Device(device, **options)
    data = gpu.to_device(np.arange(150, dtype=np.int32) * 7, "in")
    return gpu.compile(BRANCHY)["k"][3, 64], (data, gpu.zeros(8, np.int32, "out"), 150)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("device", ["gtx-1080", "v100"])
def test_the_steps_of_a_trace_add_up_to_the_counters(device: str, engine: str) -> None:
    ready, arguments = launcher(device)
    trace = ready.trace(*arguments, engine=engine)
    counters = ready(*arguments).counters
    steps = [s for w in trace.warps for s in trace.warp(w.block, w.warp).steps]
    assert len(steps) == trace.steps.count == counters.warp_instructions
    assert sum(s.active.bit_count() for s in steps) == counters.thread_instructions
    on = counters.thread_instructions_predicated_on
    assert sum(s.executing.bit_count() for s in steps) == on
    assert sum(bool(s.marks & DIVERGED) for s in steps) == counters.divergent_branches > 0
    costs: dict[str, int] = {}
    for step in steps:
        for access in step.accesses:
            for field, cost in zip(FIELDS, access.cost, strict=False):
                name = f"{access.space}_{access.op}_{field}"
                costs[name] = costs.get(name, 0) + cost
    counted = {name: costs[name] for name in costs if name in counters}
    assert counted == {name: counters[name] for name in counted}
    assert counted["global_load_sectors"] > 0
    assert counted["shared_load_wavefronts"] > 0
    assert counted["local_load_sectors"] > 0


def test_reconvergences_are_marked_once_each() -> None:
    ready, arguments = launcher("gtx-1080")
    trace = ready.trace(*arguments)
    marked = sum(bool(mark & MET) for mark in trace.steps.marks)
    # One step may bring lanes of several branches together.
    assert 0 < marked <= ready(*arguments).counters.reconvergences


def output(step: Step) -> dict[str, Any]:
    """Returns the content of a step without addresses, which differ between devices."""
    shown = {f.name: getattr(step, f.name) for f in dataclasses.fields(step)}
    shown["accesses"] = [(a.space, a.op, a.size, a.lanes, a.cost) for a in step.accesses]
    return shown


@pytest.mark.parametrize("schedule", ["converge", "random", "adversarial"])
@pytest.mark.parametrize("device", ["gtx-1080", "v100"])
def test_compiled_code_records_what_the_reference_machine_does(device: str, schedule: str) -> None:
    traces: list[Trace] = []
    for engine in ("reference", "compiled"):
        ready, arguments = launcher(device, schedule=schedule, seed=5)
        traces.append(ready.trace(*arguments, engine=engine))
    one, other = traces
    assert one.warps[0].registers
    assert not other.warps[0].registers
    for warp in one.warps:
        mine, its = (t.warp(warp.block, warp.warp).steps for t in traces)
        assert [output(s) for s in mine] == [output(s) for s in its]
    finals = [[t.states[w.final] for w in t.warps] for t in traces]
    assert finals[0] == finals[1]


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_fault_ends_a_trace_at_its_instruction(engine: str) -> None:
    source = "__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }"
    gpu = wl.Device("v100")
    trace = gpu.compile(source)["k"][1, 64].trace(gpu.zeros(40, np.int32), engine=engine)
    assert trace.error.startswith("Invalid __global__ write of size 4")
    last = trace.warp(0, 1).steps[-1]
    assert trace.instructions[last.instruction].startswith("st.global")
    assert last.accesses == []
    assert last.time == trace.steps.count - 1


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_only_selected_blocks_are_recorded(engine: str) -> None:
    ready, arguments = launcher("v100")
    limits = wl.TraceLimits(blocks=frozenset({1}))
    trace = ready.trace(*arguments, limits=limits, engine=engine)
    assert [(w.block, w.warp) for w in trace.warps] == [(1, 0), (1, 1)]
    assert trace.left_out.warps == 4
    assert trace.left_out.steps + trace.steps.count == ready(*arguments).counters.warp_instructions


def test_registers_can_be_read_at_any_step() -> None:
    """Doubles %tid.x, which is l in lane l, step by step."""
    ptx = """
.version 8.0
.target sm_60
.address_size 64
.visible .entry k()
{
    .reg .u32 %a, %b;
    mov.u32 %a, %tid.x;
    add.u32 %b, %a, %a;
    add.u32 %a, %b, 1;
    ret;
}
"""
    trace = wl.Device("v100").compile(ptx, "ptx")["k"][1, 32].trace()
    lanes = range(32)
    assert [trace.register("%a", t) for t in (0, 1, 3)] == [
        (0,) * 32,
        tuple(lanes),
        tuple(2 * lane + 1 for lane in lanes),
    ]
    assert trace.register("%b", 2) == tuple(2 * lane for lane in lanes)
    with pytest.raises(KeyError):
        trace.register("%c", 0)


def test_invalid_traces_are_rejected() -> None:
    with pytest.raises(wl.WarploomError, match="is not a trace"):
        Trace.from_bytes(b"PK\x03\x04")
    trace = wl.Device("v100").compile("__global__ void k() {}")["k"][1, 32].trace()
    older = msgspec.structs.replace(trace, version=1).to_bytes()
    with pytest.raises(wl.WarploomError, match="version 1"):
        Trace.from_bytes(older)


@pytest.fixture(scope="module")
def small() -> Trace:
    gpu = wl.Device()
    kernel = gpu.compile("__global__ void k(int *x) { x[threadIdx.x] = 1; }")["k"]
    return kernel[1, 32].trace(gpu.zeros(32, np.int32))


def test_a_damaged_trace_is_refused(small: Trace) -> None:
    """Flips each bit of some bytes and cuts at each length: the trace is read as it was, or
    rejected."""
    data, refused = small.to_bytes(), 0
    for at in range(0, len(data), max(1, len(data) // 40)):
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        for attempt in (bytes(broken), data[:at]):
            try:
                Trace.from_bytes(attempt)
            except wl.WarploomError:
                refused += 1
    assert refused > 60  # bits of the gzip header can mean nothing


@pytest.mark.parametrize(
    "change",
    [
        {"launch": 3},
        {"steps": None},
        {"ptx": "\ud800"},
        {"warps": []},
        {"code": []},
        {"device.warp_size": 5},
        {"steps.count": 2**70},
        {"steps.count": 1},
        {"steps.warp": b"123"},
        {"accesses.count": -1},
        {"writes.value": b"\xff" * 4},
    ],
    ids=str,
)
def test_a_trace_whose_parts_do_not_fit_is_refused(small: Trace, change: Any) -> None:
    content = msgspec.msgpack.decode(gzip.decompress(small.to_bytes()))
    [(name, value)] = change.items()
    *path, last = name.split(".")
    inner = content
    for part in path:
        inner = inner[part]
    inner[last] = value
    try:
        data = msgspec.msgpack.encode(content)
    except (OverflowError, UnicodeEncodeError):
        data = b"\xc1"
    with pytest.raises(wl.WarploomError, match="is not a trace"):
        Trace.from_bytes(gzip.compress(data))


def test_a_trace_that_unpacks_to_too_much_is_refused(small: Trace) -> None:
    with pytest.raises(wl.WarploomError, match="unpacks to more than 1,000 bytes"):
        Trace.from_bytes(small.to_bytes(), most_bytes=1000)
