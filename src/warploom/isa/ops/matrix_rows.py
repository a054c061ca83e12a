"""Matrices whose rows lanes point at in shared memory, and `movmatrix`: PTX ISA, "Warp Level Matrix
Load, Store, Transpose". They have no terms; `isa.row_matrices` lays rows out over lanes.
"""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit, declare

NUMBERS = ("x1", "x2", "x4")


def rows(
    name: str,
    tail: str,
    doc: str,
    numbers: tuple[str, ...] = NUMBERS,
    registers: int = 1,
    *,
    shape: str,
    packing: tuple[str, ...] = (),
) -> None:
    """Declares `ldmatrix` or `stmatrix` of a shape, whose syntax ends in `tail`; `registers`
    hold a matrix."""
    for number in numbers:
        held = f"r:b32*{registers * int(number[1:])}"
        declare(
            f"{name}.sync.aligned.shape.num{tail}",
            OpKind.MATRIX_LOAD if name == "ldmatrix" else OpKind.MATRIX_STORE,
            dst=held if name == "ldmatrix" else "",
            src="p:address" if name == "ldmatrix" else f"p:address, {held}",
            unit=Unit.MATRIX,
            doc=f"{doc}   PTX ISA: {name}",
            num=(number,),
            space=("shared", "shared::cta"),
            shape=(shape,),
            packing=packing,
        )


PACKINGS = ("b6x16_p32", "b4x16_p64")

rows(
    "ldmatrix",
    "{.trans}{.space}.b16",
    "r = 8x8 matrices of 16-bit elements; lanes 8i to 8i+7 hold the row addresses of matrix i",
    shape="m8n8",
)
rows(
    "stmatrix",
    "{.trans}{.space}.b16",
    "8x8 matrices of 16-bit elements = r; lanes 8i to 8i+7 hold the row addresses of matrix i",
    shape="m8n8",
)
rows(
    "ldmatrix",
    ".trans{.space}.b8",
    "r = 16x16 matrices of bytes, transposed; lanes 16i to 16i+15 hold the row addresses of"
    " matrix i",
    NUMBERS[:2],
    registers=2,
    shape="m16n16",
)
rows(
    "ldmatrix",
    ".trans{.space}.b8x16.packing",
    "r = 16x16 matrices of 6-bit or 4-bit numbers, transposed and unpacked to bytes",
    NUMBERS[:2],
    registers=2,
    shape="m16n16",
    packing=PACKINGS,
)
rows(
    "ldmatrix",
    "{.space}.b8x16.packing",
    "r = 8x16 matrices of 6-bit or 4-bit numbers, unpacked to bytes",
    shape="m8n16",
    packing=PACKINGS,
)
rows(
    "stmatrix",
    ".trans{.space}.b8",
    "16x8 matrices of bytes = r, transposed; lanes 8i to 8i+7 hold the column addresses of"
    " matrix i",
    shape="m16n8",
)
declare(
    "movmatrix.sync.aligned.m8n8.trans.b16",
    OpKind.MATRIX_TRANSPOSE,
    dst="d:b32",
    src="a:b32",
    unit=Unit.MATRIX,
    doc="d = the transpose of a, an 8x8 matrix of 16-bit elements   PTX ISA: movmatrix",
)
