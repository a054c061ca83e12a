"""CUDA C++ to PTX, by NVIDIA's run-time compiler (NVRTC), which needs no driver and no GPU.

Always with `-lineinfo`, so that the PTX says which source line made it. What the PTX means is for
`warploom.ptx`. Where NVRTC is not installed, the lessons and examples are there as PTX
(`precompiled`).
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warploom.core.errors import CompileError
from warploom.core.mutex import Mutex
from warploom.frontends.host_code import (
    HOST_HEADERS,
    included_without_host_functions,
    without_host_functions,
)
from warploom.frontends.precompiled import precompiled_ptx
from warploom.frontends.register_limits import limit_registers

_REGISTER_LIMIT = re.compile(r"--?maxrregcount=(\d+)")

_IN_NVRTC = Mutex("compile CUDA C++")
"""Held by the one thread that is in NVRTC."""

INSTALL_NVRTC = 'pip install "warploom[cuda]"'

FIRST_WITH_FMA = (2, 0)
"""The first compute capability with fused multiply-add of `float` (PTX ISA, "fma"). Below it
`a * b + c` is compiled to a product and a sum, each rounded."""

ARCHITECTURE_OPTIONS = ("-arch", "--gpu-architecture")


def compile_cuda(
    text: str, name: str, compute_capability: tuple[int, int], options: Sequence[str] = ()
) -> str:
    """Compiles a CUDA C++ text to PTX, for a device of that compute capability.

    `name` is the path that the text came from: errors and source lines carry it, and `#include`
    looks in its directory. `options` are NVRTC's own, such as "--std=c++20" or "-DN=4". Raises
    CompileError with NVRTC's log where the text does not compile.
    """
    nvrtc = _nvrtc()
    if nvrtc is None:
        stored = precompiled_ptx(text, name, compute_capability, options)
        if stored is None:
            raise CompileError(without_nvrtc())
        return _limited(stored, options)
    # Folders that options name come before CUDA's, as for nvcc.
    chosen = [f"-I{Path(name).parent}", *options]
    chosen += [f"-I{path}" for path in header_folders()]
    if compute_capability < FIRST_WITH_FMA and not any("fmad" in option for option in options):
        chosen.append("-fmad=false")
    if not any(option.startswith(ARCHITECTURE_OPTIONS) for option in options):
        chosen.append(f"-arch=compute_{_architecture(nvrtc, compute_capability)}")
    encoded = [_bytes(option) for option in ("-lineinfo", *chosen)]
    # NVRTC has locks of its own, which a process that is forked while it works would wait for.
    with _IN_NVRTC:
        try:
            ptx = _compiled(nvrtc, text, name, encoded, {})
        except CompileError as error:
            if not _names_host_code(error.log):
                raise
            # Constant expressions are for both sides, and have no word that says so.
            encoded.append(b"-default-device")
            folders = [Path(name).parent, *(Path(o[2:]) for o in options if o.startswith("-I"))]
            headers = included_without_host_functions(text, folders) | HOST_HEADERS
            ptx = _compiled(nvrtc, without_host_functions(text), name, encoded, headers)
        return _limited(ptx, options)


def _compiled(
    nvrtc: Any, text: str, name: str, options: Sequence[bytes], headers: Mapping[str, str]
) -> str:
    """Returns the PTX of a text, for which `headers` are the files of these names. Raises
    CompileError with NVRTC's log."""
    contents, names = map(_bytes, headers.values()), map(_bytes, headers)
    source = _bytes(text), _bytes(name), len(headers), list(contents), list(names)
    program = _value(nvrtc, nvrtc.nvrtcCreateProgram(*source))
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), list(options))
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise _refusal(name, _log(nvrtc, program))
        size = _value(nvrtc, nvrtc.nvrtcGetPTXSize(program))
        return _filled(nvrtc, nvrtc.nvrtcGetPTX, program, size)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _limited(ptx: str, options: Sequence[str]) -> str:
    """Returns the PTX with the limit of the last `-maxrregcount`, if there is one, in it."""
    given = [found[1] for option in options if (found := _REGISTER_LIMIT.fullmatch(option))]
    return limit_registers(ptx, given[-1]) if given else ptx


def without_nvrtc() -> str:
    """Returns what to do where CUDA C++ cannot be compiled, in one line."""
    if sys.platform == "darwin":
        return (
            "CUDA C++ is compiled by NVRTC, which NVIDIA does not provide for macOS. Compile to "
            "PTX on Linux or Windows (`nvcc -ptx -lineinfo`) and load the .ptx file."
        )
    return f"CUDA C++ is compiled by NVIDIA's NVRTC, which is not installed: {INSTALL_NVRTC}"


def has_nvrtc() -> bool:
    """Returns whether CUDA C++ can be compiled here."""
    return _nvrtc() is not None


def _nvrtc() -> Any | None:
    """Returns NVRTC's Python module, None where it or the library is missing."""
    with _IN_NVRTC:  # the first call loads the library
        try:
            module = importlib.import_module("cuda.bindings.nvrtc")
            module.nvrtcVersion()
        except (ImportError, RuntimeError):
            return None
        return module


def header_folders() -> list[Path]:
    """Returns the folders of CUDA's headers in NVIDIA's wheels; none if there are no such
    wheels."""
    try:
        roots = list(importlib.import_module("nvidia.cu13").__path__)
    except ImportError:
        return []
    return [Path(root) / "include" / part for root in roots for part in ("", "cccl")]


def _architecture(nvrtc: Any, compute_capability: tuple[int, int]) -> int:
    """Returns the newest architecture that NVRTC compiles for and the device can run.

    An older device gets the oldest there is: the machines run any PTX that they know.
    """
    known: list[int] = _value(nvrtc, nvrtc.nvrtcGetSupportedArchs())
    wanted = 10 * compute_capability[0] + compute_capability[1]
    return max((arch for arch in known if arch <= wanted), default=min(known))


def _value(nvrtc: Any, answer: tuple[Any, Any]) -> Any:
    """Returns the value of a call that NVRTC does not refuse in normal use."""
    status, value = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC failed: {status.name}")
    return value


def _filled(nvrtc: Any, fill: Any, program: Any, size: int) -> str:
    """Returns the text that an NVRTC call writes into a buffer, without its closing NUL."""
    buffer = b" " * size
    fill(program, buffer)
    return buffer.rstrip(b"\0").decode(errors="replace")


def _bytes(text: str) -> bytes:
    """Returns a text, or the name of a file, for NVRTC: names may be any bytes."""
    return text.encode("utf-8", "surrogateescape")


def _log(nvrtc: Any, program: Any) -> str:
    size = _value(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
    return _filled(nvrtc, nvrtc.nvrtcGetProgramLog, program, size).strip()


def _names_host_code(log: str) -> bool:
    """Returns whether a log complains about code for the host, such as its headers."""
    words = ("cannot open source file", "<<<", "__host__", "std::", '"cuda')
    return any(each in log for each in words)


def _refusal(name: str, log: str) -> CompileError:
    advice = "Fix the lines listed in the log."
    if _names_host_code(log):
        program = Path(name).name
        advice += (
            " NVRTC compiles only device code. If the file is a complete program, run it with "
            f"`warploom nvcc {program} -o app && warploom run ./app`. To run only one of its "
            f"kernels, compile the file with `warploom nvcc -ptx -lineinfo {program}` and pass the "
            ".ptx file instead of the .cu file. If the file is not a complete program, put host "
            "code and its #includes inside `#ifndef __CUDACC_RTC__`, and add include directories "
            "with -I."
        )
    return CompileError(f"{name} does not compile as CUDA C++. {advice}\n{log}", log)
