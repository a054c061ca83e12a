"""How long a kernel of 10,000 PTX instructions takes to compile, and from the cache.

`python benchmarks/compile.py` prints the table that docs/benchmarks.md holds. A time is what a
process of its own takes of the processor, with what it starts (ptxas, where there is one): from the
start of Python over the imports and the text to the end of a launch of one warp. The second process
finds the first one's machine code in the cache. Python's own byte code is there, as an installer
leaves it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

INSTRUCTIONS = 10_000
REGISTERS = 64
OPERATIONS = (
    "add.u32 {d}, {a}, {b}",
    "mad.lo.u32 {d}, {a}, {b}, {d}",
    "xor.b32 {d}, {a}, {b}",
    "shf.l.wrap.b32 {d}, {a}, {b}, 7",
    "fma.rn.f32 {d}, {a}, {b}, {d}",
    "min.s32 {d}, {a}, {b}",
    "sub.u32 {d}, {a}, {b}",
    "popc.b32 {d}, {a}",
)
LAUNCH = """
import os, sys
import warploom as wl
gpu = wl.Device("a100")
kernel = gpu.load(sys.argv[1])["k"]
kernel[1, 32](gpu.zeros(64 * 32, "uint32"))
print(sum(os.times()[:4]))
"""


def arithmetic() -> Iterator[str]:
    """One basic block of values that lanes differ in, without memory."""
    yield from by_lane()
    yield from computing(INSTRUCTIONS - REGISTERS)


def straight() -> Iterator[str]:
    """The same; every eighth instruction accesses memory."""
    yield from by_lane()
    yield from computing(INSTRUCTIONS - REGISTERS, every=8)


def by_lane() -> Iterator[str]:
    """Something else for each register and lane."""
    for number in range(REGISTERS):
        yield f"mad.lo.u32 %r{number}, %t, {7 * number + 1}, {number}"


def loops() -> Iterator[str]:
    """50 loops of 200 instructions, each of which lanes leave separately."""
    for number in range(50):
        yield f"L{number}:"
        yield from computing(195, every=8)
        yield "add.u32 %n, %n, 1"
        yield "and.b32 %m, %n, 3"
        yield "setp.lt.u32 %p, %m, %t"
        yield f"@%p bra L{number}" if number % 2 else f"@!%p bra L{number}E"
        yield f"L{number}E:"


def blocks() -> Iterator[str]:
    """1,000 branches of which both sides compute."""
    for number in range(1000):
        yield f"setp.lt.u32 %p, %r{number % REGISTERS}, %t"
        yield f"@%p bra T{number}"
        yield from computing(3, first=number)
        yield f"bra J{number}"
        yield f"T{number}:"
        yield from computing(4, first=number + 5)
        yield f"J{number}:"


def computing(count: int, *, every: int = 0, first: int = 0) -> Iterator[str]:
    """Instructions over all registers."""
    for number in range(first, first + count):
        d, a, b = (f"%r{(number * step + 1) % REGISTERS}" for step in (7, 11, 29))
        if every and number % every == 0:
            yield f"ld.global.u32 {d}, [%at + {128 * (number % 64)}]"
        elif every and number % every == 4:
            yield f"st.global.u32 [%at + {128 * (number % 64)}], {a}"
        else:
            yield OPERATIONS[number % len(OPERATIONS)].format(d=d, a=a, b=b)


def text_of(body: Iterator[str]) -> str:
    """A kernel whose result depends on every register."""
    lines = "\n".join(line if line.endswith(":") else f"\t{line};" for line in body)
    folded = "\n".join(f"\txor.b32 %r1, %r1, %r{number};" for number in range(2, REGISTERS))
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
\t.reg .b32 %r<{REGISTERS}>, %t, %n, %m;
\t.reg .b64 %at;
\t.reg .pred %p;
\tmov.u32 %t, %tid.x;
\tld.param.u64 %at, [out];
\tmad.wide.u32 %at, %t, 4, %at;
\tand.b32 %t, %t, 3;
\tmov.u32 %n, 0;
{lines}
{folded}
\tst.global.u32 [%at], %r1;
\tret;
}}
"""


def main() -> None:
    kernels = {
        "arithmetic": arithmetic,
        "straight line": straight,
        "50 loops": loops,
        "1,000 branches": blocks,
    }
    print(f"{'kernel':<16}{'instructions':>13}{'first run':>12}{'second run':>12}")
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["WARPLOOM_CACHE_DIR"] = str(Path(folder) / "cache")
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        warm = Path(folder) / "warm.ptx"
        warm.write_text(text_of(iter(())), "utf-8")
        launch(warm, environment)  # compiles what all kernels share
        for name, body in kernels.items():
            path = Path(folder) / "kernel.ptx"
            path.write_text(text_of(body()), "utf-8")
            count = sum(not line.endswith(":") for line in body())
            first, second = (launch(path, environment) for _ in range(2))
            print(f"{name:<16}{count:>13,}{first:>10.2f} s{second:>10.2f} s", flush=True)


def launch(path: Path, environment: dict[str, str]) -> float:
    """Seconds for a run in a new process."""
    command = [sys.executable, "-c", LAUNCH, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
