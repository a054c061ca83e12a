"""The programs of HeCBench, as tools/cuda_samples.py builds and runs them.

A program is a folder `src/NAME-cuda` with a Makefile, whose rule `run` has its arguments. The last
number of these is how often a kernel is repeated in most programs, for the sake of its time: it
is 1 here (ARGUMENTS has the others).
"""

from __future__ import annotations

import random
import re
from pathlib import Path

BEYOND = re.compile(
    r"-l(cublas|cublasLt|cufft|curand|cusolver|cusparse|cudnn|nccl|npp\w*|nvml|mpi\w*|gsl|boost\w*)\b"
    r"|mpicc|mpicxx|mpirun|nvc\+\+"
)
"""Words of a Makefile that asks for libraries of machine code, or for what a C++ compiler lacks."""

PASSED = re.compile(r"\b(PASS(ED)?|SUCCESS\w*|Test passed|correct|verified|OK)\b", re.IGNORECASE)
UNOPENED = re.compile(
    r"\b(can ?not|could not|failed to|error|unable to)\b.{0,20}\b(open|load)", re.IGNORECASE
)
"""Words of a program that found no input: the repository lacks some of them."""

FAILED = re.compile(
    r"\b(FAIL(ED|URE)?|incorrect|mismatch(es)?|wrong)\b(?! *[:=]? *0\b)", re.IGNORECASE
)
"""Words with which programs judge their results: most exit with 0 whatever these are."""

ARGUMENTS = {
    "background-subtract": ["1024", "512", "0", "5"],
    "crc64": ["2", "5", "33554432"],
    "eikonal": ["-s", "64"],
}
"""Arguments of programs whose last number is a size, not a number of repetitions."""

REASONS = {
    "axhelm": "lacks its archive of BLAS",
    "binomial": "not finished after 200 s of CPU time",
    "bitcracker": "lacks an input file",
    "bitpermute": "67 s: permutes 2^28 numbers",
    "cmp": "lacks an input file",
    "contract": "not finished after 200 s of CPU time",
    "ddbp": "201 s: over 6.7 billion warp instructions in 1,170 launches",
    "ert": "not finished after 130 s of CPU time",
    "geglu": "74 s: its largest tensors exceed the caches and are written for the first time",
    "gpp": "not finished after 200 s of CPU time: 2.1 GB of operands",
    "grep": "lacks an input file",
    "histogram": "one of its kernels writes past the end of its array, which Warploom reports",
    "idivide": "132 s: 199,998 launches, 213 billion warp instructions",
    "mtf": "uses std::cout without <iostream>",
    "sad": "lacks an archive",
    "sosfil": "not finished after 80 s of CPU time",
    "tridiagonal": "not finished after 200 s of CPU time: repeats each solver 100 times",
}
"""Why programs need more than the CPU time that they may use, or fail."""


def is_hecbench(checkout: Path) -> bool:
    """Returns whether a folder is a checkout of HeCBench."""
    return (checkout / "benchmarks.yaml").exists() and (checkout / "src").is_dir()


def programs(checkout: Path, most: int, seed: int) -> list[Path]:
    """Returns `most` programs, drawn, of those that need a CUDA toolkit and no more."""
    found = [
        folder
        for folder in sorted((checkout / "src").glob("*-cuda"))
        if (folder / "Makefile").exists() and not BEYOND.search(makefile(folder))
    ]
    return sorted(random.Random(seed).sample(found, min(most, len(found))))


def makefile(folder: Path) -> str:
    return (folder / "Makefile").read_text("utf-8", errors="replace")


def arguments(folder: Path) -> list[str]:
    """Returns the arguments that the Makefile runs a program with, but 1 for their last number, or
    those of ARGUMENTS."""
    own = ARGUMENTS.get(folder.name.removesuffix("-cuda"))
    if own is not None:
        return own
    text = makefile(folder).replace("\\\n", " ")
    rule = re.search(r"^run\s*:.*\n\t(.*)", text, re.MULTILINE)
    words = rule[1].split() if rule else []
    program = next((n for n, word in enumerate(words) if word.startswith("./")), len(words))
    given = [word for word in words[program + 1 :] if word not in ("|", "&&")]
    numbers = [n for n, word in enumerate(given) if word.isdecimal()]
    if numbers:
        given[numbers[-1]] = "1"
    return given


def command(folder: Path) -> tuple[list[str], Path]:
    """Returns the command that builds a program, and where that puts it."""
    name = re.search(r"^program\s*:?=\s*(\S+)", makefile(folder), re.MULTILINE)
    number = re.search(r"^ARCH\s*[:?]?=\s*\d", makefile(folder), re.MULTILINE)
    architecture = "80" if number else "compute_80"  # PTX alone takes less time
    return (
        ["make", "-C", str(folder), f"ARCH={architecture}", "OPTIMIZE=yes"],
        folder / (name[1] if name else "main"),
    )


def verdict(output: str) -> str:
    """Returns what a program that exited with 0 says of its results."""
    if FAILED.search(output):
        return "says that its result is wrong"
    return "passed" if PASSED.search(output) else "ran, and does not judge its result"
