"""Runs that the page asks for end with their client and with the server, however that ends."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from processes import started

from warploom.ui.runner import too_large

SERVER = """
from warploom.ui.runner import Limits
from warploom.ui.server import Viewer, serve
from warploom.ui.shows import live_show
serve(Viewer(live_show("k.cu", 0), [], Limits(seconds=600)), lambda url: print(url, flush=True))
"""

ENDLESS = "__global__ void k(int *out) { while (true) atomicAdd(out, 1); }"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@dataclass
class Served:
    """A server in a process of its own, and where it answers."""

    process: subprocess.Popen[str]
    port: int
    token: str
    connections: list[http.client.HTTPConnection] = field(
        default_factory=list[http.client.HTTPConnection]
    )
    """The connections that tests have opened, to be closed at the end."""

    def ask(self, method: str, path: str, body: str = "") -> http.client.HTTPConnection:
        """Returns the connection on which a request has been sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        self.connections.append(connection)
        connection.request(method, path, body, {"x-warploom-token": self.token})
        return connection

    def begin_run(self) -> http.client.HTTPConnection:
        """Asks for a run that does not end; returns when its process is there."""
        body = json.dumps({"name": "k.cu", "source": ENDLESS, "args": ["i32[1]=zeros"]})
        connection = self.ask("POST", "/run", body)
        assert becomes_true(lambda: bool(self.children()))
        return connection

    def children(self) -> list[int]:
        """Returns the processes of runs."""
        return [pid for pid in processes() if parent_of(pid) == self.process.pid]


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent_of(pid: int) -> int | None:
    """Returns the parent of a process, None if it has ended."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def becomes_true(holds: Callable[[], bool]) -> bool:
    """Waits until something holds; returns false after a time in which it should, on any
    computer."""
    for _ in range(1200):
        if holds():
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    line, nowhere = [sys.executable, "-c", SERVER], subprocess.DEVNULL
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    with started(line, stdout=subprocess.PIPE, stderr=nowhere, text=True, env=own) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)/\?token=(\S+)", process.stdout.readline())
        assert found is not None
        made = Served(process, int(found[1]), found[2])
        yield made
        children = made.children()
        for connection in made.connections:
            connection.close()
    for pid in children:
        if parent_of(pid) is not None:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL", "SIGHUP"])
def test_a_run_ends_with_its_server(served: Served, name: str, tmp_path: Path) -> None:
    connection = served.begin_run()
    [run] = served.children()
    assert list(tmp_path.glob("warploom-*"))
    served.process.send_signal(signal.Signals[name])
    served.process.wait(120)
    assert becomes_true(lambda: parent_of(run) is None)
    assert not list(tmp_path.glob("warploom-*"))
    connection.close()


def test_a_run_ends_with_its_client(served: Served) -> None:
    connection = served.begin_run()
    [run] = served.children()
    connection.close()
    assert becomes_true(lambda: parent_of(run) is None)
    answer = served.ask("GET", "/").getresponse()
    assert answer.status == 200


def test_a_request_without_an_end_does_not_hold_the_server(served: Served) -> None:
    """Fails by the time limit of the wait, TimeoutExpired."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.putrequest("POST", "/run")
    connection.putheader("x-warploom-token", served.token)
    connection.putheader("content-length", "1000")
    connection.endheaders(b"{")
    time.sleep(0.5)
    served.process.send_signal(signal.SIGINT)
    served.process.wait(120)
    connection.close()


def test_a_trace_with_a_long_number_does_not_exist(served: Served) -> None:
    assert served.ask("GET", f"/trace/{'1' * 5000}").getresponse().status == 404


def test_two_runs_at_once_end_with_the_server(served: Served) -> None:
    connections = [served.begin_run()]
    thread = threading.Thread(target=lambda: connections.append(served.begin_run()))
    thread.start()
    thread.join()
    assert becomes_true(lambda: len(served.children()) == 2)
    runs = served.children()
    served.process.send_signal(signal.SIGTERM)
    served.process.wait(120)
    assert becomes_true(lambda: all(parent_of(run) is None for run in runs))


EATER = "import time; held = bytearray(200 << 20); time.sleep(600)"

STARTER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {EATER!r}])"


def test_memory_of_what_a_run_starts_is_the_runs() -> None:
    """Fails by TimeoutError, if `too_large` does not notice the child's 200 MiB."""
    with started([sys.executable, "-c", STARTER], start_new_session=True) as process:
        try:
            asyncio.run(asyncio.wait_for(too_large(process.pid, 150 << 20), 120))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
