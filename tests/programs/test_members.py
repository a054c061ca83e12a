"""Member masks: a lane outside of its own is a fault, lanes that exited are counted, and lanes that
never come are named (PTX ISA, "shfl.sync": what is undefined; CUDA C++ Programming Guide, "Warp
Vote Functions": non-exited threads)."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

HEAD = """
.version 8.6
.target sm_60
.address_size 64
.visible .entry k()
{
    .reg .pred %p, %q;
    .reg .b32 %l, %a, %d, %m, %low;
    mov.u32 %l, %laneid;
    mov.u32 %a, %l;
    setp.lt.u32 %p, %l, 16;
    selp.b32 %m, 0x0000ffff, 0xffff0000, %p;
    mov.u32 %low, 0x0000ffff;
"""
ENGINES = ["reference", "compiled"]
DEVICES = ["gtx-1080", "h100"]

FORMS = (
    "shfl.sync.idx.b32 %d, %a, 0, 31, {};",
    "vote.sync.ballot.b32 %d, %q, {};",
    "vote.sync.all.pred %q, %q, {};",
    "match.any.sync.b32 %d, %a, {};",
    "match.all.sync.b32 %d|%q, %a, {};",
    "redux.sync.add.u32 %d, %a, {};",
    "elect.sync %d|%q, {};",
    "bar.warp.sync {};",
)
NEW = ("match", "redux", "elect")
"""Forms that need a later target than 6.0."""


def run(body: str, device: str, engine: str, block: int = 32, target: str = "sm_60") -> wl.Run:
    gpu = wl.Device(device, engine=engine)
    text = (HEAD + body + "\n    ret;\n}").replace("sm_60", target)
    return gpu.compile(text, "ptx")["k"][1, block]()


def line_of(text: str) -> int:
    """The line on which the statements of a test begin, after those of HEAD."""
    return HEAD.count("\n") + 1 + text.count("\n")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mask", ["0x0000ffff", "%low"])
def test_a_lane_outside_of_its_own_mask_is_a_fault(form: str, mask: str, engine: str) -> None:
    with pytest.raises(
        wl.DeviceTrap, match="lane 16 is not in its own member mask 0x0000ffff"
    ) as e:
        run(form.format(mask), "h100", engine, target="sm_90", block=40)
    assert e.value.thread == (16, 0, 0)
    assert e.value.line.endswith(f":{line_of('')}")
    assert form.partition(" ")[0] in str(e.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", [f for f in FORMS if not f.startswith(NEW)])
def test_lanes_that_name_themselves_are_none(form: str, device: str, engine: str) -> None:
    """Each half names its own, at once and (the lower one) under a guard: all its lanes execute."""
    opcode = form.partition(" ")[0]
    for body, lanes in ((form.format("%m"), 32), ("@%p " + form.format("%low"), 16)):
        made = run(body, device, engine)
        instructions = made.kernel.program.instructions
        [index] = [n for n, i in enumerate(instructions) if i.operation.text == opcode]
        counted = made.counters.by_instruction()[index]
        assert counted.thread_instructions_predicated_on == lanes
        assert made.counters.exited_members == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("device", DEVICES)
def test_the_fault_comes_before_the_wait_for_the_others(device: str, engine: str) -> None:
    """The lower half names the upper one, which waits elsewhere."""
    body = """@!%p bra OTHER;
    vote.sync.any.pred %q, %p, 0xffff0000;
    bra END;
OTHER:
    bar.sync 0;
END:"""
    with pytest.raises(wl.DeviceTrap, match="lane 0 is not in its own member mask 0xffff0000"):
        run(body, device, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("device", DEVICES)
def test_naming_lanes_that_exited_is_counted(device: str, engine: str) -> None:
    """Two warps of 32 and one of 10: the upper halves return. The shuffle of each of the full
    warps names exited lanes once, the vote of the lower half's own mask does not."""
    body = """@!%p ret;
    shfl.sync.bfly.b32 %d, %a, 1, 31, -1;
    vote.sync.any.pred %q, %p, 0x0000ffff;
    vote.sync.any.pred %q, %p, %m;"""
    counters = run(body, device, engine, block=74).counters
    assert counters.exited_members == 2
    counted = [c.exited_members for c in counters.by_instruction()]
    assert [n for n in counted if n] == [2]
    # Of a warp of 74 - 64 lanes, those beyond never existed: they are not exited ones.
    assert (
        run("vote.sync.any.pred %q, %p, -1;", device, engine, block=74).counters.exited_members == 0
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_deadlock_names_the_mask_and_who_is_missing(engine: str) -> None:
    """The lower half awaits the whole warp; the upper one waits at a barrier for the block."""
    source = """
__global__ void k(int* out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __any_sync(0xffffffff, threadIdx.x);
    else { __syncthreads(); out[threadIdx.x] = 1; }
}
"""
    gpu = wl.Device("h100", engine=engine)
    with pytest.raises(wl.DeadlockError) as caught:
        gpu.compile(source)["k"][1, 32](gpu.zeros(32, np.int32))
    text = "the lanes in member mask 0xffffffff, of which lanes 16 to 31 have not arrived"
    [group] = [g for g in caught.value.groups if g.waits_for == text]
    assert group.lanes == tuple(range(16))
    assert text in str(caught.value)
