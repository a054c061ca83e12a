"""OpenCL C to PTX, by the clang of the machine: its built-in functions come from libclc, their
mathematics from NVIDIA's libdevice, as that of CUDA C++ does.

Always with line information. What the PTX means is for `warploom.ptx`. Images are not there: libclc
has no functions for them on this target.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warploom.core.errors import CompileError
from warploom.core.output_files import write_text
from warploom.core.temporary import temporary_folder
from warploom.frontends.cuda_cpp import FIRST_WITH_FMA
from warploom.frontends.opencl_functions import functions_text
from warploom.frontends.opencl_metadata import DeclaredKernel, declared_kernels
from warploom.frontends.register_limits import limit_registers

TARGET = "nvptx64-nvidia-nvcl"
"""With this one, PTX shows which parameters point to local memory."""

LIBCLC = ("nvptx64--nvidiacl.bc", "nvptx64--.bc")
NEWEST_CLANG, OLDEST_CLANG = 25, 14

VERSIONS = (((5, 0), 300), ((3, 0), 120), ((1, 0), 110))
"""The version of OpenCL, as `__OPENCL_VERSION__` has it, that NVIDIA's last driver reports for
devices from a compute capability on (Khronos, "Conformant Products": OpenCL)."""

FEATURES = (
    *("__opencl_c_images", "__opencl_c_3d_image_writes", "__opencl_c_int64", "__opencl_c_fp64"),
    *("cl_khr_3d_image_writes", "cl_khr_fp64"),
)
"""The optional features of OpenCL C 3.0 that NVIDIA's driver reports, and the extensions that they
were before."""

REGISTER_LIMIT = re.compile(r"-cl-nv-maxrregcount=(\d+)")
HINTS = re.compile(r"-cl-nv-(?:verbose|opt-level=\d+|allow-expensive-optimizations)")
"""NVIDIA's options (cl_nv_compiler_options): clang has none of them, and the hints change nothing
here."""

COMPILING = (
    *("-x", "cl", "-target", TARGET, "-O2"),
    *("-gline-tables-only", "-gdwarf-2", "-Wno-linker-warnings", "-fno-crash-diagnostics"),
    "-fgnu89-inline",  # one source: what is `inline` is there where it is not inlined
)

_SIZES = re.compile(r"^define [^@\n]*@(\w+)\([^\n]*!reqd_work_group_size !(\d+)", re.MULTILINE)
_NUMBERS = re.compile(r"^!(\d+) = !\{i32 (\d+), i32 (\d+), i32 (\d+)\}", re.MULTILINE)
_DEFINED = re.compile(r"^define (?!.*\b(?:internal|private)\b)[^@\n]*@(\w+)\(", re.MULTILINE)
_DECLARED = re.compile(r"^declare [^@\n]*@(\w+)\(", re.MULTILINE)
_FUNCTION = re.compile(r"^\.func (?=(?:\s*\([^)]*\))?\s*(\w+)\b)", re.MULTILINE)
_PRINTF = re.compile(r"^(?:\.extern )?\.func (.*)\bprintf$", re.MULTILINE)
_PRINTF_CALL = re.compile(r"^(\s*)printf(?=\s*,)", re.MULTILINE)


def compile_opencl(
    text: str, name: str, compute_capability: tuple[int, int], options: Sequence[str] = ()
) -> str:
    """Returns the PTX of an OpenCL C text, for a device of that compute capability.

    `name` is the path that the text came from: errors and source lines carry it, and `#include`
    looks in its directory. `options` are clang's own, such as "-cl-std=CL2.0" or "-DN=4", and
    NVIDIA's "-cl-nv-maxrregcount=N"; NVIDIA's hints are accepted and change nothing. Raises
    CompileError with clang's messages where the text does not compile, and where clang, libclc or
    libdevice is missing.
    """
    return build_opencl(text, name, compute_capability, options).ptx


@dataclass(frozen=True)
class OpenclBuild:
    """The result of compiling a text: PTX, clang's warnings, and the kernels as the text declares
    them."""

    ptx: str
    log: str
    kernels: Mapping[str, DeclaredKernel]


def build_opencl(
    text: str,
    name: str,
    compute_capability: tuple[int, int],
    options: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> OpenclBuild:
    """Returns what an OpenCL C text is compiled to, as `compile_opencl` has it; `headers` are texts
    that `#include` finds by their names. Raises CompileError."""
    clang, libraries = _clang(), [_libclc(), _libdevice()]
    contraction = f"-ffp-contract={'fast' if compute_capability >= FIRST_WITH_FMA else 'off'}"
    limits = [found[1] for option in options if (found := REGISTER_LIMIT.fullmatch(option))]
    nvidias = (REGISTER_LIMIT, HINTS)
    options = [option for option in options if not any(p.fullmatch(option) for p in nvidias)]
    with temporary_folder() as place:
        write_text(place / "functions.h", functions_text())
        source = place / "source.cl"
        write_text(source, f'#line 1 "{_quoted(Path(name))}"\n{text}')
        for header, content in (headers or {}).items():
            (place / "headers" / header).parent.mkdir(parents=True, exist_ok=True)
            write_text(place / "headers" / header, content)
        command = [
            *(clang, *COMPILING, contraction, "-include", str(place / "functions.h")),
            f"-D__OPENCL_VERSION__={opencl_version(compute_capability)}",
            *(f"-march=sm_{_architecture(clang, compute_capability)}", f"-I{place / 'headers'}"),
            f"-I{Path(name).parent}",
            *(word for file in libraries for word in _linked(file)),
            *(f"-fdebug-prefix-map={Path.cwd()}=", *_standard(options), *options),
        ]
        log = _run([*command, "-S", "-emit-llvm", str(source), "-o", str(place / "made.ll")], name)
        ir = (place / "made.ll").read_text("utf-8", errors="replace")
        backend = [clang, "-x", "ir", "-target", TARGET, "-O2", "-Wno-override-module"]
        march = next(word for word in command if word.startswith("-march="))
        made = [*backend, march, "-S", str(place / "made.ll"), "-o", str(place / "made.ptx")]
        _run([*made, "-Xclang", contraction], name)
        ptx = _completed((place / "made.ptx").read_text("utf-8", errors="replace"), ir)
        limited = limit_registers(ptx, limits[-1]) if limits else ptx
        return OpenclBuild(limited, log, declared_kernels(ir))


def _completed(ptx: str, ir: str) -> str:
    """Returns the PTX with what clang leaves out: the sizes of work-groups that kernels require,
    whether functions are those of other sources, and the name that CUDA has for the function of
    printf."""
    numbers = {one[1]: ", ".join(one.groups()[1:]) for one in _NUMBERS.finditer(ir)}
    for kernel, sizes in _SIZES.findall(ir):
        entry = re.compile(rf"(\.entry {kernel}\([^)]*\))")
        ptx = entry.sub(rf"\1\n.reqntid {numbers[sizes]}\n", ptx, count=1)
    linkage = dict.fromkeys(_DECLARED.findall(ir), ".extern ")
    linkage |= dict.fromkeys(_DEFINED.findall(ir), ".visible ")
    ptx = _FUNCTION.sub(lambda found: linkage.get(found[1], "") + found[0], ptx)
    return _PRINTF_CALL.sub(r"\1vprintf", _PRINTF.sub(r".extern .func \1vprintf", ptx))


def _run(command: Sequence[str], name: str) -> str:
    """Runs clang; returns its warnings. Raises CompileError with its errors."""
    ended = subprocess.run(
        command, capture_output=True, check=False, encoding="utf-8", errors="replace"
    )
    if ended.returncode:
        log = ended.stderr.strip()
        raise CompileError(
            f"{name} does not compile as OpenCL C. {_advice(log)}\n{log}", ended.stderr
        )
    return ended.stderr


def _advice(log: str) -> str:
    if "Cannot select" in log:
        return "It uses a built-in function for which clang has no PTX; write it in other terms."
    return "Fix the lines that clang names."


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


def opencl_version(compute_capability: tuple[int, int]) -> int:
    """Returns the value of `__OPENCL_VERSION__` for a device."""
    return next(version for first, version in VERSIONS if compute_capability >= first)


def _standard(options: Sequence[str]) -> Iterator[str]:
    """OpenCL C 1.2, which all programs mean that say nothing else."""
    if not any(option.startswith("-cl-std=") for option in options):
        yield "-cl-std=CL1.2"
    if "-cl-std=CL3.0" in options:
        yield from ("-Xclang", f"-cl-ext={','.join(f'+{name}' for name in FEATURES)}")


def _linked(library: Path) -> tuple[str, ...]:
    return "-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library)


# ---- what the machine has ------------------------------------------------------------------------


def opencl_is_missing() -> str:
    """Returns what OpenCL C lacks on this machine and how to install it; empty for nothing."""
    try:
        for find in (_clang, _libclc, _libdevice):
            find()
    except CompileError as missing:
        return str(missing)
    return ""


def _clang() -> str:
    """Returns the clang of the environment variable WARPLOOM_CLANG, else the newest on the PATH."""
    numbered = (f"clang-{n}" for n in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1))
    for name in filter(None, (os.environ.get("WARPLOOM_CLANG"), *numbered, "clang")):
        if found := shutil.which(name):
            return found
    raise CompileError(
        "OpenCL C is compiled by clang, and there is none on the PATH. Install it with libclc,"
        " which has OpenCL's built-in functions (Debian: apt-get install clang-19 libclc-19), or"
        " set WARPLOOM_CLANG to one."
    )


def _libclc() -> Path:
    folders = [Path("/usr/lib/clc"), Path("/usr/share/clc"), Path("/usr/local/share/clc")]
    folders += sorted(Path("/usr/lib").glob("llvm-*/share/clc"), reverse=True)
    for folder in folders:
        for name in LIBCLC:
            if (folder / name).exists():
                return folder / name
    raise CompileError(
        "OpenCL C needs libclc, which has its built-in functions, and it is not installed (Debian:"
        " apt-get install libclc-19, or that of clang's version)."
    )


def _libdevice() -> Path:
    try:
        roots = list(importlib.import_module("nvidia.cu13").__path__)
    except ImportError:
        roots = []
    for root in roots:
        if (found := Path(root) / "nvvm" / "libdevice" / "libdevice.10.bc").exists():
            return found
    raise CompileError(
        "OpenCL C needs NVIDIA's libdevice, which has its mathematics: pip install"
        " 'warploom[opencl]' (the wheel nvidia-nvvm)."
    )


@cache
def _known(clang: str) -> tuple[int, ...]:
    """Returns the architectures that a clang compiles for."""
    result = subprocess.run(
        [clang, "--print-supported-cpus", "--target=nvptx64"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return tuple(int(n) for n in re.findall(r"\bsm_(\d+)\s", result.stdout + result.stderr + "\n"))


def _architecture(clang: str, compute_capability: tuple[int, int]) -> int:
    """Returns the newest architecture that clang compiles for and the device can run, else the
    oldest."""
    known, wanted = _known(clang), 10 * compute_capability[0] + compute_capability[1]
    if not known:
        raise CompileError(f"{clang} does not compile for NVPTX: install one of the distribution's")
    return max((one for one in known if one <= wanted), default=min(known))
