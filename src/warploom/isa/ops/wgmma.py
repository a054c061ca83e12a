"""Matrix instructions of a warp group: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".

Four warps multiply a matrix of 64 rows. Each of them holds and computes 16 rows: with its rows of
A, and all of B, which stands in shared memory (`isa.shared_matrices`). So one warp's part is a
product of 16 rows, whose fragments are those of `mma`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from warploom.isa.fragments import WARP, Product, accumulator, extents, operand
from warploom.isa.kinds import OpKind
from warploom.isa.shared_matrices import SharedOperand
from warploom.isa.sparsity import Sparsity
from warploom.isa.spec import Modifiers, Operation, OpSpec, Unit, declare

ROWS = 16
"""Rows that one warp of the group holds."""

DOC = """D = A * B + D, or A * B; D is valid after a wait   PTX ISA: wgmma.mma_async"""
SPARSE_DOC = """D = A * B + D with sparse A; the lanes that sel selects hold metadata (the columns
of A's elements)   PTX ISA: wgmma.mma_async.sp"""

EVERY_N = tuple(range(8, 257, 8))
INTEGER_N = (8, 16, 24, *range(32, 257, 16))


@dataclass(frozen=True)
class GroupProduct:
    """One warp's part of a `wgmma.mma_async`.

    Its B stands in shared memory as `shared_b`, its A, where that is in shared memory, as
    `shared_a`; `product.b` is B as a whole. `negated`: products are subtracted.
    """

    product: Product
    shared_a: SharedOperand | None
    shared_b: SharedOperand
    negated: bool


def depth_of(operation: Operation) -> tuple[int, int, int]:
    """Returns the columns of A that are stored, those of B along k, and n; for bits in words."""
    m = operation.modifiers
    _, n, k = extents(m.text("shape", ""))
    k //= 32 if m["atype"] == "b1" else 1
    return k // 2 if "sp" in m else k, k, n


@cache
def warp_product(operation: Operation) -> Product:
    """Returns what each warp multiplies, with A as registers hold it and all of B."""
    m = operation.modifiers
    stored, k, n = depth_of(operation)
    atype, btype, dtype = (m.text(name, "") for name in ("atype", "btype", "dtype"))
    bits = 32 if atype == "b1" else 1
    a, b = operand(atype, ROWS, stored * bits), operand(btype, n, k * bits)
    d = accumulator(dtype, ROWS, n)
    sparsity = Sparsity(a.bits, k) if "sp" in m else None
    return Product(a, b, d, d, "satfinite" in m, m.text("logic", ""), sparsity)


@cache
def group_product(
    operation: Operation, a_is_shared: bool, transposed_a: bool, transposed_b: bool, negated: bool
) -> GroupProduct:
    """Returns one warp's part of a `wgmma.mma_async` with such operands."""
    m = operation.modifiers
    stored, k, n = depth_of(operation)
    shared_a = None
    if a_is_shared:
        shared_a = SharedOperand(m.text("atype", ""), ROWS, stored, transposed_a, ROWS)
    shared_b = SharedOperand(m.text("btype", ""), n, k, transposed_b, WARP)
    return GroupProduct(warp_product(operation), shared_a, shared_b, negated)


def _shapes(some: tuple[int, ...], k: int) -> tuple[str, ...]:
    """Returns the shapes with each of the given n."""
    return tuple(f"m64n{n}k{k}" for n in some)


def _declare(
    k: int, dtype: str, atypes: tuple[str, ...], signs: str = "", transpositions: str = ""
) -> None:
    """Declares the dense form of these types, and unless they are bits the sparse one."""
    packed = 4 if dtype == "f16" else 2
    register = "b32" if dtype == "f16" else dtype
    integer, bits = dtype == "s32", atypes == ("b1",)
    for sparse in (False,) if bits else (False, True):
        metadata = "meta:b32, sel:selector, " if sparse else ""
        saturation = "{.satfinite}" if integer and not bits else ""
        logic = ".logic.popc" if bits else ""
        name = "wgmma.mma_async.sp" if sparse else "wgmma.mma_async"
        declare(
            f"{name}.sync.aligned.shape{saturation}.dtype.atype.btype{logic}",
            OpKind.GROUP_PRODUCT,
            dst=f"+d:{register}*n/{packed}",
            src=f"a:multiplicand, b:u64, {metadata}scale_d:pred{signs}{transpositions}",
            unit=Unit.MATRIX,
            doc=SPARSE_DOC if sparse else DOC,
            shape=_shapes(INTEGER_N if integer else EVERY_N, 2 * k if sparse else k),
            dtype=(dtype,),
            atype=atypes,
            btype=atypes,
            logic=("and",),
        )


SIGNS = ", scale_a:sign, scale_b:sign"
TRANSPOSITIONS = ", transpose_a:transposition, transpose_b:transposition?"
"""Both where A is in shared memory; where it is in registers, B's alone."""

_declare(16, "f16", ("f16",), SIGNS, TRANSPOSITIONS)
_declare(16, "f32", ("f16",), SIGNS, TRANSPOSITIONS)
_declare(16, "f32", ("bf16",), SIGNS, TRANSPOSITIONS)
_declare(8, "f32", ("tf32",), SIGNS)
_declare(32, "f16", ("e4m3", "e5m2"), SIGNS)
_declare(32, "f32", ("e4m3", "e5m2"), SIGNS)
_declare(32, "s32", ("s8", "u8"))
_declare(256, "s32", ("b1",))

declare(
    "wgmma.fence.sync.aligned",
    OpKind.GROUP_FENCE,
    unit=Unit.MATRIX,
    doc="orders earlier register accesses before later wgmma.mma_async instructions"
    "   PTX ISA: wgmma.fence",
)
declare(
    "wgmma.commit_group.sync.aligned",
    OpKind.GROUP_COMMIT,
    unit=Unit.MATRIX,
    doc="puts all products that are not in a group into a new group   PTX ISA: wgmma.commit_group",
)
declare(
    "wgmma.wait_group.sync.aligned",
    OpKind.GROUP_WAIT,
    src="n:groups",
    unit=Unit.MATRIX,
    doc="waits until all groups except the n newest are complete   PTX ISA: wgmma.wait_group",
)


GROUP_BARRIER = Operation(
    "barrier.warp.group",
    OpSpec(
        "barrier",
        "barrier.warp.group",
        (),
        (),
        Unit.BARRIER,
        OpKind.WARP_GROUP_BARRIER,
        None,
        "waits for all warps of the warpgroup",
    ),
    Modifiers({"warp": "warp", "group": "group"}),
)
"""Stands hidden behind each wait for products, and in no table. A product is one operation of the
whole group, so that none of its warps finds it complete before all have issued it; one thread of
the group may then signal to others that the product has read its matrices."""
