"""The instruction tables: importing this package fills `warploom.isa.spec.FORMS`.

One module for each family of the manual; one declaration for each of its syntax lines.
"""

from warploom.isa.ops import (
    approximate,
    atomics,
    barrier,
    bits,
    carry,
    compare,
    control,
    convert,
    convert_narrow,
    dot,
    floating,
    half,
    integer,
    logic,
    matrix,
    mbarrier,
    memory,
    tensors,
    texture,
    video,
    warp,
    wgmma,
)

__all__ = [
    "approximate",
    "atomics",
    "barrier",
    "bits",
    "carry",
    "compare",
    "control",
    "convert",
    "convert_narrow",
    "dot",
    "floating",
    "half",
    "integer",
    "logic",
    "matrix",
    "mbarrier",
    "memory",
    "tensors",
    "texture",
    "video",
    "warp",
    "wgmma",
]
