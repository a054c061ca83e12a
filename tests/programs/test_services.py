"""printf, assert, malloc and free in real CUDA C++, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


def test_kernels_print(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = """extern "C" __global__ void k(const float *x) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i % 2) printf("%d: %.2f %s\\n", i, x[i], "odd");
        printf("%d of %u%c\\n", i, gridDim.x * blockDim.x, '!');
    }"""
    x = np.arange(4, dtype=np.float32) / 4
    wl.Device("a100", engine=engine).compile(source)["k"][2, 2](x)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(
        [f"{i} of 4!" for i in range(4)] + ["1: 0.25 odd", "3: 0.75 odd"]
    )
    for i, value in ((1, "0.25"), (3, "0.75")):  # a thread's lines are in its order
        assert lines.index(f"{i}: {value} odd") < lines.index(f"{i} of 4!")


def test_text_can_go_elsewhere(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts: list[str] = []
    source = 'extern "C" __global__ void k() { printf("block %d\\n", blockIdx.x); }'
    wl.Device(engine=engine, output=texts.append).compile(source)["k"][3, 1]()
    assert texts == ["block 0\n", "block 1\n", "block 2\n"]
    assert capsys.readouterr().out == ""


def test_a_failed_assertion_names_its_place_and_thread(engine: str) -> None:
    source = """
    extern "C" __global__ void k(int n) {
        assert(threadIdx.x + 32 * blockIdx.x < n);
    }"""
    kernel = wl.Device(engine=engine).compile(source, name="mine.cu")["k"]
    kernel[2, 32](64)
    with pytest.raises(wl.DeviceAssert, match=r"threadIdx.x \+ 32 \* blockIdx.x < n") as caught:
        kernel[2, 32](39)
    assert caught.value.line.endswith("mine.cu:3")
    assert (caught.value.block, caught.value.thread) == ((1, 0, 0), (7, 0, 0))


HEAP = """
struct Node { int value; Node *next; };
extern "C" __global__ void build(Node **lists, int n) {
    Node *first = nullptr;
    for (int i = 0; i < n; i++) {
        Node *made = (Node *)malloc(sizeof(Node));
        made->value = i * (threadIdx.x + 1);
        made->next = first;
        first = made;
    }
    lists[threadIdx.x] = first;
}
extern "C" __global__ void add(Node **lists, int *sums) {
    for (Node *at = lists[threadIdx.x]; at != nullptr;) {
        Node *next = at->next;
        sums[threadIdx.x] += at->value;
        free(at);
        at = next;
    }
}
extern "C" __global__ void late(Node **lists, int *sums) { sums[0] = lists[0]->value; }
extern "C" __global__ void large(int *got, size_t size) { got[0] = malloc(size) != nullptr; }
extern "C" __global__ void twice() { void *p = malloc(8); free(p); free(p); }
"""


def test_memory_of_the_heap_outlives_its_kernel(engine: str) -> None:
    gpu = wl.Device(engine=engine)
    module = gpu.compile(HEAP)
    lists, sums = gpu.zeros(40, np.uint64), np.zeros(40, np.int32)
    module["build"][1, 40](lists, 5)
    assert gpu.memory.heap.used == 40 * 5 * 16
    module["add"][1, 40](lists, sums)
    assert sums.tolist() == [10 * (i + 1) for i in range(40)]
    assert gpu.memory.heap.used == 0
    with pytest.raises(wl.MemoryFault):
        module["late"][1, 1](lists, sums)


def test_the_heap_has_an_end_and_no_double_free(engine: str) -> None:
    gpu = wl.Device(engine=engine)
    module = gpu.compile(HEAP)
    got = np.zeros(1, np.int32)
    module["large"][1, 1](got, (8 << 20) - 16)
    assert got[0] == 1
    module["large"][1, 1](got, 32)
    assert got[0] == 0
    with pytest.raises(wl.KernelFault, match="already been freed"):
        wl.Device(engine=engine).compile(HEAP)["twice"][1, 1]()


def test_a_freed_block_is_gone_within_the_kernel(engine: str) -> None:
    source = """extern "C" __global__ void k(int *out) {
        int *volatile p = (int *)malloc(256);
        for (int i = 0; i < 2; i++) {
            out[0] += ((volatile int *)p)[0];
            free(i ? nullptr : p);
        }
    }"""
    with pytest.raises(wl.MemoryFault):
        wl.Device(engine=engine).compile(source)["k"][1, 1](np.zeros(1, np.int32))


def test_a_string_out_of_bounds_is_a_fault(engine: str) -> None:
    source = 'extern "C" __global__ void k(const char *text) { printf("%s", text); }'
    gpu = wl.Device(engine=engine)
    with pytest.raises(wl.MemoryFault):
        gpu.compile(source)["k"][1, 1](gpu.to_device(np.full(4, 65, np.uint8)))
