"""What is no longer used leaves no memory behind."""

from __future__ import annotations

import subprocess
import sys

LOADS = """
import numpy as np, warploom as wl

TEXT = '''
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 g{0}[16];
.visible .entry k{0}(.param .u64 out) {{
  .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [out]; mov.u32 %r, {0}; st.global.u32 [%d], %r; ret;
}}'''

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4 // 1024

gpu = wl.Device(cc="8.0")
out = gpu.zeros(1, np.uint32)

def load(number, launch):
    module = gpu.compile(TEXT.format(number), "ptx")
    if launch:
        module[f"k{number}"][1, 32](out)
        assert out.copy_to_host()[0] == number

for number in range(50):
    load(number, True)
before = resident()
for number in range(50, 150):
    load(number, True)
for number in range(5_000):
    load(number, False)
print(resident() - before)
"""


def test_modules_that_are_dropped_leave_nothing_behind() -> None:
    """5,100 different ones, 100 of them launched: less than 20 MB."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS], capture_output=True, text=True, timeout=300, check=True
    )
    assert int(done.stdout) < 20
