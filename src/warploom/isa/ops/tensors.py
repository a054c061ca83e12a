"""Copies of the Tensor Memory Accelerator, and tensor maps: PTX ISA, "Data Movement and Conversion:
Asynchronous copy", "Tensor copy", "tensormap.replace".

They have no terms: `asynchronous.tensors` says what they do, for both machines.
"""

from __future__ import annotations

from itertools import product

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Operation, Unit, declare

COMPLETES = "mbarrier::complete_tx::bytes"
DIMS = ("1d", "2d", "3d", "4d", "5d")
SHARED_TARGETS = ("shared::cluster", "shared::cta")
HINT = "L2::cache_hint"
MULTICAST = "multicast::cluster"
MULTICASTS = {"blocks:u16": (MULTICAST, f"{MULTICAST}::16b"), "blocks:u32": (f"{MULTICAST}::32b",)}
"""The choices of slot `multicast`, by the operand that has a bit for each block of the cluster."""

QUIET = "mbarrier::report::disabled"
"""Nothing is reported of what is copied, as without a word of it."""

NEW_ADDRESS = "override::global_address"
NEW_SIZE, NEW_SHAPE = "override::global_dim", "override::global_dim_stride"
"""The values of a tensor map that a copy takes from operands instead: sizes alone where there is
one axis, sizes and strides where there are more (PTX ISA, "Overriding tensor property value")."""

LOAD_DOC = """[d] = a box of a tensor; then signals completion to an mbarrier
PTX ISA: cp.async.bulk.tensor"""
STORE_DOC = "a box of a tensor = [a]   PTX ISA: cp.async.bulk.tensor"
REDUCE_DOC = (
    "a box of a tensor = the box op [a], elementwise   PTX ISA: cp.reduce.async.bulk.tensor"
)
PREFETCH_DOC = "prefetches a box of a tensor into a cache   PTX ISA: cp.async.bulk.prefetch.tensor"
PRIORITY_DOC = (
    "sets the cache priority of a box of a tensor to normal\n"
    "PTX ISA: applypriority.async.bulk.tensor"
)
BYTES_DOC = """[d] = size bytes at [a]; then signals completion to an mbarrier
PTX ISA: cp.async.bulk"""
NUMBERS_DOC = "[d] = [d] op [a], elementwise, size bytes   PTX ISA: cp.reduce.async.bulk"

OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")

WIDE = (".im2col::w", ".im2col::w::128")
LOADS = {
    "": DIMS,
    ".im2col": DIMS[2:],
    **dict.fromkeys(WIDE, DIMS[2:]),
    ".tile": DIMS,
    ".tile::gather4": DIMS[1:2],
}
STORES = {"": DIMS, ".tile": DIMS, ".im2col_no_offs": DIMS[2:], ".tile::scatter4": DIMS[1:2]}


def _copy(kind: OpKind, syntax: str, src: str, doc: str, /, **choices: tuple[str, ...]) -> None:
    """Declares a form, with and without a hint for L2 where it can have one."""
    for hint, policy in (("", ""), (f".{HINT}", ", policy:b64"))[: 1 + ("{hint}" in syntax)]:
        text, operands = syntax.replace("{hint}", hint), src + policy
        declare(
            text,
            kind,
            dst="",
            src=operands,
            unit=Unit.MEMORY,
            semantics=None,
            doc=doc,
            needs=(),
            **choices,
        )


def _boxes(kind: OpKind, syntax: str, src: str, doc: str, /, **choices: tuple[str, ...]) -> None:
    """Declare a form with the values of the map, with another address, and, where it copies tiles,
    with other sizes too."""
    _copy(kind, syntax + f"{{.{NEW_ADDRESS}}}", src, doc, **choices)
    if ".im2col" not in syntax and ".tile::" not in syntax:
        for dims, new in ((DIMS[:1], NEW_SIZE), (DIMS[1:], NEW_SHAPE)):
            _copy(kind, f"{syntax}.{NEW_ADDRESS}.{new}", src, doc, **(choices | {"dim": dims}))


for mode, dims in LOADS.items():
    offsets = ", offsets:offsets" if ".im2col" in mode else ""
    for many, (blocks, choices) in product((False, True), MULTICASTS.items()):
        if many or choices[0] == MULTICAST:
            _boxes(
                OpKind.TENSOR_COPY,
                f"cp.async.bulk.tensor.dim.into.global{mode}.{COMPLETES}{{.{QUIET}}}"
                f"{'.multicast' if many else ''}{{.cta_group}}{{hint}}",
                "d:address, tensor:tensor, barrier:address" + offsets + f", {blocks}" * many,
                LOAD_DOC,
                dim=dims,
                into=SHARED_TARGETS[:1] if many else SHARED_TARGETS,
                multicast=choices,
                cta_group=("cta_group::1", "cta_group::2"),
            )
for mode, dims in STORES.items():
    _boxes(
        OpKind.TENSOR_COPY,
        f"cp.async.bulk.tensor.dim.global.shared::cta{mode}.bulk_group{{hint}}",
        "tensor:tensor, a:address",
        STORE_DOC,
        dim=dims,
    )
    if mode != ".tile::scatter4":
        _boxes(
            OpKind.TENSOR_COPY,
            f"cp.reduce.async.bulk.tensor.dim.global.shared::cta.redop{mode}.bulk_group{{hint}}",
            "tensor:tensor, a:address",
            REDUCE_DOC,
            dim=dims,
            redop=OPERATIONS,
        )
for mode, dims in LOADS.items():
    offsets = ", offsets:offsets" if ".im2col" in mode else ""
    for level in ("{hint}", ".L2::evict_last"):
        _boxes(
            OpKind.TENSOR_PREFETCH,
            f"cp.async.bulk.prefetch.tensor.dim.L2.global{mode}{level}",
            f"tensor:tensor{offsets}",
            PREFETCH_DOC,
            dim=dims,
        )
    _boxes(
        OpKind.CACHE_HINT,
        f"applypriority.async.bulk.tensor.dim.global{mode}.bulk_group.L2::evict_normal",
        f"tensor:tensor{offsets}",
        PRIORITY_DOC,
        dim=dims,
    )

# ---- bytes and numbers side by side -------------------------------------------------------------

declare(
    f"cp.async.bulk.shared::cluster.shared::cta.{COMPLETES}",
    OpKind.TMA_BULK_COPY,
    src="d:address, a:address, size:u32, barrier:address",
    unit=Unit.MEMORY,
    doc=BYTES_DOC,
)
for blocks, choices in MULTICASTS.items():
    _copy(
        OpKind.TMA_BULK_COPY,
        f"cp.async.bulk.shared::cluster.global.{COMPLETES}{{.{QUIET}}}.multicast{{hint}}",
        f"d:address, a:address, size:u32, barrier:address, {blocks}",
        BYTES_DOC,
        multicast=choices,
    )
for hint, policy in (("", ""), (f".{HINT}", "policy:b64, ")):
    declare(
        f"cp.async.bulk.global.shared::cta.bulk_group{hint}.cp_mask",
        OpKind.TMA_BULK_COPY,
        src=f"d:address, a:address, size:u32, {policy}mask:u16",
        unit=Unit.MEMORY,
        doc="[d] = size bytes at [a]; the 16 bits of mask select which bytes of every 16 are copied"
        "   PTX ISA: cp.async.bulk",
    )
TYPES = {
    ("and", "or", "xor"): ("b32", "b64"),
    ("add",): ("u32", "s32", "u64", "f32", "f64"),
    ("min", "max"): ("u32", "s32", "u64", "s64", "f16", "bf16"),
    ("inc", "dec"): ("u32",),
}
"""The types of every reduction in global memory; sums of 16 bits say `.noftz`."""

CLUSTER_TYPES = {
    ("and", "or", "xor"): ("b32",),
    ("add",): ("u32", "s32", "u64"),
    ("min", "max"): ("u32", "s32"),
    ("inc", "dec"): ("u32",),
}

for operations, types in TYPES.items():
    _copy(
        OpKind.BULK_REDUCTION,
        "cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.redop.type",
        "d:address, a:address, size:u32",
        NUMBERS_DOC,
        redop=operations,
        type=types,
    )
_copy(
    OpKind.BULK_REDUCTION,
    "cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.redop.noftz.type",
    "d:address, a:address, size:u32",
    NUMBERS_DOC,
    redop=("add",),
    type=("f16", "bf16"),
)
for operations, types in CLUSTER_TYPES.items():
    declare(
        f"cp.reduce.async.bulk.shared::cluster.shared::cta.{COMPLETES}.redop.type",
        OpKind.BULK_REDUCTION,
        src="d:address, a:address, size:u32, barrier:address",
        unit=Unit.MEMORY,
        doc=NUMBERS_DOC,
        redop=operations,
        type=types,
    )

# ---- tensor maps --------------------------------------------------------------------------------

REPLACE_DOC = "sets a field of the tensor map at [a]   PTX ISA: tensormap.replace"
MAP_SPACES = ("global", "shared::cta")


def _replace(fields: tuple[str, ...], type: str, src: str) -> None:
    """Declares `tensormap.replace` of these fields."""
    declare(
        f"tensormap.replace.tile.field{{.space}}.b1024.{type}",
        OpKind.TENSOR_MAP,
        src=src,
        unit=Unit.MEMORY,
        doc=REPLACE_DOC,
        field=fields,
        space=MAP_SPACES,
    )


_replace(("global_address",), "b64", "a:address, value:b64")
_replace(("rank",), "b32", "a:address, value:b32")
_replace(("box_dim", "global_dim", "element_stride"), "b32", "a:address, axis:map_axis, value:b32")
_replace(("global_stride",), "b64", "a:address, axis:map_axis, value:b64")
_replace(
    ("elemtype", "interleave_layout", "swizzle_mode", "fill_mode", "swizzle_atomicity"),
    "b32",
    "a:address, value:map_value",
)
declare(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned",
    OpKind.TENSOR_MAP,
    src="d:address, a:address, size:map_bytes",
    unit=Unit.MEMORY,
    doc="[d] = the tensor map at [a]; then a proxy fence   PTX ISA: tensormap.cp_fenceproxy",
    scope=("cta", "cluster", "gpu", "sys"),
)


def is_wide(operation: Operation) -> bool:
    """Returns whether an operation has one of the modes `.im2col::w` and `.im2col::w::128`, which
    walk along W alone."""
    return any(mode[1:] in operation.modifiers for mode in WIDE)
