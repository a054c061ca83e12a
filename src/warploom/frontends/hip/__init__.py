"""Compiles HIP sources, with headers that define HIP's names in terms of CUDA's names.

In: nothing. Out: the options with which a text of HIP C++ compiles as CUDA C++
(`frontends.cuda_cpp`, nvcc). What the headers do not name, the compiler refuses by name.
"""

from __future__ import annotations

from pathlib import Path

HIP_OPTIONS = (f"-I{Path(__file__).parent}",)
"""The compiler's options for a HIP source."""
