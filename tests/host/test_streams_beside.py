"""Kernels of several streams run beside each other: one that waits for memory lets others run. What
comes after a kernel in its stream begins when that has ended (CUDA guide, "Streams")."""

from __future__ import annotations

import time

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void wait_for(volatile int *flag, int value, volatile int *then, int result)
{
    while (*flag != value) {}
    *then = result;
}
extern "C" __global__ void meet(volatile int *own, volatile int *others, int *out)
{
    for (int turn = 1; turn <= 3; turn++) {
        *own = turn;
        while (*others < turn) {}
    }
    *out = 1;
}
"""


KB_48 = 48 << 10


@pytest.fixture(params=["compiled", "reference"])
def gpu(request: pytest.FixtureRequest) -> wl.Device:
    return wl.Device("v100", engine=request.param)


def test_a_kernel_waits_for_a_later_one_of_another_stream(gpu: wl.Device) -> None:
    module = gpu.compile(SOURCE)
    first, second = gpu.stream(), gpu.stream()
    flag, done = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    waits = module["wait_for"][1, 1, first](flag, 1, done, 7)
    module["wait_for"][1, 1, second](done, 0, flag, 1)
    first.synchronize()
    second.synchronize()
    assert done.copy_to_host()[0] == 7
    assert waits.counters.warp_instructions > 0


def test_two_kernels_that_wait_for_each_other_end(gpu: wl.Device) -> None:
    module = gpu.compile(SOURCE)
    streams = gpu.stream(), gpu.stream()
    a, b, outs = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32), gpu.zeros(2, np.int32)
    module["meet"][1, 32, streams[0]](a, b, outs)
    module["meet"][1, 32, streams[1]](b, a, outs)
    for stream in streams:
        stream.synchronize()
    assert a.copy_to_host()[0] == b.copy_to_host()[0] == 3


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_the_same_in_one_stream_is_a_deadlock_that_says_so(gpu: wl.Device, seconds: float) -> None:
    """Also where the host begins to wait when the first one has looked several times."""
    module = gpu.compile(SOURCE)
    stream = gpu.stream()
    a, b, out = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    module["meet"][1, 32, stream](a, b, out)
    module["meet"][1, 32, stream](b, a, out)
    time.sleep(seconds)
    with pytest.raises(wl.DeadlockError, match="queued behind it in its stream: 1"):
        stream.synchronize()


def test_two_streams_that_wait_for_nobody_are_a_deadlock(gpu: wl.Device) -> None:
    module = gpu.compile(SOURCE)
    streams = gpu.stream(), gpu.stream()
    a, b = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    module["wait_for"][1, 1, streams[0]](a, 1, b, 1)
    module["wait_for"][1, 1, streams[1]](b, 1, a, 1)
    for stream in streams:
        with pytest.raises(wl.DeadlockError):
            stream.synchronize()


def test_a_launch_behind_one_that_waits_does_not_hold_up_other_streams(gpu: wl.Device) -> None:
    module = gpu.compile(SOURCE)
    first, second = gpu.stream(), gpu.stream()
    flag, done, last = (gpu.zeros(1, np.int32) for _ in range(3))
    module["wait_for"][1, 1, first](flag, 1, done, 7)
    module["wait_for"][1, 1, first](done, 7, last, 9)
    module["wait_for"][1, 1, second](last, 0, flag, 1)
    first.synchronize()
    assert last.copy_to_host()[0] == 9


def test_the_host_can_write_what_a_kernel_waits_for(gpu: wl.Device) -> None:
    module = gpu.compile(SOURCE)
    stream = gpu.stream()
    flag, done = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32)
    module["wait_for"][1, 1, stream](flag, 1, done, 7)
    flag.view[0] = 1
    stream.synchronize()
    assert done.copy_to_host()[0] == 7


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(("blocks", "fits"), [(1, True), (2, False)])
def test_a_kernel_runs_beside_another_one_if_its_block_fits(
    engine: str, blocks: int, fits: bool
) -> None:
    """Two SMs have 64 KB of shared memory each (CUDA Programming Guide, "Compute Capabilities",
    6.2), and so hold one block of 48 KB each."""
    gpu = wl.Device("jetson-tx2", engine=engine)
    module, first, second = gpu.compile(SOURCE), gpu.stream(), gpu.stream()
    flag, done, zero = (gpu.zeros(1, np.int32) for _ in range(3))
    module["wait_for"][blocks, 32, first, KB_48](flag, 1, done, 7)
    module["wait_for"][1, 32, second, KB_48](zero, 0, flag, 1)
    if fits:
        first.synchronize()
        second.synchronize()
        assert done.copy_to_host()[0] == 7
        return
    with pytest.raises(wl.DeadlockError, match="device together with the blocks of this launch: 1"):
        first.synchronize()
    second.synchronize()  # the first one has ended


def test_a_launch_without_a_stream_that_never_fits_says_so() -> None:
    gpu = wl.Device("jetson-tx2")
    module, stream = gpu.compile(SOURCE), gpu.stream()
    flag, done, zero = (gpu.zeros(1, np.int32) for _ in range(3))
    waiting = module["wait_for"][2, 32, stream, KB_48](flag, 1, done, 7)
    while not waiting.kernel.context.turn.has_waiting:
        time.sleep(0.01)
    with pytest.raises(wl.DeadlockError, match=r"can never start: .* with 2 blocks"):
        module["wait_for"][1, 32, None, KB_48](zero, 0, flag, 1)
    waiting.cancel()
