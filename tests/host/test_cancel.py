"""Launches end when they are interrupted or cancelled, and never hold the process or a lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from needs import NEEDS_NVRTC

import warploom as wl

HERE = Path(__file__).parent

ENDLESS = """
extern "C" __global__ void endless(int* out) { for (;;) atomicAdd(out, 1); }
extern "C" __global__ void one(int* out) { out[threadIdx.x] = 1; }
extern "C" __global__ void fill(int* out, long long n) {
    for (long long i = 0; i < n; i++) ((volatile int*)out)[threadIdx.x] = -1;
}
extern "C" __global__ void prints(int* out) { printf("x"); }
"""

FOREVER = 1 << 40


def run_python(code: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    head = (
        f"import numpy as np, os, signal, threading, time, warploom as wl\nENDLESS = {ENDLESS!r}\n"
    )
    return subprocess.run(
        [sys.executable, "-c", head + code], capture_output=True, text=True, timeout=seconds
    )


def test_every_kind_of_endless_kernel_ends_at_an_interrupt() -> None:
    script = HERE / "endless.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 24
    for line in lines:
        assert float(line.rpartition(": ")[2].removesuffix(" s")) < 5, line


@NEEDS_NVRTC
@pytest.mark.parametrize("wait", ["run.counters", "stream.synchronize()", "gpu.turn.acquire()"])
def test_an_interrupt_that_does_not_wake_the_thread_ends_its_wait(wait: str) -> None:
    """A signal that another thread gets leaves the main thread asleep, as does one that arrives
    just before it goes to sleep."""
    done = run_python(
        "import signal, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def interrupt(): signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n"
        "gpu = wl.Device(); module = gpu.compile(ENDLESS); a = gpu.zeros(64, np.int32)\n"
        "stream = gpu.stream(); run = module['endless'][1, 32, stream](a); time.sleep(1)\n"
        "threading.Timer(1, interrupt).start()\n"
        f"try: {wait}\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


FINALIZERS = """
import gc
from warploom.core import interrupts
from warploom.machine.compiled.pace import Pace
from warploom.machine.reference.state import LaunchState

class Slow:
    def __init__(self): self.me = self
    def __del__(self):
        end = time.monotonic() + 0.05
        while time.monotonic() < end: pass

def littered(call):
    def littering(*given):
        Slow(); gc.collect()
        return call(*given)
    return littering

LaunchState.count_issue = littered(LaunchState.count_issue)
Pace.adjust = littered(Pace.adjust)
"""


@NEEDS_NVRTC
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_an_interrupt_that_arrives_in_a_finalizer_is_not_lost(engine: str) -> None:
    """Python only prints what a finalizer raises. Here one runs for as long as code does, in every
    pause or before every instruction."""
    done = run_python(
        FINALIZERS + "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"gpu = wl.Device(engine='{engine}'); module = gpu.compile(ENDLESS)\n"
        "a = gpu.zeros(64, np.int32)\n"
        "threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try: module['endless'][1, 32](a)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@NEEDS_NVRTC
def test_the_process_ends_though_a_stream_runs_an_endless_kernel() -> None:
    done = run_python(
        "gpu = wl.Device(); module = gpu.compile(ENDLESS); a = gpu.zeros(64, np.int32)\n"
        "run = module['endless'][1, 32, gpu.stream()](a); time.sleep(1); print('end')"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@NEEDS_NVRTC
def test_pytest_ends_at_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "test_endless.py").write_text(
        f"import numpy as np, warploom as wl\n\ndef test_it():\n"
        f"    gpu = wl.Device(); a = gpu.zeros(64, np.int32)\n"
        f"    module = gpu.compile('''{ENDLESS}''')\n"
        f"    try: module['endless'][1, 32](a, max_instructions=1)\n"
        f"    except wl.InstructionLimit: print('ready', flush=True)\n"
        f"    module['endless'][1, 32](a)\n",
        "utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # not as in the background
    )
    assert process.stdout is not None
    try:
        assert any("ready" in line for line in process.stdout)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in rest


def test_a_launch_that_waits_for_another_is_interrupted_with_it() -> None:
    gpu = wl.Device()
    module, a = gpu.compile(ENDLESS), gpu.zeros(64, np.int32)
    module["one"][1, 32](a)
    run = module["endless"][1, 32, gpu.stream()](a)
    time.sleep(0.2)  # it has begun
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            module["one"][1, 32](a)
        with pytest.raises(wl.LaunchCancelled):
            _ = run.counters
    finally:
        signal.signal(signal.SIGINT, before)
    module["one"][1, 32](a)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_stream_can_be_cancelled_and_used_again(engine: str) -> None:
    gpu = wl.Device(engine=engine)
    module, a, stream = gpu.compile(ENDLESS), gpu.zeros(64, np.int32), gpu.stream()
    running = module["endless"][1, 32, stream](a)
    behind = module["one"][1, 32, stream](a)
    time.sleep(0.2)
    stream.cancel()
    for run in (running, behind):
        with pytest.raises(wl.LaunchCancelled, match="Launch it again"):
            _ = run.counters
    with pytest.raises(wl.LaunchCancelled):
        stream.synchronize()
    module["one"][1, 32, stream](a)
    stream.synchronize()
    assert a.copy_to_host()[1] == 1


def test_one_launch_of_a_stream_can_be_cancelled() -> None:
    gpu = wl.Device()
    module, a, stream = gpu.compile(ENDLESS), gpu.zeros(64, np.int32), gpu.stream()
    running = module["endless"][1, 32, stream](a)
    behind = module["one"][1, 32, stream](a)
    running.cancel()
    assert behind.counters.warp_instructions > 0
    behind.cancel()  # it has ended: nothing happens
    assert behind.counters.warp_instructions > 0


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_memory_freed_under_a_launch_stays_its_own(engine: str) -> None:
    gpu = wl.Device(engine=engine)
    module, a, stream = gpu.compile(ENDLESS), gpu.zeros(64, np.int32), gpu.stream()
    module["fill"][1, 64](a, 1)
    address = a.address
    run = module["fill"][1, 64, stream](a, FOREVER)
    time.sleep(0.3)
    assert gpu.memory.view(address, 4).view(np.int32)[0] == -1  # it runs
    a.free()
    b = gpu.to_device(np.arange(64, dtype=np.int32))
    assert b.address != address
    time.sleep(0.2)
    run.cancel()
    with pytest.raises(wl.LaunchCancelled):
        _ = run.counters
    assert (b.copy_to_host() == np.arange(64)).all()
    c = gpu.zeros(64, np.int32)  # now its place is free, and zero
    assert c.address == address
    assert not c.copy_to_host().any()
    c.free()
    arguments = address.to_bytes(8, "little") + (1).to_bytes(8, "little")
    with pytest.raises(wl.MemoryFault):
        module["fill"][1, 64].packed(arguments)


def test_a_launch_from_the_output_callback_is_refused() -> None:
    refused: list[str] = []

    def output(_: str) -> None:
        for action in (lambda: module["one"][1, 1](a), queued.synchronize):
            try:
                action()
            except wl.LaunchError as error:
                refused.append(str(error))

    gpu = wl.Device(output=output)
    module, a, queued = gpu.compile(ENDLESS), gpu.zeros(64, np.int32), gpu.stream()
    gate = threading.Event()
    queued.submit(lambda: gate.wait(60))
    module["prints"][1, 1](a)
    gate.set()
    assert len(refused) == 2
    assert refused[0].startswith("cannot launch a kernel from the output callback")
    assert refused[1].startswith("cannot wait for a stream from the output callback")
    queued.synchronize()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("what", ["", ", gpu.stream()", ", stream"])
@pytest.mark.parametrize("running", ["one", "endless"])
def test_a_forked_child_launches(what: str, running: str) -> None:
    """With the stream that the parent used, too, and while a kernel of the parent's runs."""
    done = run_python(
        f"gpu = wl.Device(); module = gpu.compile(ENDLESS); a = gpu.zeros(64, np.int32)\n"
        f"stream = gpu.stream(); old = module['{running}'][1, 32, stream](a); time.sleep(0.2)\n"
        f"module['one'][1, 32] if '{running}' == 'endless' else old.counters\n"
        f"child = os.fork()\n"
        f"if not child:\n"
        f"    b = gpu.zeros(64, np.int32)\n"
        f"    module['one'][1, 32{what}](b).counters\n"
        f"    print(b.copy_to_host()[:2], flush=True)\n"
        f"    try: print(old.counters.warp_instructions > 0)\n"
        f"    except wl.LaunchError as error: print(error)\n"
        f"    os._exit(7)\n"
        f"print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[0] == "[1 1]"
    assert lines[-2] == "7"


def test_launches_in_streams_leave_nothing_behind() -> None:
    """10,000 of them without a wait, and their results dropped: less than 50 MB."""
    done = run_python(
        "import resource\n"
        "gpu = wl.Device(); one = gpu.compile(ENDLESS)['one']; a = gpu.zeros(64, np.int32)\n"
        "stream = gpu.stream()\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        "for n in range(200): one[1, 32, stream](a)\n"
        "stream.synchronize(); before = peak()\n"
        "for n in range(10_000):\n"
        "    one[1, 32, stream](a)\n"
        "stream.synchronize(); print(peak() - before)",
        seconds=120,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50
