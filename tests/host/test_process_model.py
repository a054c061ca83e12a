"""Launches and compilations in signal handlers, forked processes, and at the end of a process
(docs/processes.md): they work or are refused by name, and nothing waits for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither fork nor setitimer"),
]

BEGIN = """
import atexit, os, signal, sys, threading, time, warnings
import numpy as np
import warploom as wl
warnings.simplefilter("ignore", DeprecationWarning)
SOURCE = '''extern "C" __global__ void k(float *x, int n)
{ for (int i = 0; i < n; i++) x[0] = x[0] * 0.9f + 1; }'''
gpu = wl.Device("h100")
module = gpu.compile(SOURCE)
kernel, x = module["k"], np.zeros(1, np.float32)
kernel[1, 1](x, 1)

def attempt(work):
    try:
        work()
    except wl.LaunchError as error:
        print("refused:", error)
    else:
        print("done")

def another():
    changed = SOURCE.replace("0.9f", f"0.{time.time_ns()}f")
    y = np.zeros(1, np.float32)
    gpu.compile(changed)["k"][1, 1](y, 1)
    assert y[0] == 1

def interrupted(work, launch):
    def handler(*_):
        attempt(work)
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        launch()
    except KeyboardInterrupt:
        print("ended")
"""


def run(program: str) -> list[str]:
    """Returns the lines that a program prints; it must end well within a minute."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "work",
    [
        "lambda: kernel[1, 1](x, 1)",
        "lambda: wl.Device('a100').compile(SOURCE)['k'][1, 1](x, 1)",
        "lambda: (kernel[1, 1, stream](np.zeros(1, np.float32), 1), stream.synchronize())",
    ],
)
def test_a_signal_handler_cannot_wait_for_the_launch_that_it_interrupts(work: str) -> None:
    program = (
        "stream = gpu.stream()\nkernel[1, 1, stream](np.zeros(1, np.float32), 1)\n"
        f"interrupted({work}, lambda: kernel[1, 1](x, 2_000_000_000))"
    )
    refusal, end = run(program)
    assert refusal.startswith("refused: cannot")
    assert "from a signal handler" in refusal
    assert end == "ended"


def test_a_signal_handler_launches_while_nothing_runs() -> None:
    program = "interrupted(lambda: kernel[1, 1](x, 1), lambda: time.sleep(30))"
    assert run(program) == ["done", "ended"]


@pytest.mark.parametrize("work", ["another()", "kernel[1, 1](np.zeros(1, np.float32), 1)"])
def test_children_that_are_forked_while_a_thread_compiles_work(work: str) -> None:
    lines = run(f"""
stop = False
def compile():
    while not stop:
        another()
thread = threading.Thread(target=compile)
thread.start()
for _ in range(5):
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        {work}
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop = True
thread.join()
print("ended")
""")
    assert lines == ["ended"]


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.4])
def test_a_fork_waits_until_a_thread_has_imported_the_compiler(delay: float) -> None:
    """Each module takes 20 ms to be found, so that the fork comes while some module is imported."""
    lines = run(f"""
sys.modules.pop("warploom.compilation.emission", None)
class Slow:
    def find_spec(self, name, *_):
        if name.startswith("warploom."):
            time.sleep(0.02)
sys.meta_path.insert(0, Slow())
threading.Thread(target=another).start()
time.sleep({delay})
child = os.fork()
if child == 0:
    another()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("ended")
""")
    assert lines == ["ended"]


def test_launches_at_exit_work() -> None:
    program = "atexit.register(lambda: (another(), print('at exit')))\nprint('ended')"
    assert run(program) == ["ended", "at exit"]
