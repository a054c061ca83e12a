"""Measures how memory and time of loading PTX grow with what a text has many of.

    python benchmarks/growth.py [--write]

Each text is loaded, and its kernel launched once, in a process of its own with an empty cache: peak
resident memory beside that of the smallest text, and processor seconds. --write puts the table into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import documents

HEAD = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "a.cu"\n'
FACTORS = (1, 10, 100)
HEADER = f"{'':34}{'number':>10}{'KB of text':>12}{'MiB more':>10}{'seconds':>9}"

LOAD = """
import resource, sys, time
import warploom as wl
begin = time.process_time()
wl.Device("h100").load(sys.argv[1])["k"][1, 32]()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, time.process_time() - begin)
"""


def kernel(body: str) -> str:
    """Returns a kernel with a body."""
    return f".visible .entry k() {{ {body} ret; }}\n"


def numbered(form: str, number: int) -> str:
    """Returns a form, with the numbers from 0 in place of `#`, one after the other."""
    return "".join(form.replace("#", str(n)) for n in range(number))


KINDS: dict[str, tuple[int, Callable[[int], str]]] = {
    "registers declared by a range": (10_000, lambda n: kernel(f".reg .b32 %r<{n}>;")),
    "registers that are used": (
        100,
        lambda n: kernel(f".reg .b32 %r<{n}>; " + numbered("mov.u32 %r#, 1;\n", n)),
    ),
    "kernels": (
        100,
        lambda n: (
            numbered(".entry k#() { .reg .b32 %r<9>; mov.u32 %r1, #; ret; }\n", n) + kernel("")
        ),
    ),
    "module-scope variables": (1000, lambda n: numbered(".global .u32 v#[4];\n", n) + kernel("")),
    "lines": (10_000, lambda n: kernel("// a line\n" * n)),
    "source lines (.loc)": (
        100,
        lambda n: kernel(".reg .b32 %r<9>;\n" + numbered(".loc 1 1# 1\nmov.u32 %r1, 1;\n", n)),
    ),
    "labels": (100, lambda n: kernel(numbered("L#: \n", n))),
}
"""How many the smallest text has of each kind, and the text with a number of them."""


def measured(text: str) -> tuple[int, float]:
    """Returns the peak memory in MiB and the processor seconds of loading a text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.ptx"
        path.write_text(HEAD + text, "utf-8")
        done = subprocess.run(
            [sys.executable, "-c", LOAD, path],
            env={**os.environ, "XDG_CACHE_HOME": folder},
            capture_output=True,
            text=True,
            check=True,
        )
    memory, seconds = done.stdout.split()
    return int(memory), float(seconds)


def table() -> str:
    """Returns the table, a line for each kind and number."""
    base, _ = measured(kernel(""))
    lines = [HEADER]
    for name, (least, make) in KINDS.items():
        for factor in FACTORS:
            text = make(least * factor)
            memory, seconds = measured(text)
            size = f"{least * factor:10,}{len(text) // 1000:12,}"
            lines.append(f"{name:34}{size}{memory - base:10}{seconds:9.1f}")
            print(lines[-1], flush=True)
            name = ""
    return "\n".join(lines)


def main() -> None:
    """Measures all kinds."""
    parser = argparse.ArgumentParser(description="Measure how loading grows.")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    arguments = parser.parse_args()
    lines = table()
    if arguments.write:
        documents.write("growth", lines)


if __name__ == "__main__":
    main()
