"""Compiles kernels with the NVRTC of another CUDA release than Warploom's own.

    pip install --no-deps --target DIR nvidia-cuda-nvrtc-cu12==12.4.127

Published times are those of code that a compiler of their time made; later ones unroll and select
otherwise.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warploom.core.errors import CompileError


@dataclass(frozen=True)
class Compiler:
    """The NVRTC of the wheel that was installed into `folder`."""

    folder: Path

    def ptx(self, source: str, options: Sequence[str], capability: tuple[int, int]) -> str:
        """Compile CUDA C++ to PTX for a compute capability; CompileError where it does not."""
        nvrtc = _library(self.folder)
        program = ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None
        )
        major, minor = capability
        chosen = ["-lineinfo", f"-arch=compute_{major}{minor}", *options]
        given = (ctypes.c_char_p * len(chosen))(*(option.encode() for option in chosen))
        if nvrtc.nvrtcCompileProgram(program, len(chosen), given) != 0:
            raise CompileError(_text(nvrtc, "ProgramLog", program))
        return _text(nvrtc, "PTX", program)


@cache
def _library(folder: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(next(folder.glob("nvidia/cuda_nvrtc/lib/libnvrtc.so.*"))))


def _text(nvrtc: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> str:
    """Return the PTX or the log of a program."""
    size = ctypes.c_size_t()
    nvrtc[f"nvrtcGet{what}Size"](program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc[f"nvrtcGet{what}"](program, text)
    return text.value.decode()
