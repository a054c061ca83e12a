"""The debugger beside its terminal and its protocol: in the view, and in notebooks."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sessions import Talk, talk

import warploom as wl
from warploom.core.errors import KernelFault, LaunchError, WarploomError
from warploom.observe.trace import Trace

LOOP = """
extern "C" __global__ void loop(int *x)
{
    int s = 0;
    for (int j = 0; j < 4; j++)
        s += j * threadIdx.x;
    x[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
"""


@pytest.mark.parametrize("schedule", ["converge", "random"])
def test_the_view_opens_at_the_same_step(tmp_path: Path, schedule: str) -> None:
    """The step of the trace is of the same warp, the same instruction and the same lanes."""

    def script(session: Talk) -> None:
        session.say("break 6 if blockIdx.x == 1 && threadIdx.x == 40 && j == 2")
        session.say("run")
        said = session.say(f"view {tmp_path / 'loop.wl'}")
        words = said.split()
        step, warp = (int(words[words.index(o) + 1]) for o in ("--step", "--warp"))
        trace = Trace.from_bytes((tmp_path / "loop.wl").read_bytes())
        here = session.session.thread().warp
        assert {w.block for w in trace.warps} == {1}
        assert warp == here.number == 1
        assert int(trace.columns["warp"][step]) == warp
        assert int(trace.columns["instruction"][step]) == here.next
        assert int(trace.columns["executing"][step]) == here.splits.table.mask

    x = [("x", np.zeros(192, np.int32))]
    talk(LOOP, 3, 64, x, script, schedule=schedule, seed=2)


def test_a_launch_waits_for_a_notebook() -> None:
    gpu = wl.Device()
    kernel = gpu.compile(LOOP, options=["-G"], name="loop.cu")["loop"]
    x = gpu.zeros(64, np.int32, "x")
    with wl.debugger(kernel[1, 64], x) as debug:
        assert debug("break 7 if threadIdx.x == 5") == "Breakpoint 1 at loop.cu:7"
        assert "loop.cu:7" in debug("run")
        assert debug.value("s") == "30"
        shown = debug._repr_html_()
        assert "→</td><td>7</td>" in shown
        assert "<td>s</td><td>30</td>" in shown
        assert "thread (5,0,0)" in shown
        assert x.copy_to_host()[5] == 0
        debug("reverse-next")
        assert "j = " in debug("info locals")
    assert x.copy_to_host()[5] == 30
    assert "The launch has ended" in debug._repr_html_()
    with pytest.raises(WarploomError, match="this launch has ended"):
        debug("run")


def test_a_launch_for_a_notebook_fails_as_others_do() -> None:
    gpu = wl.Device()
    kernel = gpu.compile(LOOP, options=["-G"], name="loop.cu")["loop"]
    with pytest.raises(LaunchError):
        wl.debugger(kernel[1, 64], 1, 2)
    debug = wl.debugger(kernel[1, 64], gpu.zeros(50, np.int32))
    assert "Invalid __global__ write" in debug("run")
    with pytest.raises(KernelFault):
        debug.close()
    debug.close()


def test_the_page_of_a_terminal_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`view` serves a page until the debugger is left."""
    monkeypatch.chdir(tmp_path)
    served: list[Any] = []

    def serve(command: list[str], **settings: Any) -> Any:
        if "warploom.cli" not in command:
            return popen(command, **settings)
        served.append(popen([sys.executable, "-c", "import time; time.sleep(100)"]))
        return served[-1]

    popen = subprocess.Popen
    gpu = wl.Device()
    kernel = gpu.compile(LOOP, options=["-G"], name="loop.cu")["loop"]
    with wl.debugger(kernel[1, 64], gpu.zeros(64, np.int32, "x")) as debug:
        typed = iter(["break 7", "run", "view", "quit"])
        monkeypatch.setattr(subprocess, "Popen", serve)
        debug._terminal.talk(lambda _: next(typed))
    assert [process.returncode for process in served] == [-signal.SIGTERM]


ARRAYS = """
extern "C" __global__ void arrays(int *x)
{
    int own[300];
    for (int k = 0; k < 300; k++)
        own[k] = k + threadIdx.x;
    x[threadIdx.x] = own[x[threadIdx.x]];
}
"""


def test_a_list_of_variables_shows_the_first_elements_of_arrays() -> None:
    gpu = wl.Device()
    kernel = gpu.compile(ARRAYS, options=["-G"], name="arrays.cu")["arrays"]
    with wl.debugger(kernel[1, 32], gpu.zeros(32, np.int32, "x")) as debug:
        debug("break 7 if threadIdx.x == 5")
        debug("run")
        shown = debug("info locals")
        assert "own = {5, 6, 7, 8, 9, 10, 11, 12, ... (300 elements)}" in shown
        assert "204, ..." in debug("print own")  # 200 elements, as gdb shows: 5 to 204
