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

INTERNAL_ERROR = 11

ARCHITECTURE = re.compile(rb"(--gpu-architecture=|-arch=|--gpu-architecture |-arch )sm_(\d+\w?)")


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
    """Compiles for the virtual architecture where machine code is asked for."""
    given = [
        ctypes.c_char_p.from_address(options + 8 * index).value or b"" for index in range(count)
    ]
    changed = [ARCHITECTURE.sub(rb"\1compute_\2", option) for option in given]
    for index, option in enumerate(changed):
        if index and changed[index - 1] in (b"-arch", b"--gpu-architecture"):
            changed[index] = re.sub(rb"^sm_", b"compute_", option)
    array = (ctypes.c_char_p * len(changed))(*changed)
    with session().compiling():
        return _real("nvrtcCompileProgram", (program, count, ctypes.addressof(array)))


@registry.entry("nvrtcGetCUBINSize")
def cubin_size(program: int, size: int) -> int:
    """Returns the size of the PTX, which stands for the machine code."""
    return _real("nvrtcGetPTXSize", (program, size))


@registry.entry("nvrtcGetCUBIN")
def cubin(program: int, target: int) -> int:
    """Returns the PTX."""
    return _real("nvrtcGetPTX", (program, target))
