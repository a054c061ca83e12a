"""Keeps what NVRTC compiled for as long as a process of tests runs.

Tests with parameters compile one source again and again, with CUDA's large headers up to five
seconds each time. A source that includes a file of its own is compiled each time, for that file may
have changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warploom.frontends import cuda_cpp

_OWN_FILES = re.compile(r'^\s*#\s*include\s*"', re.MULTILINE)
"""An include of a file beside the source; those in angle brackets are CUDA's."""


def keep_compiled_sources() -> None:
    """Has `cuda_cpp.compile_cuda` compile each source once, with the same name, options and compute
    capability. Errors are not kept, and nothing is where NVRTC is missing or made to seem so."""
    compile_cuda = cuda_cpp.compile_cuda
    kept: dict[object, str] = {}

    def compile_once(
        text: str, name: str, compute_capability: tuple[int, int], options: Sequence[str] = ()
    ) -> str:
        if _OWN_FILES.search(text) or not cuda_cpp.has_nvrtc():
            return compile_cuda(text, name, compute_capability, options)
        key = text, name, compute_capability, tuple(options)
        if key not in kept:
            kept[key] = compile_cuda(text, name, compute_capability, options)
        return kept[key]

    cuda_cpp.compile_cuda = compile_once
