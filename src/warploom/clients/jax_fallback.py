"""Says why JAX runs on the CPU: it falls back to that without a word of its own, or with one that
names the first of many missing libraries."""

from __future__ import annotations

import sys

REASON = (
    "warploom: JAX computes on the CPU here, not on the software GPU: its CUDA plugin needs "
    "NVIDIA libraries (cuDNN, CUPTI, cuBLAS, ...) that Warploom does not replace. Kernels "
    "written with Numba, Triton, PyTorch, cuda.core or CUDA C++ run on the software GPU."
)


def explain(_plugin: object) -> None:
    """Writes the reason when JAX's plugin for CUDA is imported."""
    print(REASON, file=sys.stderr)
