"""Stands in for nvcc: gives PTX where machine code of kernels is asked for.

PyCUDA's `SourceModule` starts nvcc by name. The machine's own nvcc does all else as ever; where
there is none, NVRTC compiles kernels. `environment` puts `bin/nvcc`, which calls this, on the PATH.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warploom.clients.nvcc import INSTALL, completed, real_nvcc
from warploom.clients.settings import Settings
from warploom.core.errors import CompileError, WarploomError
from warploom.core.output_files import write_text
from warploom.devices.catalog import find_device
from warploom.frontends.cuda_cpp import compile_cuda
from warploom.host.programs.sources import read_source

VERSION = "Warploom's replacement for nvcc: compiles kernels to PTX"

KINDS = ("cubin", "fatbin", "ptx")
"""What may be asked for of kernels; all of them become PTX."""

WITH_VALUE = ("-arch", "--gpu-architecture", "-I", "--include-path", "-D", "-U", "-std", "--std")
"""Options of NVRTC's too whose values may be words of their own."""

IGNORED_WITH_VALUE = ("-code", "--gpu-code", "-Xptxas", "-Xcompiler", "--compiler-options")
IGNORED = re.compile(r"-O\d|-m64|--keep|-w|(-Xptxas|--compiler-options|-code|--gpu-code)=.*")
"""Options for machine code, or for the host's compiler."""


@dataclass
class Request:
    """A command line of nvcc's: `kind` is one of KINDS, or empty."""

    sources: list[Path] = field(default_factory=list[Path])
    given_target: Path | None = None
    kind: str = ""
    options: list[str] = field(default_factory=list[str])

    @property
    def target(self) -> Path:
        """Returns the file to write."""
        return self.given_target or Path(f"{self.sources[0].stem}.{self.kind}")


def read(arguments: Sequence[str]) -> Request:
    """Returns the request of a command line."""
    request = Request()
    words = iter(arguments)
    for word in words:
        if word.startswith("-") and word.lstrip("-") in KINDS:
            request.kind = request.kind or word.lstrip("-")
        elif word in ("-o", "--output-file"):
            request.given_target = Path(_next(words, word))
        elif word in IGNORED_WITH_VALUE:
            _next(words, word)
        elif word in WITH_VALUE:
            joint = "" if word in ("-I", "-D", "-U") else "="
            request.options.append(word + joint + _next(words, word))
        elif not word.startswith("-"):
            request.sources.append(Path(word))
        elif not IGNORED.fullmatch(word):
            request.options.append(re.sub(r"^(-arch|--gpu-architecture)=sm_", r"\1=compute_", word))
    return request


def _next(words: Iterator[str], option: str) -> str:
    try:
        return next(words)
    except StopIteration:
        raise CompileError(f"the option {option} requires a value") from None


def compile_kernels(request: Request) -> None:
    """Writes the PTX, by NVRTC. Raises CompileError for what is no compilation of kernels, and with
    NVRTC's log where the source does not compile."""
    if not request.kind or len(request.sources) != 1:
        raise CompileError(
            "nvcc is not installed; this is Warploom's replacement, which compiles only the "
            "kernels in one file (nvcc --cubin, --fatbin or --ptx FILE.cu). To compile a whole "
            "program, put NVIDIA's nvcc on the PATH or install its wheels: "
            f"{INSTALL}"
        )
    [source] = request.sources
    text = read_source(source)
    device = find_device(Settings.from_environment().device)
    name = str(source.absolute())
    ptx = compile_cuda(text, name, device.compute_capability, request.options)
    write_text(request.target, ptx)


def forward(nvcc: str, arguments: Sequence[str]) -> int:
    """Runs NVIDIA's own compiler, with PTX for a cubin and with what programs need to be run here;
    returns its exit status."""
    changed = ["--ptx" if word.lstrip("-") == "cubin" else word for word in arguments]
    if changed != list(arguments):
        request = read(arguments)
        if request.sources and request.given_target is None:
            changed += ["-o", str(request.target)]
    return subprocess.run([nvcc, *completed(changed)], check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Returns the exit status of a call of nvcc with these arguments."""
    nvcc = real_nvcc(os.environ.get("PATH", ""))
    asks_version = "--version" in arguments or "-V" in arguments
    if asks_version:
        print(VERSION, flush=True)  # caches identify by it who made what they have
    if nvcc:
        return forward(nvcc, arguments)
    if asks_version:
        return 0
    try:
        compile_kernels(read(arguments))
    except WarploomError as error:
        print(f"nvcc (Warploom's): {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
