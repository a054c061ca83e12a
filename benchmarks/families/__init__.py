"""Kernels of many families, each in its natural launch shape and in others.

A module holds the problems of a family and their expected results by NumPy; the CUDA source of the
same name beside it holds the kernels. `CASES` lists them all.
"""

from __future__ import annotations

from families import (
    algebra,
    arithmetic,
    branches,
    graphs,
    hashing,
    images,
    layouts,
    moving,
    rows,
    scans,
    simulation,
    sorting,
    sparse,
    stencils,
    streams,
    strided_sums,
    strides,
    text,
)
from families.base import Case

CASES: tuple[Case, ...] = tuple(
    case
    for module in (
        stencils,
        images,
        algebra,
        sparse,
        scans,
        sorting,
        rows,
        simulation,
        graphs,
        moving,
        arithmetic,
        hashing,
        text,
        strides,
        strided_sums,
        streams,
        layouts,
        branches,
    )
    for case in module.CASES
)
