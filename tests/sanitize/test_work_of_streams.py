"""Work of several streams that touches the same bytes: what orders it, and what is found."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.clients.nvcc import real_nvcc
from warploom.sanitize import streams
from warploom.sanitize.stream_order import HOST, LEGACY, Clock, IssuedWork, StreamOrder

KERNELS = r"""
extern "C" __global__ void writes(char *x, int begin, int end, int step)
{
    for (int i = begin + threadIdx.x * step; i < end; i += 32 * step) x[i] = i;
}
extern "C" __global__ void reads(const char *x, int *y, int begin, int end)
{
    int sum = 0;
    for (int i = begin + threadIdx.x; i < end; i += 32) sum += x[i];
    y[threadIdx.x] = sum;
}
extern "C" __global__ void counts(int *x) { atomicAdd(x + threadIdx.x % 4, 1); }
extern "C" __global__ void sets_flag(int *x, int *flag)
{
    x[threadIdx.x] = threadIdx.x;
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) atomicExch(flag, 1);
}
extern "C" __global__ void hears(int *x, volatile int *flag, int *y)
{
    while (*flag == 0) {}
    __threadfence();
    y[threadIdx.x] = x[threadIdx.x];
}
"""

PROGRAM = r"""
#include <cstdio>
const int N = 256;
__global__ void writes(int *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = threadIdx.x; }
__global__ void reads(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x]; }
int *make() {
  int *made;
  cudaMalloc(&made, 4 * N);
  cudaMemset(made, 0, 4 * N);
  cudaDeviceSynchronize();
  return made;
}
int main() {
  cudaStream_t a, b, loose;
  cudaStreamCreate(&a);
  cudaStreamCreate(&b);
  cudaStreamCreateWithFlags(&loose, cudaStreamNonBlocking);
  cudaEvent_t done;
  cudaEventCreate(&done);
  int *pinned, *x, *y = make();
  cudaMallocHost(&pinned, 4 * N);
#define CASE cudaDeviceSynchronize(); x = make();
  CASE  // no event
  writes<<<1, N, 0, a>>>(x, N);
  reads<<<1, N, 0, b>>>(x, y);
  CASE  // an event
  writes<<<1, N, 0, a>>>(x, N);
  cudaEventRecord(done, a);
  cudaStreamWaitEvent(b, done, 0);
  reads<<<1, N, 0, b>>>(x, y);
  CASE  // an event that comes too early
  cudaEventRecord(done, a);
  writes<<<1, N, 0, a>>>(x, N);
  cudaStreamWaitEvent(b, done, 0);
  reads<<<1, N, 0, b>>>(x, y);
  CASE  // a copy in another stream
  writes<<<1, N, 0, a>>>(x, N);
  cudaMemcpyAsync(pinned, x, 4 * N, cudaMemcpyDeviceToHost, b);  // copied too early
  CASE  // the default stream waits for a stream that blocks
  writes<<<1, N, 0, a>>>(x, N);
  cudaMemcpy(pinned, x, 4 * N, cudaMemcpyDeviceToHost);
  CASE  // and not for one that does not
  writes<<<1, N, 0, loose>>>(x, N);
  cudaMemcpy(pinned, x, 4 * N, cudaMemcpyDeviceToHost);  // waits for nothing
  CASE  // each its half
  writes<<<1, N / 2, 0, a>>>(x, N / 2);
  writes<<<1, N / 2, 0, b>>>(x + N / 2, N / 2);
  CASE  // the host waits between them
  writes<<<1, N, 0, a>>>(x, N);
  cudaStreamSynchronize(a);
  cudaMemsetAsync(x, 0, 4 * N, loose);
  CASE  // a copy to the device
  cudaMemcpyAsync(x, pinned, 4 * N, cudaMemcpyHostToDevice, a);  // not awaited
  reads<<<1, N, 0, b>>>(x, y);
  CASE  // memory of a stream
  cudaMallocAsync(&x, 4 * N, a);  // allocated by one
  writes<<<1, N, 0, b>>>(x, N);  // used by another
  cudaEventRecord(done, b);
  cudaFreeAsync(x, a);  // freed too early
  cudaDeviceSynchronize();
  cudaMallocAsync(&x, 4 * N, a);
  writes<<<1, N, 0, a>>>(x, N);
  cudaEventRecord(done, a);
  cudaStreamWaitEvent(b, done, 0);
  cudaFreeAsync(x, b);
  x = make();
  writes<<<1, N, 0, a>>>(x, N);
  cudaFree(x);  // which waits
  cudaDeviceSynchronize();
  puts("done");
}
"""


# ---- what comes before what ----------------------------------------------------------------------


def test_streams_know_of_each_other_by_events_alone() -> None:
    order = StreamOrder()
    first = order.issue("a")
    assert not first.precedes(order.issue("b"))
    event = order.recorded("a")
    later = order.issue("a")
    order.wait("b", event)
    behind = order.issue("b")
    assert first.precedes(behind)
    assert first.precedes(later)
    assert not later.precedes(behind)


def test_the_default_stream_and_blocking_streams_wait_for_each_other() -> None:
    order = StreamOrder()
    order.add("blocking", blocking=True)
    order.add("loose", blocking=False)
    first, loose = order.issue("blocking"), order.issue("loose")
    default = order.issue(LEGACY)
    assert first.precedes(default)
    assert not loose.precedes(default)
    assert default.precedes(order.issue("blocking"))
    assert not default.precedes(order.issue("loose"))


@pytest.mark.parametrize("seed", range(50))
def test_clocks_say_what_a_graph_of_the_work_says(seed: int) -> None:
    """Held against paths in a graph whose nodes are all that is issued, recorded and awaited."""
    draw = random.Random(seed)
    order, graph = StreamOrder(), _Graph()
    streams: list[Hashable] = ["a", "b", "c"]
    works: list[tuple[IssuedWork, int]] = []
    events: list[tuple[Clock, int]] = []
    for _ in range(60):
        stream = draw.choice(streams)
        step = draw.choice(["work", "work", "record", "wait", "host", "synchronize"])
        if step == "work":
            works.append((order.issue(stream), graph.follow(stream, HOST)))
        elif step == "record":
            events.append((order.recorded(stream), graph.follow(stream, HOST)))
        elif step == "wait" and events:
            clock, node = draw.choice(events)
            order.wait(stream, clock)
            graph.follow(stream, node=node)
        elif step == "host" and events:
            clock, node = draw.choice(events)
            order.wait(HOST, clock)
            graph.follow(HOST, node=node)
        elif step == "synchronize" and not draw.randrange(4):
            order.synchronize(stream)
            graph.follow(HOST, stream)
    for number, (work, node) in enumerate(works):
        for other, before in works[:number]:
            assert other.precedes(work) == graph.has_path(before, node)


class _Graph:
    """Nodes in the order in which they come, each with those that it follows at once."""

    def __init__(self) -> None:
        self.before: list[set[int]] = []
        self.last: dict[Hashable, int] = {}

    def follow(self, stream: Hashable, other: Hashable = None, node: int | None = None) -> int:
        """Add a node to a stream: behind the last one of another, too, or behind a node."""
        found = {self.last.get(stream), self.last.get(other), node} - {None}
        self.before.append({one for one in found if one is not None})
        self.last[stream] = len(self.before) - 1
        return self.last[stream]

    def has_path(self, first: int, last: int) -> bool:
        """Return whether a path leads from one node to another."""
        seen, ways = set[int](), [last]
        while ways:
            one = ways.pop()
            if one not in seen:
                seen.add(one)
                ways += self.before[one]
        return first in seen


# ---- what is found -------------------------------------------------------------------------------


@pytest.fixture(params=["compiled", "reference"])
def gpu(request: pytest.FixtureRequest) -> wl.Device:
    return wl.Device(engine=request.param, sanitize=("race",))


def test_launches_in_two_streams(gpu: wl.Device) -> None:
    module = gpu.compile(KERNELS)
    x, y = gpu.to_device(np.zeros(256, np.int8), "x"), gpu.to_device(np.zeros(32, np.int32), "y")
    first, second = gpu.stream(), gpu.stream()
    runs = [
        module["writes"][1, 32, first](x, 10, 101, 1),
        module["reads"][1, 32, second](x, y, 100, 200),
    ]
    found = [one for run in runs for one in run.findings]
    assert [(one.tool, one.kind, one.buffer, one.offset) for one in found] == [
        ("race", "streams", "x", 100)
    ]
    lines = {found[0].line.rpartition(":")[2], found[0].other_line.rpartition(":")[2]}
    assert lines == {"4", "9"}


@pytest.mark.parametrize(
    ("writes", "reads"),
    [((10, 100, 1), (100, 200)), ((0, 64, 2), (64, 65)), ((1, 99, 4), (100, 101))],
)
def test_launches_that_share_no_byte(
    gpu: wl.Device, writes: tuple[int, int, int], reads: tuple[int, int]
) -> None:
    module = gpu.compile(KERNELS)
    x, y = gpu.to_device(np.zeros(256, np.int8)), gpu.to_device(np.zeros(32, np.int32))
    first, second = gpu.stream(), gpu.stream()
    runs = [
        module["writes"][1, 32, first](x, *writes),
        module["reads"][1, 32, second](x, y, *reads),
    ]
    assert not [one for run in runs for one in run.findings]


def test_atomics_of_two_streams_are_no_race(gpu: wl.Device) -> None:
    kernel = gpu.compile(KERNELS)["counts"]
    x = gpu.to_device(np.zeros(4, np.int32))
    runs = [kernel[1, 32, gpu.stream()](x) for _ in range(2)]
    assert not [one for run in runs for one in run.findings]
    assert x.copy_to_host().tolist() == [16] * 4


def test_a_launch_that_waits_for_a_flag_of_another_is_not_compared(gpu: wl.Device) -> None:
    module = gpu.compile(KERNELS)
    x, flag, y = (gpu.to_device(np.zeros(32, np.int32)) for _ in range(3))
    runs = [
        module["sets_flag"][1, 32, gpu.stream()](x, flag),
        module["hears"][1, 32, gpu.stream()](x, flag, y),
    ]
    assert not [one for run in runs for one in run.findings]
    # The same bytes without a flag between them.
    runs = [
        module["sets_flag"][1, 32, gpu.stream()](x, flag),
        module["reads"][1, 32, gpu.stream()](x, y, 0, 32),
    ]
    assert [one.kind for run in runs for one in run.findings] == ["streams"]


def test_a_copy_to_the_host_that_waits_for_no_stream(gpu: wl.Device) -> None:
    kernel = gpu.compile(KERNELS)["writes"]
    x, y = (gpu.to_device(np.zeros(64, np.int8), name) for name in "xy")
    stream = gpu.stream()
    waited, early = kernel[1, 32, stream](x, 0, 64, 1), None
    stream.synchronize()
    x.copy_to_host()
    early = kernel[1, 32, stream](y, 0, 64, 1)
    y.copy_to_host()
    found = [*waited.findings, *early.findings, *gpu.streams.findings]
    assert [(one.kind, one.buffer) for one in found] == [("streams", "y")]


def test_no_more_is_kept_of_work_that_nobody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two words of 8 bytes for each copy: three copies fit, and the fourth drops the first. Its
    race with a copy in the second stream is not found then, that of the fourth one is."""
    monkeypatch.setattr(streams, "MOST_BYTES", 3 * 16)
    gpu = wl.Device()
    buffers = [gpu.to_device(np.zeros(8, np.int8), f"x{number}") for number in range(4)]
    kept = streams.Streams(gpu.memory)
    for stream, chosen in (("a", buffers), ("b", [buffers[0], buffers[3]])):
        for buffer in chosen:
            copied = streams.Copied(buffer.address, buffer.nbytes, writes=True)
            kept.copied(kept.order.issue(stream), "a copy", [copied])
    assert [one.buffer for one in kept.findings] == ["x3"]


def test_a_program_with_streams_and_events(tmp_path: Path) -> None:
    if real_nvcc(os.environ["PATH"]) is None:
        pytest.skip("nvcc compiles the program, and is not here")
    source, program = tmp_path / "streams.cu", tmp_path / "streams"
    source.write_text(PROGRAM, "utf-8")
    verb = str(Path(sys.executable).with_name("warploom"))
    subprocess.run([verb, "nvcc", "-g", "-lineinfo", "-o", program, source], check=True)
    command = [verb, "check", "--tool", "race", "--error-exitcode", "3", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (3, "done\n")
    reads, writes = _line("void reads"), _line("void writes")
    places = [
        line.partition(" at ")[2].rpartition("/")[2]
        for line in done.stderr.splitlines()
        if " at " in line
    ]
    assert places == [
        *(reads, writes),
        *(_line("copied too early"), writes),
        *(_line("waits for nothing"), writes),
        *(reads, _line("not awaited")),
        *(writes, _line("allocated by one")),
        *(_line("freed too early"), writes),
    ]
    assert "2 times" in done.stderr
    assert "a free ends\n" in done.stderr
    assert done.stderr.endswith("ERROR SUMMARY: 6 errors, 0 warnings, 0 notes\n")


def _line(part: str) -> str:
    """Return the place of a line of the program."""
    lines = PROGRAM.splitlines()
    return f"streams.cu:{1 + next(n for n, line in enumerate(lines) if part in line)}"


NUMBA_PROGRAM = """
import numpy as np
from warploom import cuda

@cuda.jit
def scale(x, f):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= f

first, second, event = cuda.stream(), cuda.stream(), cuda.event()
x, y = cuda.to_device(np.ones(100, np.float32)), cuda.to_device(np.ones(100, np.float32))
scale[1, 128, first](x, 2)
event.record(first)
event.wait(second)
x.copy_to_host(stream=second)
first.synchronize()
scale[1, 128, first](y, 2)
y.copy_to_host(stream=second)
"""


def test_a_program_in_numbas_manner(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(NUMBA_PROGRAM, "utf-8")
    verb = str(Path(sys.executable).with_name("warploom"))
    command = [verb, "check", "--tool", "race", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    places = [line.rpartition("/")[2] for line in done.stderr.splitlines() if "     at /" in line]
    assert places == ["program.py:19", "program.py:9"]
    assert done.stderr.endswith("ERROR SUMMARY: 1 error, 0 warnings, 0 notes\n")
