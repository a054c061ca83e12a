"""OpenCL C to PTX, by a clang of the machine or of a wheel: built-in functions are
`opencl_library`'s, their mathematics NVIDIA's libdevice's, as that of CUDA C++.

A program is compiled to LLVM IR, what it calls of the library is compiled beside it, and both are
optimized together. Always with line information. What the PTX means is for `warploom.ptx`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from warploom.core.errors import CompileError
from warploom.core.output_files import write_text
from warploom.core.temporary import temporary_folder
from warploom.frontends.cuda_cpp import FIRST_WITH_FMA
from warploom.frontends.opencl_compilers import (
    architecture,
    clang,
    libdevice,
    opencl_is_missing,
)
from warploom.frontends.opencl_features import SUB_GROUPS, standard_options
from warploom.frontends.opencl_library.assemble import library_text, types_text
from warploom.frontends.opencl_library.work_items import SHARED, SHARED_FUNCTION
from warploom.frontends.opencl_metadata import DeclaredKernel, declared_kernels
from warploom.frontends.precompiled import precompiled_ptx
from warploom.frontends.register_limits import limit_registers

TARGET = "nvptx64-nvidia-nvcl"
"""With this one, PTX shows which parameters point to local memory."""

REGISTER_LIMIT = re.compile(r"-cl-nv-maxrregcount=(\d+)")
HINTS = re.compile(r"-cl-nv-(?:verbose|opt-level=\d+|allow-expensive-optimizations)")
"""NVIDIA's options (cl_nv_compiler_options): clang has none of them, and the hints change nothing
here."""

TYPES, LIBRARY = "types.h", "library.bc"

COMPILING = (
    *("-x", "cl", "--target=" + TARGET, "-O2", "-nogpulib", "-cl-no-stdinc"),
    *("-Xclang", "-disable-llvm-passes", "-emit-llvm"),
)
"""How sources become LLVM IR, which is optimized when all of it is there."""

PROGRAM = (
    *("-Xclang", "-fdeclare-opencl-builtins", "-gline-tables-only", "-gdwarf-2"),
    *("-Wno-linker-warnings", "-fno-crash-diagnostics"),
    "-fgnu89-inline",  # one source: what is `inline` is there where it is not inlined
)

ND_RANGE = "-D__WARPLOOM_ND_RANGE"
"""Has kernels read the global offset and the number of dimensions of their launch."""

LIBRARY_EXTENSIONS = (
    *("__opencl_c_images", "__opencl_c_3d_image_writes", "__opencl_c_fp64", "__opencl_c_int64"),
    *("cl_khr_fp64", "cl_khr_fp16", "cl_khr_3d_image_writes", "cl_khr_depth_images"),
    *("cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"),
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
    CompileError with clang's messages where the text does not compile, and where clang or libdevice
    is missing and the text is none of the lessons'.
    """
    if opencl_is_missing():
        stored = precompiled_ptx(text, name, compute_capability, options)
        if stored is not None:
            return stored
    named = ["-Xclang", f"-cl-ext=+{SUB_GROUPS}", *options]
    return build_opencl(text, name, compute_capability, named).ptx


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
    tool, mathematics = clang(), libdevice()
    contraction = f"-ffp-contract={'fast' if compute_capability >= FIRST_WITH_FMA else 'off'}"
    limits = [found[1] for option in options if (found := REGISTER_LIMIT.fullmatch(option))]
    nvidias = (REGISTER_LIMIT, HINTS)
    options = [option for option in options if not any(p.fullmatch(option) for p in nvidias)]
    march = f"-march=sm_{architecture(tool, compute_capability)}"
    with temporary_folder() as place:
        types = place / TYPES
        write_text(types, types_text())
        source = place / "source.cl"
        write_text(source, f'#line 1 "{_quoted(Path(name))}"\n{text}')
        for header, content in (headers or {}).items():
            (place / "headers" / header).parent.mkdir(parents=True, exist_ok=True)
            write_text(place / "headers" / header, content)
        common = [*tool, *COMPILING, march, contraction]
        command = [
            *(
                *common,
                *PROGRAM,
                "-include",
                str(types),
                f"-I{place / 'headers'}",
                f"-I{Path(name).parent}",
            ),
            f"-fdebug-prefix-map={Path.cwd()}=",
            *(*standard_options(compute_capability, options), *options),
        ]
        log = _run([*command, "-S", str(source), "-o", str(place / "made.ll")], name)
        ir = _mended((place / "made.ll").read_text("utf-8", errors="replace"))
        write_text(place / "made.ll", ir)
        linked = [mathematics]
        if library := library_text(_DECLARED.findall(ir)):
            defined = (ND_RANGE,) if ND_RANGE in options else ()
            (place / LIBRARY).write_bytes(_library((*common, *defined), library))
            linked.insert(0, place / LIBRARY)
            if f"{SHARED_FUNCTION}()" in library:
                write_text(place / "made.ll", ir + SHARED)
        made = [
            *(*tool, "-x", "ir", "--target=" + TARGET, march, "-O2", "-Wno-override-module"),
            # As a vector of 16 bytes clang 19 would load bytes that are not aligned.
            *("-fno-slp-vectorize", "-Wno-linker-warnings", "-nogpulib", "-Xclang", contraction),
            *(word for file in linked for word in _linked(file)),
        ]
        _run([*made, "-S", str(place / "made.ll"), "-o", str(place / "made.ptx")], name)
        ptx = _completed((place / "made.ptx").read_text("utf-8", errors="replace"), ir)
        limited = limit_registers(ptx, limits[-1]) if limits else ptx
        return OpenclBuild(limited, log, declared_kernels(ir))


@lru_cache(maxsize=64)
def _library(command: tuple[str, ...], text: str) -> bytes:
    """Compiles functions of the library to bitcode, which is kept: programs call the same ones."""
    with temporary_folder() as place:
        source, types, target = (place / name for name in ("library.cl", TYPES, LIBRARY))
        write_text(source, text)
        write_text(types, types_text())
        extensions = ",".join(f"+{one}" for one in LIBRARY_EXTENSIONS)
        words = ["-cl-std=CL3.0", "-Xclang", f"-cl-ext={extensions}", "-w", "-include", str(types)]
        _run([*command, *words, "-c", str(source), "-o", str(target)], "the library of OpenCL C")
        return target.read_bytes()


_VPRINTF = re.compile(r"^(declare [^@\n]*@vprintf)\(ptr, ptr\)", re.MULTILINE)
_STUB = re.compile(
    r"^(define )(?:dso_local )?(void @__clang_ocl_kern_imp_[^{]*?) #\d+", re.MULTILINE
)


def _mended(ir: str) -> str:
    """Returns the LLVM IR with kernels in one piece, whose code clang 21 and later put into
    functions beside them; and with the function of printf declared as these clangs call it."""
    whole = _STUB.sub(r"\1internal \2 alwaysinline convergent nounwind", ir)
    return _VPRINTF.sub(r"\1(ptr addrspace(4), ptr)", whole)


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
        return (
            "The code uses a feature that clang cannot compile to PTX. Rewrite it without that "
            "feature."
        )
    return "Fix the lines listed in the log."


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


def _linked(library: Path) -> tuple[str, ...]:
    return "-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library)
