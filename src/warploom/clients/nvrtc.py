"""libnvrtc in front of NVIDIA's: compiles as that one does, but gives PTX where it is asked for
machine code, which nothing here could run.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Sequence

from warploom.clients.nvidia_libraries import real_library
from warploom.clients.registry import Registry
from warploom.clients.session import session
from warploom.clients.targets import lacks_fma, target_for

INTERNAL_ERROR = 11

ARCHITECTURE = re.compile(rb"((?:--gpu-architecture|-arch)[= ]|^)(?:sm|compute)_(\d+\w?)")


def _failed(error: BaseException, name: str) -> int:
    print(f"warploom: {name}: {error}", file=sys.stderr)
    return INTERNAL_ERROR


def _real(name: str, words: Sequence[int]) -> int:
    """NVIDIA's own function."""
    function = getattr(real_library("libnvrtc.so.13"), name)
    return int(function(*(ctypes.c_void_p(word) for word in words)))


registry = Registry(_failed, _real)


@registry.entry("nvrtcCompileProgram")
def compile_program(program: int, count: int, options: int) -> int:
    """Compiles for the virtual architecture where machine code is asked for, and for the oldest
    one where the device is older."""
    given = [
        ctypes.c_char_p.from_address(options + 8 * index).value or b"" for index in range(count)
    ]
    changed = [ARCHITECTURE.sub(_virtual, option) for option in given]
    if lacks_fma() and not any(b"fmad" in option for option in changed):
        changed.append(b"-fmad=false")
    array = (ctypes.c_char_p * len(changed))(*changed)
    with session().compiling():
        return _real("nvrtcCompileProgram", (program, len(changed), ctypes.addressof(array)))


def _virtual(option: re.Match[bytes]) -> bytes:
    """Returns the option for the virtual architecture that code is compiled for."""
    return option[1] + b"compute_" + target_for(option[2].decode()).encode()


@registry.entry("nvrtcGetCUBINSize")
def cubin_size(program: int, size: int) -> int:
    """Returns the size of the PTX, which stands for the machine code."""
    return _real("nvrtcGetPTXSize", (program, size))


@registry.entry("nvrtcGetCUBIN")
def cubin(program: int, target: int) -> int:
    """Returns the PTX."""
    return _real("nvrtcGetPTX", (program, target))
