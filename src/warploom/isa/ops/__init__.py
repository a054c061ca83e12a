"""Contains the instruction tables. Importing this package fills `FORMS` and `ABSENT` in
`warploom.isa.spec`.

One module for each family of the manual; one declaration for each of its syntax lines.

In: nothing. Out: an `OpSpec` for each form. Lowering, costs and checks of operands' values are left
to others (`isa`).
"""

from warploom.isa.ops import (
    absent,
    approximate,
    atomics,
    barrier,
    bits,
    carry,
    cluster,
    compare,
    control,
    convert,
    convert_narrow,
    dot,
    floating,
    half,
    integer,
    launch_control,
    logic,
    matrix,
    matrix_rows,
    mbarrier,
    memory,
    multimem,
    tcgen05,
    tensors,
    texture,
    video,
    warp,
    wgmma,
)

__all__ = [
    "absent",
    "approximate",
    "atomics",
    "barrier",
    "bits",
    "carry",
    "cluster",
    "compare",
    "control",
    "convert",
    "convert_narrow",
    "dot",
    "floating",
    "half",
    "integer",
    "launch_control",
    "logic",
    "matrix",
    "matrix_rows",
    "mbarrier",
    "memory",
    "multimem",
    "tcgen05",
    "tensors",
    "texture",
    "video",
    "warp",
    "wgmma",
]
