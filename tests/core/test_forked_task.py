"""Functions that run in a forked process: their results, and the end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from warploom.core.forked_task import ForkedTask

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only"),
    pytest.mark.skipif(os.cpu_count() == 1, reason="with one core no process is forked"),
]

SECONDS = 20


def started(work: Callable[[], bytes]) -> ForkedTask:
    """Starts a task once those of other tests have ended."""
    end = time.monotonic() + SECONDS
    while (task := ForkedTask.start(work)) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    return task


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the tasks of tests before this one out of account."""
    monkeypatch.setattr(ForkedTask, "_running", set[ForkedTask]())


def waited(task: ForkedTask) -> bytes | None:
    """Returns the result of a task when its process has ended."""
    end = time.monotonic() + SECONDS
    while not task.is_done():
        assert time.monotonic() < end
        time.sleep(0.01)
    return task.result()


def test_the_result_is_what_the_function_returns() -> None:
    result = bytes(range(256)) * 10_000
    assert waited(started(lambda: result)) == result
    assert waited(started(lambda: b"")) == b""


def test_memory_is_that_of_the_program_when_it_began() -> None:
    values = [1, 2, 3]
    task = started(lambda: bytes(values))
    values.clear()
    assert waited(task) == b"\1\2\3"


def test_an_exception_or_a_signal_leaves_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    assert waited(started(lambda: bytes(1 // 0))) is None
    assert waited(started(lambda: os.kill(os.getpid(), signal.SIGKILL) or b"")) is None
    assert capfd.readouterr() == ("", "")


def test_the_process_is_no_child_of_the_program() -> None:
    task = started(lambda: str(os.getppid()).encode())
    assert waited(task) != str(os.getpid()).encode()


def test_a_task_that_nobody_asks_for_takes_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert all(started(lambda: b"") for _ in range(3))


def test_tasks_take_half_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    go = tmp_path / "go"

    def wait() -> bytes:
        while not go.exists():
            time.sleep(0.01)
        return b"gone"

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert ForkedTask.start(lambda: b"") is None
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    first, second = started(wait), started(wait)
    assert ForkedTask.start(lambda: b"") is None
    go.touch()
    assert waited(first) == waited(second) == b"gone"


def test_a_forked_child_of_the_program_has_no_part_in_a_task() -> None:
    task = started(lambda: time.sleep(0.3) or b"result")
    child = os.fork()
    if child == 0:
        forgotten = task.is_forgotten and task.is_done() and task.result() is None
        os._exit(0 if forgotten else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert waited(task) == b"result"
    assert not task.is_forgotten


def test_threads_may_ask_at_once() -> None:
    for _ in range(20):
        task = started(lambda: b"result")
        with ThreadPoolExecutor(4) as threads:
            assert [*threads.map(waited, [task] * 4)] == [b"result"] * 4


PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from warploom.core.forked_task import ForkedTask

def work():
    Path(sys.argv[1]).write_text(str(os.getpid()))
    time.sleep(60)
    return b""

signal.signal(signal.SIGINT, signal.default_int_handler)
task = ForkedTask.start(work)
while not Path(sys.argv[1]).exists() or not Path(sys.argv[1]).read_text():
    time.sleep(0.01)
print("started", flush=True)
"""


@pytest.mark.parametrize(
    ("end", "sent"),
    [
        ("", None),
        ("os._exit(0)", None),
        ("raise SystemExit", None),
        ("time.sleep(60)", signal.SIGINT),
        ("time.sleep(60)", signal.SIGTERM),
        ("time.sleep(60)", signal.SIGKILL),
    ],
)
def test_the_process_ends_with_the_program(
    end: str, sent: signal.Signals | None, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM + end, str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"started\n"
    if sent is not None:
        os.killpg(program.pid, sent)
    program.communicate(timeout=SECONDS)  # no process holds the pipes open
    pid, limit = int(file.read_text("utf-8")), time.monotonic() + SECONDS
    while _runs(pid):
        assert time.monotonic() < limit
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    """Returns whether a process exists and is no zombie, which nobody may have waited for."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text("utf-8")
    except FileNotFoundError:
        return False
