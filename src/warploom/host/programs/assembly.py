"""The machine code of kernels: ptxas assembles, nvdisasm prints what it made.

Both come with the extra `ptxas` or with a CUDA toolkit on the PATH and run without a GPU; HiGHS,
which the extra has as well, solves for the counts of basic blocks. What is assembled is the PTX
text with every instruction in a line of its own, so that the line table of the machine code
(`-lineinfo`) names instructions.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warploom.core.temporary import temporary_folder
from warploom.host.programs.ptxas import (
    INSTALL,
    OPTIONS,
    Assembled,
    architecture_of,
    find_tool,
    identity,
    read_messages,
    run_ptxas,
    run_tool,
)
from warploom.llvm import disk_cache
from warploom.program.program import Program

if TYPE_CHECKING:
    from warploom.machinecode.counted import Matching

FIRST = (7, 5)
"""The first compute capability that the tools of CUDA 13 know."""

LISTING = ("--print-code", "--print-life-ranges", "--life-range-mode", "narrow")
"""nvdisasm's options. It prints no lines beside life ranges (`machinecode.cubin`)."""


@dataclass(frozen=True)
class Assembly:
    """The machine code of one kernel beside its PTX, and what ptxas says of it."""

    matching: Matching
    assembled: Assembled


@dataclass(frozen=True)
class NoAssembly:
    """A reason for which there is no machine code of a kernel, as a sentence for its user."""

    reason: str


def assembly_of(program: Program, compute_capability: tuple[int, int]) -> Assembly | NoAssembly:
    """Returns the machine code of a kernel for a compute capability, or why there is none."""
    if compute_capability < FIRST:
        shown = ".".join(str(part) for part in compute_capability)
        return NoAssembly(f"CUDA 13's ptxas does not support compute capability {shown}")
    ptxas, nvdisasm = find_tool("ptxas"), find_tool("nvdisasm")
    solver = find_spec("highspy")
    if ptxas is None or nvdisasm is None or solver is None:
        parts = {"ptxas": ptxas, "nvdisasm": nvdisasm, "HiGHS": solver}
        missing = " and ".join(name for name, found in parts.items() if found is None)
        return NoAssembly(f"{missing} not installed: {INSTALL}")
    # Most processes read no machine code; importing what does takes a tenth of a short command.
    from warploom.machinecode.counted import Matching
    from warploom.machinecode.cubin import KernelCode
    from warploom.machinecode.lines import own_lines
    from warploom.machinecode.listing import read_listing
    from warploom.machinecode.operands import ListingError

    text, owners = own_lines(program.module)
    architecture = architecture_of(text, compute_capability)
    tools = (*identity(ptxas), *OPTIONS, *identity(nvdisasm), *LISTING)
    parts = (*tools, architecture, program.name, text)
    try:
        printed = _printed(parts, ptxas, nvdisasm, alone=len(program.module.entries) == 1)
        assembled = dict(read_messages(printed["messages"]))[program.name]
        code = KernelCode(printed["encodings"], printed["lines"])
        listing = read_listing(program.name, printed["listing"], code)
        matching = Matching.of(program, listing, owners)
    except (_ToolError, ListingError) as error:
        return NoAssembly(str(error))
    return Assembly(matching, assembled)


class _ToolError(Exception):
    """A tool did not do what it was asked for."""


def _printed(parts: tuple[str, ...], ptxas: str, nvdisasm: str, *, alone: bool) -> dict[str, Any]:
    """Returns what the tools print of a kernel, and what its cubin has, from the user's cache where
    it is there; `alone`: it is the only one of its text."""
    from warploom.machinecode.cubin import code_of

    key = disk_cache.key_of(parts, ())
    found = disk_cache.find("machinecode", key)
    if found is not None:
        return json.loads(found)
    *_, architecture, kernel, text = parts
    try:
        ended = run_ptxas(identity(ptxas), architecture, text, None if alone else kernel)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _ToolError(f"ptxas could not be run: {error}") from error
    _check("ptxas", ended.code, ended.messages)
    with temporary_folder() as folder:
        binary = folder / "kernel.cubin"
        binary.write_bytes(ended.binary)
        listing = _run([nvdisasm, *LISTING, str(binary)]).stdout
    code = code_of(ended.binary, kernel)
    printed = {
        "messages": ended.messages,
        "listing": listing,
        "encodings": code.encodings,
        "lines": code.lines,
    }
    disk_cache.store("machinecode", key, json.dumps(printed).encode())
    return printed


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a tool; _ToolError where it fails."""
    name = Path(command[0]).name
    try:
        made = run_tool(command)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _ToolError(f"{name} could not be run: {error}") from error
    _check(name, made.returncode, made.stderr.strip() or made.stdout)
    return made


def _check(name: str, code: int, messages: str) -> None:
    """Raises _ToolError where a tool failed."""
    if code:
        lines = messages.strip().splitlines()
        raise _ToolError(f"{name} failed: {lines[0] if lines else f'exit code {code}'}")
