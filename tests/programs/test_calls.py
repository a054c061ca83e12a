"""Calls that cannot be inlined, compiled from CUDA C++: each thread with its own depth and callee.

What they count is in the test of a small PTX kernel, by hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SOURCE = Path(__file__).with_name("calls.cu")
POLICIES = ("converge", "random", "adversarial")
CASES = [("gtx-1080", "converge"), *(("a100", policy) for policy in POLICIES)]
THREADS = 40


@pytest.fixture(scope="module")
def modules():
    """The kernels on a device, by name, policy and engine; compiled once."""
    kept: dict[tuple[str, str, str], tuple[wl.Device, wl.Module]] = {}

    def get(name: str, policy: str = "converge", engine: str = "compiled"):
        key = (name, policy, engine)
        if key not in kept:
            gpu = wl.Device(name, schedule=policy, seed=7, engine=engine)
            kept[key] = gpu, gpu.load(SOURCE)
        return kept[key]

    return get


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def ack(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ack(m - 1, 1) if n == 0 else ack(m - 1, ack(m, n - 1))


def chosen(which: int, t: int) -> int:
    """What `through_table` computes in a thread."""
    a, b = t, t % 7
    if which == 0:
        return 2 * a + b + t
    if which == 1:
        return (a - b if a & 1 else b - a) + t
    r = 1
    for _ in range(b):
        r *= a
        if r > 100000:
            return -1 + t
    return r + t


def area(t: int) -> int:
    """What `virtual_functions` computes in a thread."""
    if (t // 3) % 2 == 0:
        return t * t + t
    return -t if t > 20 else t * (t + 1)


def values(low: int, high: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, THREADS).astype(np.int32)


def launch(made, kernel: str, *inputs: np.ndarray):
    gpu, module = made
    out = gpu.zeros(THREADS, np.int32)
    run = module[kernel][1, THREADS](*(gpu.to_device(i) for i in inputs), out)
    return out.copy_to_host().tolist(), dict(run.counters)


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_recursion_with_a_depth_for_each_thread(modules, name, policy) -> None:
    made = modules(name, policy)
    numbers = values(0, 9)
    assert launch(made, "fibonacci", numbers)[0] == [fib(int(n)) for n in numbers]
    numbers = values(0, 6)
    assert launch(made, "ackermann", numbers)[0] == [ack(2, int(n)) for n in numbers]


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_sorting_of_local_memory_by_recursion(modules, name, policy) -> None:
    gpu, module = modules(name, policy)
    numbers = np.random.default_rng(2).integers(0, 50, (THREADS, 16)).astype(np.int32)
    lengths = values(0, 17)
    data = gpu.to_device(numbers)
    module["quicksort"][1, THREADS](data, gpu.to_device(lengths))
    for row, length in zip(numbers, lengths, strict=True):
        row[:length].sort()
    assert np.array_equal(data.copy_to_host(), numbers)


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_another_function_in_each_lane(modules, name, policy) -> None:
    made = modules(name, policy)
    which = values(0, 3)
    expected = [chosen(int(w), t) for t, w in enumerate(which)]
    assert launch(made, "through_table", which)[0] == expected
    assert launch(made, "virtual_functions")[0] == [area(t) for t in range(THREADS)]


@pytest.mark.parametrize(("name", "policy"), [CASES[0], CASES[1], CASES[3]])
def test_both_machines_count_alike(modules, name, policy) -> None:
    for kernel, inputs in (
        ("fibonacci", [values(0, 6)]),
        ("through_table", [values(0, 3)]),
        ("virtual_functions", []),
    ):
        results = [
            launch(modules(name, policy, engine), kernel, *inputs)
            for engine in ("compiled", "reference")
        ]
        assert results[0] == results[1]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("number", [0, 3, 0x1001, 1 << 60])
def test_an_address_that_is_no_function_is_an_error(modules, engine, number) -> None:
    gpu, module = modules("a100", engine=engine)
    numbers = np.full(32, number, np.uint64)
    with pytest.raises(wl.KernelFault, match="is not a function") as caught:
        module["through_number"][1, 32](gpu.to_device(numbers), gpu.zeros(32, np.int32))
    line = next(
        n for n, text in enumerate(SOURCE.read_text("utf-8").splitlines(), 1) if "f(1, 2)" in text
    )
    assert caught.value.line.endswith(f"calls.cu:{line}")


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_recursion_that_is_too_deep_is_an_error(modules, engine) -> None:
    gpu, module = modules("a100", engine=engine)
    numbers = np.array([3] * 31 + [2000], np.int32)
    out = gpu.zeros(32, np.int32)
    with pytest.raises(wl.KernelFault, match="stack_bytes") as caught:
        module["fibonacci"][1, 32](gpu.to_device(numbers), out)
    assert "calls.cu" in caught.value.line
    assert caught.value.thread == (31, 0, 0)


def test_a_larger_stack_lets_the_recursion_go_deeper() -> None:
    numbers = np.full(32, 1, np.int32)
    numbers[7] = 11
    for size, fits in ((256, False), (4096, True)):
        gpu = wl.Device("a100", stack_bytes=size)
        out = gpu.zeros(32, np.int32)
        kernel = gpu.load(SOURCE)["fibonacci"]
        if fits:
            kernel[1, 32](gpu.to_device(numbers), out)
            assert out.copy_to_host()[7] == fib(11)
        else:
            with pytest.raises(wl.KernelFault):
                kernel[1, 32](gpu.to_device(numbers), out)


PTX = """
.version 8.0
.target sm_60
.address_size 64
.func (.param .b32 sum) add_up(.param .b32 n)
{
    .reg .b32 %n, %s;
    .reg .pred %p;
    ld.param.u32 %n, [n];
    mov.u32 %s, 0;
    setp.eq.u32 %p, %n, 0;
    @%p bra DONE;
    {
        .param .b32 given;
        .param .b32 result;
        .reg .b32 %m;
        sub.u32 %m, %n, 1;
        st.param.b32 [given], %m;
        call (result), add_up, (given);
        ld.param.b32 %s, [result];
        add.u32 %s, %s, %n;
    }
DONE:
    st.param.b32 [sum], %s;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .b32 %t, %s;
    .reg .b64 %out, %at;
    .param .b32 given;
    .param .b32 result;
    ld.param.u64 %out, [out];
    mov.u32 %t, %laneid;
    mul.wide.u32 %at, %t, 4;
    add.u64 %out, %out, %at;
    st.param.b32 [given], %t;
    call (result), add_up, (given);
    ld.param.b32 %s, [result];
    st.global.u32 [%out], %s;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("name", ["gtx-1080", "a100"])
def test_what_a_recursion_counts(name, engine) -> None:
    """Lane t is t calls deep when it stops. The kernel has 9 instructions. The function has 4 up to
    its branch, 5 around the call, and 2 at its end (its ret is a branch to there). At depths 0 to
    31 some lanes come in, at 0 to 30 some go on, and at each all that came in end together.
    """
    gpu = wl.Device(name, engine=engine)
    out = gpu.zeros(32, np.uint32)
    run = gpu.compile(PTX, "ptx")["k"][1, 32](out)
    assert out.copy_to_host().tolist() == [t * (t + 1) // 2 for t in range(32)]
    counters = run.counters
    assert counters.warp_instructions == 9 + 32 * (4 + 2) + 31 * 5
    inside = sum((32 - depth) * 6 + (31 - depth) * 5 for depth in range(32))
    assert counters.thread_instructions == 32 * 9 + inside
    # At each depth but the last the lane that stops waits for the others at DONE.
    assert (counters.divergent_branches, counters.reconvergences) == (31, 31)
    assert (counters.local_load_requests, counters.local_store_requests) == (0, 0)
