"""Files that Warploom 0.1.0 wrote before the packages of the engine had their names: a trace and a
core file. Names of classes and fields may change; such files have to be read.

Both are of one PTX text. Its kernel `k` adds 1 to an element in the threads below 16 of each warp:
five instructions, a branch, three instructions under the branch, a barrier and the return. `bad`
stores thread t's number 64 + 4 * t bytes after the start of a buffer of 128 bytes.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from warploom.observe.trace import Trace

FILES = Path(__file__).parent / "saved_files"
ALL, LOW, HIGH = 0xFFFF_FFFF, 0xFFFF, 0xFFFF_0000


def test_a_trace() -> None:
    trace = Trace.from_bytes((FILES / "trace.wltrace").read_bytes())
    assert (trace.launch.kernel, trace.launch.grid, trace.launch.block) == (
        "k",
        (2, 1, 1),
        (32, 1, 1),
    )
    assert [(warp.block, warp.warp) for warp in trace.warps] == [(0, 0), (1, 0)]
    # A branch executes in the lanes that take it.
    of_a_warp = [ALL] * 5 + [HIGH] + [LOW] * 3 + [ALL] * 2
    assert trace.columns["executing"].tolist() == of_a_warp * 2
    assert trace.allocations[0].size == 64 * 4


CORE = """
from sys import argv
from warploom.host.core_files.opening import open_core
opened = open_core(argv[1])
try:
    print([opened.core.made_by, opened.core.kernel, opened.core.reason,
           opened.launch.grid, opened.launch.block, opened.core.message])
finally:
    opened.kernel.context.memory.close()
"""
TRIES = 5
"""Memory is put back at its addresses, which a process may use otherwise by chance."""


def core_in_a_process(tries: int = TRIES) -> subprocess.CompletedProcess[str]:
    """Returns what a process printed that opened the core file; tries again where its addresses are
    in use."""
    command = [sys.executable, "-c", CORE, str(FILES / "fault.wlcore")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if tries > 1 and "are already in use in this process" in done.stderr:
        return core_in_a_process(tries - 1)
    return done


def test_a_core_file() -> None:
    done = core_in_a_process()
    assert done.returncode == 0, done.stderr
    *core, message = ast.literal_eval(done.stdout)
    assert core == ["0.1.0", "bad", "fault", (1, 1, 1), (32, 1, 1)]
    # 64 + 4 * 16 is the first address after the buffer.
    assert "by thread (16, 0, 0) in block (0, 0, 0)" in message
