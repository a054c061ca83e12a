"""Launches of several streams run in the order of their calls, so that one may wait for what an
earlier one changes in memory."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void sets_flag(volatile int *flag) { flag[0] = 1; }
extern "C" __global__ void hears(volatile int *flag, int *y)
{
    while (flag[0] == 0) {}
    y[threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_launch_begins_behind_those_that_were_called_before(engine: str) -> None:
    """The first one's stream is held up for long enough that the second one's would run."""
    gpu = wl.Device(engine=engine)
    module = gpu.compile(SOURCE)
    flag, y = gpu.zeros(1, np.int32), gpu.zeros(32, np.int32)
    first, second = gpu.stream(), gpu.stream()
    held = threading.Event()
    first.submit(held.wait)
    module["sets_flag"][1, 1, first](flag)
    heard = module["hears"][1, 32, second](flag, y)
    threading.Timer(0.2, held.set).start()
    assert heard.counters.warp_instructions > 0
    assert y.copy_to_host().tolist() == [1] * 32


def test_a_launch_that_nobody_helps_is_a_deadlock() -> None:
    """The other one ends without a word."""
    gpu = wl.Device()
    module = gpu.compile(SOURCE)
    flag, other, y = gpu.zeros(1, np.int32), gpu.zeros(1, np.int32), gpu.zeros(32, np.int32)
    module["sets_flag"][1, 1, gpu.stream()](other)
    with pytest.raises(wl.DeadlockError):
        _ = module["hears"][1, 32, gpu.stream()](flag, y).counters


def test_launches_of_many_threads_all_end() -> None:
    """Each of 4 threads has a stream; together they add 4 x 25 in one word, one at a time."""
    gpu = wl.Device()
    add = gpu.compile('extern "C" __global__ void add(int *x) { *x += 1; }')["add"]
    x = gpu.zeros(1, np.int32)

    def launch() -> None:
        stream = gpu.stream()
        for _ in range(25):
            add[1, 1, stream](x)
        stream.synchronize()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=launch) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert x.copy_to_host().tolist() == [100]


def test_a_launch_that_could_not_be_queued_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the system gives the process no more threads."""
    gpu = wl.Device()
    sets_flag, flag, stream = gpu.compile(SOURCE)["sets_flag"], gpu.zeros(1, np.int32), gpu.stream()

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(stream, "submit", refuse)
        with pytest.raises(RuntimeError):
            sets_flag[1, 1, stream](flag)
    assert sets_flag[1, 1, stream](flag).counters.warp_instructions > 0
