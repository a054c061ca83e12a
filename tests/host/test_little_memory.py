"""With 1 GiB of address space, malformed inputs end in errors of Warploom's, never in an abort."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is Linux's")

INPUTS = """
import gc, gzip, resource, struct, warnings
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
import numpy as np, warploom as wl
import lz4.block
from warploom.core import zstd
from warploom.clients import fatbin
from warploom.clients.fatbin import _ENTRY, _HEADER, FATBIN
from warploom.observe.trace import Trace

HEAD = ".version 8.1\\n.target sm_80\\n.address_size 64\\n"
def ptx(text):
    def run():
        gpu = wl.Device("a100")
        module = gpu.compile(HEAD + text, "ptx")
        for name in module.kernels:
            module[name][1, 32](max_instructions=1000)
    return run

def unpacked(packed, flags, plain):
    entry = _ENTRY.pack(1, 0, _ENTRY.size, len(packed), len(packed), 0, 0, 0, 80, 0, 0, flags, 0, plain)
    return lambda: fatbin.ptx_of(_HEADER.pack(FATBIN, 1, 16, len(entry + packed)) + entry + packed, (9, 0))

def device(act):
    return lambda: act(wl.Device("a100"))

bomb = zstd.compress(bytes(1 << 28), 1)
INPUTS = {
    "an empty kernel": (ptx(".visible .entry k(){}"), None),
    "a large shared array": (ptx(".visible .entry k(){ .shared .b8 s[1073741824]; .reg .b32 %r; st.shared.b32 [s], %r; ret; }"), wl.WarploomError),
    "a large local array": (ptx(".visible .entry k(){ .local .b8 s[1073741824]; .reg .b32 %r; st.local.b32 [s], %r; ret; }"), wl.WarploomError),
    "a large variable": (ptx(".global .b8 g[1099511627776]; .visible .entry k(){ ret; }"), wl.WarploomError),
    "large parameters": (ptx(".visible .entry k(.param .b8 p[1099511627776]){ ret; }"), wl.WarploomError),
    "a large alignment": (ptx(".global .align 1099511627776 .b8 g[8]; .visible .entry k(){ ret; }"), wl.WarploomError),
    "many initial values": (ptx(".global .b32 g[1] = {" + "1," * 100_000 + "1}; .visible .entry k(){ ret; }"), wl.WarploomError),
    "deep braces": (ptx(".global .b32 g[1] = " + "{" * 5000 + "1" + "}" * 5000 + ";"), wl.WarploomError),
    "a deep expression": (ptx(".global .b32 g[1] = {" + "(" * 5000 + "1" + ")" * 5000 + "};"), wl.WarploomError),
    "no PTX": (ptx("x" * 1_000_000), wl.WarploomError),
    "a large buffer": (device(lambda gpu: gpu.zeros(1 << 40, np.uint8)), wl.WarploomError),
    "a zstd bomb": (unpacked(bomb, 0x8000, 10), fatbin.NoPtx),
    "an lz4 size that lies": (unpacked(lz4.block.compress(b"x" * 100, store_size=False), 0x2000, 1 << 40), fatbin.NoPtx),
    "a gzip bomb for a trace": (lambda: Trace.from_bytes(gzip.compress(bytes(1 << 27))), wl.WarploomError),
}
for name, (act, expected) in INPUTS.items():
    try:
        act()
        found = None
    except BaseException as error:
        found = error
    well = found is None if expected is None else isinstance(found, expected)
    print("ok" if well else "NO", name, type(found).__name__, str(found)[:150].replace("\\n", " "), flush=True)
    found = None  # its traceback holds a device
    gc.collect()
"""  # noqa: E501  (one input a line)


def test_malformed_inputs_end_cleanly() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INPUTS], capture_output=True, text=True, timeout=300
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 14
    assert [line for line in lines if not line.startswith("ok ")] == []
