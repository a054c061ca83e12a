"""`brx.idx`: lanes that go many ways at once, and meet again."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

POLICIES = ("converge", "fair", "random", "adversarial")
STACK, INDEPENDENT = "gtx-1080", "a100"


def switch(ways: int, *, guard: str = "", uniform: str = "") -> str:
    """A kernel in which case i stores 100 + i; `base` is added to every thread's index. Five
    instructions are behind the branch in each case."""
    labels = [f"L{i}" for i in range(ways)]
    cases = "\n".join(
        f"{label}: add.u32 %v, %v, {100 + i};\n xor.b32 %v, %v, 0;\n xor.b32 %v, %v, 0;\n"
        f" xor.b32 %v, %v, 0;\n bra{uniform} DONE;"
        for i, label in enumerate(labels)
    )
    return f"""
.version 8.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .reg .b32 %t, %i, %v;
    .reg .b64 %in, %out, %at;
    .reg .pred %p;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %t, 4;
    add.u64 %in, %in, %at;
    add.u64 %out, %out, %at;
    ld.global.u32 %i, [%in];
    mov.u32 %v, 0;
    setp.lt.u32 %p, %t, 16;
    ts: .branchtargets {", ".join(labels)};
    {guard} brx.idx{uniform} %i, ts;
    mov.u32 %v, 7;
    bra DONE;
{cases}
DONE:
    st.global.u32 [%out], %v;
    ret;
}}
"""


def run(text: str, name: str, policy: str, indices: np.ndarray, engine: str = "compiled"):
    gpu = wl.Device(name, schedule=policy, seed=3, engine=engine)
    out = gpu.zeros(len(indices), np.uint32)
    done = gpu.compile(text, "ptx")["k"][1, len(indices)](
        gpu.to_device(indices.astype(np.uint32)), out
    )
    return out.copy_to_host(), done.counters


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", [STACK, INDEPENDENT])
def test_every_lane_goes_its_own_way(name, policy) -> None:
    indices = np.random.default_rng(1).permutation(32)
    out, counters = run(switch(32), name, policy, indices)
    assert out.tolist() == (100 + indices).tolist()
    expected, by_reference = run(switch(32), name, policy, indices, "reference")
    assert out.tolist() == expected.tolist()
    assert dict(counters) == dict(by_reference)


@pytest.mark.parametrize("name", [STACK, INDEPENDENT])
def test_thirty_two_ways_are_thirty_two_paths(name) -> None:
    """10 instructions before and at the branch, 5 in each case, 2 behind: 10 + 32 * 5 + 2 where all
    part, 10 + 5 + 2 where all agree. Of the branches one is the indexed one, the others end a case.
    """
    _, diverged = run(switch(32), name, "converge", np.arange(32))
    assert diverged.warp_instructions == 10 + 32 * 5 + 2
    assert diverged.thread_instructions == 32 * (10 + 5 + 2)
    assert (diverged.branches, diverged.divergent_branches, diverged.reconvergences) == (
        1 + 32,
        1,
        1,
    )
    out, together = run(switch(32), name, "converge", np.full(32, 31))
    assert set(out.tolist()) == {131}
    assert together.warp_instructions == 10 + 5 + 2
    assert (together.branches, together.divergent_branches) == (2, 0)


@pytest.mark.parametrize("name", [STACK, INDEPENDENT])
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_lanes_whose_guard_is_false_fall_through(name, engine) -> None:
    out, counters = run(switch(3, guard="@%p"), name, "converge", np.arange(32) % 3, engine)
    assert out.tolist() == [100 + t % 3 if t < 16 else 7 for t in range(32)]
    # Four paths: three cases of 5 instructions and the two behind the branch.
    assert counters.warp_instructions == 10 + 3 * 5 + 2 + 2
    assert (counters.divergent_branches, counters.reconvergences) == (1, 1)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("wrong", [[5], list(range(32))])
def test_an_index_out_of_range_is_an_error_that_names_the_line(engine, wrong) -> None:
    indices = np.array([*([0] * 5), 4] if len(wrong) == 1 else [4] * 32)
    with pytest.raises(wl.KernelFault, match="index 4") as caught:
        run(switch(4), INDEPENDENT, "converge", indices, engine)
    text = switch(4).splitlines()
    line = next(n for n, one in enumerate(text, 1) if "brx.idx" in one)
    assert caught.value.line == f"kernel.ptx:{line}"
    assert caught.value.thread == ((5, 0, 0) if len(wrong) == 1 else (0, 0, 0))
