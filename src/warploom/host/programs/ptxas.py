"""Asks NVIDIA's assembler for the registers, spills and barriers of kernels.

`ptxas` comes with the extra `ptxas` (the wheel nvidia-cuda-nvcc) or with a CUDA toolkit on the
PATH. It runs without a GPU; nothing but its messages is used.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from warploom.core.temporary import temporary_folder
from warploom.llvm import disk_cache

INSTALL = 'pip install "warploom[ptxas]"'
"""Command that installs ptxas, nvdisasm and HiGHS."""

SPECIFIC = re.compile(r"^\s*\.target\s+sm_\d+[af]\b", re.MULTILINE)
"""A target of one architecture or family (PTX ISA, ".target")."""

OPTIONS = ("-v", "--generate-line-info")
"""Options of ptxas; what the cache keeps of its output is of these."""

SECONDS = 120
"""Longer than this, ptxas is not waited for."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """The resources of one kernel by ptxas; sizes in bytes a thread."""

    registers: int
    barriers: int
    stack: int
    spill_stores: int
    spill_loads: int


@lru_cache
def find_tool(name: str) -> str | None:
    """Returns the path of a tool of the CUDA toolkit: the wheel's, else the one on the PATH, else
    None."""
    for package in ("nvidia.cu13", "nvidia.cuda_nvcc"):
        try:
            roots = list(importlib.import_module(package).__path__)
        except ImportError:
            continue
        for root in roots:
            found = Path(root) / "bin" / name
            if found.exists():
                return str(found)
    return shutil.which(name)


@lru_cache(maxsize=32)
def assemble(ptx: str, compute_capability: tuple[int, int]) -> dict[str, Assembled]:
    """Returns what ptxas reports of each kernel of a module, by name; it is kept in the user's
    cache.

    Empty where there is no ptxas, or it does not accept this PTX for that architecture: each
    release knows some architectures only, and refuses a `.target` above the one asked for.
    """
    ptxas = find_tool("ptxas")
    if ptxas is None:
        return {}
    architecture = architecture_of(ptx, compute_capability)
    key = disk_cache.key_of((*identity(ptxas), *OPTIONS, architecture, ptx), ())
    found = disk_cache.find("ptxas", key)
    if found is not None:
        return dict(read_messages(found.decode()))
    messages = _messages(ptxas, architecture, ptx)
    if messages is None:
        return {}
    disk_cache.store("ptxas", key, messages.encode())
    return dict(read_messages(messages))


def architecture_of(ptx: str, compute_capability: tuple[int, int]) -> str:
    """Returns what ptxas calls the architecture for which a text is assembled: with its own
    features where the text is for such (`.target sm_90a`, `.target sm_100f`)."""
    plain = f"sm_{compute_capability[0]}{compute_capability[1]}"
    return plain + "a" * (SPECIFIC.search(ptx) is not None)


def identity(ptxas: str) -> tuple[str, ...]:
    """Returns what stands for a release of a tool."""
    path = Path(ptxas).resolve()
    seen = path.stat()
    return str(path), str(seen.st_size), str(seen.st_mtime_ns)


@dataclass(frozen=True)
class Ended:
    """Holds how ptxas ended: its exit code, what it wrote, and the binary that it made."""

    code: int
    messages: str
    binary: bytes


def run_tool(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a tool of the toolkit, and returns what it printed. Raises OSError, or
    subprocess.TimeoutExpired after SECONDS."""
    return subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=SECONDS,
        check=False,
    )


@lru_cache(maxsize=2)
def run_ptxas(ptxas: tuple[str, ...], architecture: str, ptx: str, entry: str | None) -> Ended:
    """Assembles a PTX text with its lines, all of it or one kernel, by the ptxas of that
    `identity`: a caller that asks for resources and then for machine code gets both from one run.
    Raises OSError or subprocess.TimeoutExpired where ptxas does not run to its end."""
    with temporary_folder() as folder:
        source, binary = folder / "kernel.ptx", folder / "kernel.cubin"
        source.write_text(ptx, "utf-8")
        command = [ptxas[0], *OPTIONS, "--gpu-name", architecture]
        command += ["--entry", entry] if entry is not None else []
        command += [str(source), "-o", str(binary)]
        made = run_tool(command)
        if made.returncode < 0:
            raise ChildProcessError(f"it was terminated by signal {-made.returncode}")
        written = made.stderr if made.stderr.strip() else made.stdout
        return Ended(made.returncode, written, binary.read_bytes() if binary.exists() else b"")


def _messages(ptxas: str, architecture: str, ptx: str) -> str | None:
    """Returns what ptxas writes of a module, nothing where it refuses it; None where it did not
    run."""
    try:
        ended = run_ptxas(identity(ptxas), architecture, ptx, None)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.messages if ended.code == 0 else ""


def read_messages(text: str) -> Iterator[tuple[str, Assembled]]:
    """Yields the kernels in the messages of `ptxas -v`."""
    for part in re.split(r"Compiling entry function ", text)[1:]:
        name = re.match(r"'([^']+)'", part)
        registers = re.search(r"Used (\d+) registers", part)
        if name is None or registers is None:
            continue
        yield (
            name[1],
            Assembled(
                registers=int(registers[1]),
                barriers=_number(r"used (\d+) barriers", part),
                stack=_number(r"(\d+) bytes stack frame", part),
                spill_stores=_number(r"(\d+) bytes spill stores", part),
                spill_loads=_number(r"(\d+) bytes spill loads", part),
            ),
        )


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0
