"""Counts the instructions of the processor that parts of a Python program take, by callgrind.

The code of kernels is made for the level x86-64-v3, which is what valgrind offers: first in a
process of its own, to fill the cache, for compilers are too slow under valgrind. Then a process
under callgrind requests by `Callgrind.dump` that its counts so far are written down.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

LEVEL = "x86-64-v3"
ENVIRONMENT = {
    "WARPLOOM_PROCESSOR": LEVEL,
    "PYTHONHASHSEED": "0",
    "PYTHONDEVMODE": "",
    "PYTHONWARNINGS": "",
    "WARPLOOM_OPT_LEVEL": "3",
}
COUNTS, MAPS = "counts", "maps"
"""The files in which a process leaves its counts and the maps of its memory, with the number of
the part behind the dot."""

MISSING = "valgrind is not installed (Debian: apt-get install valgrind)"

_BASE = ord("C") << 24 | ord("T") << 16
_DUMP, _ZERO, _START = _BASE, _BASE + 1, _BASE + 4
"""Callgrind's requests CALLGRIND_DUMP_STATS, CALLGRIND_ZERO_STATS and
CALLGRIND_START_INSTRUMENTATION (callgrind.h)."""

_COST = re.compile(r"^(calls=.*\n)?0x([0-9a-f]*?)[0-9a-f]{1,3} \S+ (\d+)$", re.MULTILINE)
"""A line of callgrind's counts: the page of an instruction's address, its source line (passed over)
and its cost. The line behind `calls=` has the cost of the called function instead."""

_REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
"""Machine code of a function that hands six numbers, at its argument, to valgrind: four rotations
that change nothing and an exchange of a register with itself (valgrind.h for amd64)."""


class Callgrind:
    """Sends requests to the callgrind that this process runs under; without one, nothing is
    counted."""

    def __init__(self, folder: Path) -> None:
        all_rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=all_rights)
        self._code.write(_REQUEST)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._folder, self._parts = folder, 0

    def start(self) -> None:
        """Begins to count."""
        self._request(_START)

    def zero(self) -> None:
        """Sets the counts back to zero."""
        self._request(_ZERO)

    def dump(self) -> None:
        """Ends a part: writes the counts since the last one, and the map of the memory now."""
        self._request(_DUMP)
        self._parts += 1
        maps = Path("/proc/self/maps").read_text("utf-8")
        (self._folder / f"{MAPS}.{self._parts}").write_text(maps, "utf-8")

    def _request(self, number: int) -> None:
        self._function((ctypes.c_uint64 * 6)(number))


def run(command: Sequence[str]) -> None:
    """Runs a Python program with the environment in which instructions are counted.

    Raises CalledProcessError where the program fails.
    """
    subprocess.run([sys.executable, *command], env={**os.environ, **ENVIRONMENT}, check=True)


def count(command: Sequence[str], folder: Path) -> list[dict[str, int]]:
    """Runs a Python program under callgrind; returns the counts of each part by origin.

    Raises CalledProcessError where the program fails.
    """
    callgrind = [
        "valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no",
        "--dump-instr=yes", "--compress-pos=no", f"--callgrind-out-file={folder / COUNTS}",
    ]  # fmt: skip
    environment = {**os.environ, **ENVIRONMENT}
    subprocess.run([*callgrind, sys.executable, *command], env=environment, check=True)
    numbers = range(1, len(list(folder.glob(f"{COUNTS}.*"))) + 1)
    return [
        by_origin(
            folder / f"{COUNTS}.{number}",
            made_at_run_time((folder / f"{MAPS}.{number}").read_text("utf-8")),
        )
        for number in numbers
    ]


def made_at_run_time(maps: str) -> list[range]:
    """Returns the addresses of machine code that belongs to no file, from a process's map of its
    memory (proc_pid_maps(5))."""
    rows = [line.split(maxsplit=5) for line in maps.splitlines()]
    bounds = [row[0].split("-") for row in rows if "x" in row[1] and len(row) < 6]
    return [range(int(first, 16), int(last, 16)) for first, last in bounds]


def by_origin(part: Path, made: list[range]) -> dict[str, int]:
    """Sums up what callgrind wrote, by where the instructions are: `kernel` is machine code of
    kernels and their helpers, `host` is Python and all libraries. (Callgrind does not see how a
    library calls code that was made at run time, and takes that for the library's.)

    Format: Valgrind manual, "Callgrind Format Specification".
    """
    costs: Counter[str] = Counter()
    for calls, page, cost in _COST.findall(part.read_text("utf-8")):
        if not calls:
            costs[page] += int(cost)
    counts = {"kernel": 0, "host": 0}
    for page, cost in costs.items():
        address = int(f"0{page}000", 16)
        counts["kernel" if any(address in pages for pages in made) else "host"] += cost
    return counts
