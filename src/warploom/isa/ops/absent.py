"""Instructions and forms of the manual that do not run, each with the reason: a module that has one
is refused when it is loaded, with that reason. docs/instructions.md lists them.

A form stands here where its semantics need what one device does not have, or where they are not
published. Sources of the syntax: PTX ISA 9.4, and CCCL's `cuda::ptx` of the CUDA 13.5 toolkit.
"""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Since, Unit, declare

BETWEEN_DEVICES = "it accesses the memory of other devices, but a launch uses only one device"
REPORTS = "mbarriers with layout v1, which record validity reports from copies, are not modelled"
SEVERAL_BARRIERS = "multicast operations on the mbarriers of several thread blocks are not modelled"
EXCLUSIVE = "exclusive allocations of up to 576 columns are not modelled"
COMPRESSION = "compression to 2:4 sparsity is not modelled"

FABRIC, RUBIN = Since((9, 3), (10, 0)), Since((9, 4), (10, 7))


def absent(syntax: str, reason: str, since: Since, /, **choices: tuple[str, ...]) -> None:
    """Declares a syntax line that does not run, and why. Its operands are not read."""
    declare(
        syntax,
        OpKind.ABSENT,
        since,
        dst="",
        src="",
        unit=Unit.MEMORY,
        semantics=None,
        doc=reason,
        needs=(),
        **choices,
    )


# ---- between devices ----------------------------------------------------------------------------

_BITS, _EXTREMA, _SUMS = ("and", "or", "xor"), ("min", "max"), ("add",)
_REDUCTIONS = {
    _BITS: ("b32", "b64"),
    _EXTREMA: ("u32", "s32", "u64", "s64", "f16", "bf16", "f16x2", "bf16x2", "e4m3", "e5m2"),
    _SUMS: ("u32", "s32", "u64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "e4m3", "e5m2"),
    ("inc", "dec"): ("u32",),
    ("exch", "cas"): ("b32", "b64", "b128"),
}
_ENDS: dict[str, tuple[str, ...]] = {
    "completes": ("mbarrier::complete_tx::bytes", "mbarrier::complete_tx::16B"),
    "shared": ("shared::cta",),
    "dim": ("1d", "2d", "3d", "4d", "5d"),
    "mode": ("tile", "im2col", "im2col_no_offs", "tile::gather4", "tile::scatter4"),
    "attributes": ("override::global_dim", "override::global_dim_stride"),
    "noftz": ("noftz",),
    "acc": ("acc::f16", "acc::f32"),
}
_TRANSFER = (
    ".async{.multimem}.shared.completes.mbarrier::report::fabric{.counted::bytes}{.cp_mask}"
    "{.L2::cache_hint}.relaxed.sys"
)
_TENSOR_TRANSFER = (
    ".async.tensor{.multimem}.dim.shared{.mode}.completes.mbarrier::report::fabric"
    "{.counted::bytes}{.L2::cache_hint}{.override::global_address}{.attributes}.relaxed.sys"
)
for _name in ("try_get", "try_put"):
    absent(f"fabric.{_name}{_TRANSFER}.b128", BETWEEN_DEVICES, FABRIC, **_ENDS)
    absent(f"fabric.{_name}{_TENSOR_TRANSFER}.b128", BETWEEN_DEVICES, RUBIN, **_ENDS)
for _ops, _types in _REDUCTIONS.items():
    for _name in ("try_red", "try_atom", "try_pullred"):
        for _line in (_TRANSFER, _TENSOR_TRANSFER):
            absent(
                f"fabric.{_name}{_line}.op{{.acc}}{{.noftz}}.type{{.sync}}",
                BETWEEN_DEVICES,
                FABRIC,
                op=_ops,
                type=_types,
                **_ENDS,
            )
absent(
    "fabric.submit{.restrict}",
    BETWEEN_DEVICES,
    FABRIC,
    restrict=("op_restrict::fetching", "commit_group"),
)
absent(
    "fabric.wait.restrict",
    BETWEEN_DEVICES,
    FABRIC,
    restrict=("sync_restrict::reads", "sync_restrict::read"),
)

# ---- reports ------------------------------------------------------------------------------------

absent("mbarrier.init.layout::v1{.space}.b64", REPORTS, FABRIC, space=("shared", "shared::cta"))
_REPORTS = ("per_16bytes::80000000", "per_16bytes::8000", "per_16bytes::80", "per_16bytes::8")
absent(
    "cp.async.bulk{.tensor}{.dim}.into.global{.mode}.mbarrier::complete_tx::bytes.report"
    "{.multicast}{.cta_group}{.L2::cache_hint}{.override::global_address}{.attributes}",
    REPORTS,
    RUBIN,
    dim=_ENDS["dim"],
    into=("shared::cta", "shared::cluster"),
    mode=("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128"),
    report=tuple(
        f"mbarrier::report::validity::{pattern}" for pattern in (*_REPORTS, "per_element::ff")
    ),
    multicast=tuple(f"multicast::cluster{width}" for width in ("", "::16b", "::32b")),
    cta_group=("cta_group::1", "cta_group::2"),
    attributes=_ENDS["attributes"],
)

# ---- others -------------------------------------------------------------------------------------

absent(
    "mbarrier.op{.expect_tx}{.sem}{.scope}.shared::cluster.multicast::cluster::32b.b64",
    SEVERAL_BARRIERS,
    RUBIN,
    op=("arrive", "arrive_drop", "complete_tx", "expect_tx"),
    sem=("release", "relaxed"),
    scope=("cta", "cluster"),
)
absent(
    "tcgen05.ld{.red}.spcompress.sync.aligned.32x32b.num.redop.sp::2:4{.abs}{.NaN}.f32.b2",
    COMPRESSION,
    RUBIN,
    num=("x4", "x8", "x16", "x32", "x64", "x128"),
    redop=("min", "max"),
)
absent(
    "tcgen05.op.exclusive.cta_group.sync.aligned{.shared::cta}.b32",
    EXCLUSIVE,
    RUBIN,
    op=("alloc", "dealloc"),
    cta_group=("cta_group::1", "cta_group::2"),
)
