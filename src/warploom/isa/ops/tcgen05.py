"""Tensor memory and the fifth generation of tensor cores: PTX ISA, "TensorCore 5th Generation
Family Instructions".

They have no terms: `asynchronous.tensor_memory` says what they do, for both machines.
"""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import ALWAYS, Since, Unit, declare

GROUPS = ("cta_group::1", "cta_group::2")
COUNTS = tuple(f"x{1 << power}" for power in range(8))

SHAPES = {"32x32b": 1, "16x64b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
"""The shapes of loads and stores: registers for each of `.num`."""

MOST_REGISTERS = 128

KINDS = ("kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8")

SCALE_SIZES = {
    "kind::mxf8f6f4": ("scale_vec::1X", "block32"),
    "kind::mxf4": ("scale_vec::2X", "block32"),
    "kind::mxf4nvf4": ("scale_vec::2X", "scale_vec::4X", "block16", "block32"),
}
"""The sizes of blocks that have a scale; the first is the one without a name, but for mxf4nvf4."""

COPY_SHAPES = (
    "128x256b",
    "4x256b",
    "128x128b",
    "64x128b.warpx2::02_13",
    "64x128b.warpx2::01_23",
    "32x128b.warpx4",
)

USES = ("fill", "use", "lastuse", "discard")
COLLECTORS = tuple(f"collector::a::{use}" for use in USES)
WEIGHT_COLLECTORS = tuple(f"collector::b{n}::{use}" for n in range(4) for use in USES)

ALLOC_DOC = "allocates columns of tensor memory; [d] = their address   PTX ISA: tcgen05.alloc"
FREE_DOC = "frees columns of tensor memory   PTX ISA: tcgen05.dealloc"
PERMIT_DOC = """stops the block from allocating more tensor memory
PTX ISA: tcgen05.relinquish_alloc_permit"""
LOAD_DOC = "r = tensor memory at [a]; r is valid after a wait   PTX ISA: tcgen05.ld"
RED_DOC = "r = tensor memory at [a]; found = the minimum or maximum of r   PTX ISA: tcgen05.ld"
STORE_DOC = "tensor memory at [d] = r; the store is complete after a wait   PTX ISA: tcgen05.st"
WAIT_DOC = "waits for the thread's loads or stores   PTX ISA: tcgen05.wait"
COPY_DOC = "tensor memory at [d] = a matrix in shared memory   PTX ISA: tcgen05.cp"
SHIFT_DOC = "moves 32 bytes of each lane to the previous lane   PTX ISA: tcgen05.shift"
MMA_DOC = "D = A * B + D, or A * B, in tensor memory   PTX ISA: tcgen05.mma"
COMMIT_DOC = """arrives at an mbarrier when all earlier operations of the thread are complete
PTX ISA: tcgen05.commit"""
EARLY_DOC = """arrives at an mbarrier when all earlier matrix operations of the thread have read A
from shared memory (in Warploom: when they are complete)   PTX ISA: tcgen05.commit"""
FENCE_DOC = "orders operations before and after a synchronization   PTX ISA: tcgen05.fence"


def _declare(
    kind: OpKind, syntax: str, src: str, doc: str, dst: str = "", /, **choices: tuple[str, ...]
) -> None:
    declare(
        syntax,
        kind,
        dst=dst,
        src=src,
        unit=Unit.MATRIX,
        semantics=None,
        doc=doc,
        needs=(),
        **choices,
    )


# ---- columns ------------------------------------------------------------------------------------

_declare(
    OpKind.TENSOR_ALLOC,
    "tcgen05.alloc.cta_group.sync.aligned{.shared::cta}.b32",
    "d:address, columns:u32",
    ALLOC_DOC,
    cta_group=GROUPS,
)
_declare(
    OpKind.TENSOR_FREE,
    "tcgen05.dealloc.cta_group.sync.aligned.b32",
    "a:b32, columns:u32",
    FREE_DOC,
    cta_group=GROUPS,
)
_declare(
    OpKind.TENSOR_PERMIT,
    "tcgen05.relinquish_alloc_permit.cta_group.sync.aligned",
    "",
    PERMIT_DOC,
    cta_group=GROUPS,
)

# ---- loads and stores ---------------------------------------------------------------------------

for shape, registers in SHAPES.items():
    split = ", split:split" if shape == "16x32bx2" else ""
    for num in COUNTS:
        count = registers * int(num[1:])
        if count > MOST_REGISTERS:
            continue
        _declare(
            OpKind.TENSOR_LOAD,
            "tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32",
            f"a:address{split}",
            LOAD_DOC,
            f"r:b32*{count}",
            shape=(shape,),
            num=(num,),
        )
        _declare(
            OpKind.TENSOR_STORE,
            "tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32",
            f"d:address{split}, r:b32*{count}",
            STORE_DOC,
            shape=(shape,),
            num=(num,),
        )
        if shape in ("32x32b", "16x32bx2") and count > 1:
            for form, types in (("{.abs}{.NaN}", ("f32",)), ("", ("u32", "s32"))):
                _declare(
                    OpKind.TENSOR_LOAD,
                    f"tcgen05.ld.red.sync.aligned.shape.num.redop{form}.type",
                    f"a:address{split}",
                    RED_DOC,
                    f"r:type*{count}, found:type",
                    shape=(shape,),
                    num=(num,),
                    redop=("min", "max"),
                    type=types,
                )

_declare(OpKind.TENSOR_WAIT_LOADS, "tcgen05.op.sync.aligned", "", WAIT_DOC, op=("wait::ld",))
_declare(OpKind.TENSOR_WAIT_STORES, "tcgen05.op.sync.aligned", "", WAIT_DOC, op=("wait::st",))

# ---- products, copies and shifts ----------------------------------------------------------------

for shape in COPY_SHAPES:
    for packed in ("", ".b8x16.format"):
        _declare(
            OpKind.TENSOR_MEMORY_COPY,
            f"tcgen05.cp.cta_group.{shape}{packed}",
            "d:address, a:b64",
            COPY_DOC,
            cta_group=GROUPS,
            format=("b6x16_p32", "b4x16_p64"),
        )
_declare(
    OpKind.TENSOR_SHIFT, "tcgen05.shift.cta_group.down", "d:address", SHIFT_DOC, cta_group=GROUPS
)

for sparse, metadata in (("", ""), (".sp", ", metadata:address")):
    _declare(
        OpKind.TENSOR_PRODUCT,
        f"tcgen05.mma{sparse}.cta_group.kind{{.ashift}}{{.collector}}",
        f"d:address, a:matrix, b:b64{metadata}, descriptor:b32, p:switch, q:switch?, s:switch?",
        MMA_DOC,
        cta_group=GROUPS,
        kind=KINDS,
        collector=COLLECTORS,
    )
    _declare(
        OpKind.TENSOR_PRODUCT,
        f"tcgen05.mma.ws{sparse}.cta_group.kind{{.collector}}",
        f"d:address, a:matrix, b:b64{metadata}, descriptor:b32, p:pred, zeros:b64?",
        MMA_DOC,
        cta_group=GROUPS[:1],
        kind=KINDS,
        collector=WEIGHT_COLLECTORS,
    )
    for kind, sizes in SCALE_SIZES.items():
        size = ".size" if kind == "kind::mxf4nvf4" else "{.size}"
        _declare(
            OpKind.TENSOR_PRODUCT,
            f"tcgen05.mma{sparse}.cta_group.kind.block_scale{size}{{.collector}}",
            f"d:address, a:matrix, b:b64{metadata}, descriptor:b32, scale_a:address,"
            " scale_b:address, p:pred",
            MMA_DOC,
            cta_group=GROUPS,
            kind=(kind,),
            size=sizes,
            collector=COLLECTORS,
        )

# ---- completion ---------------------------------------------------------------------------------

COMMIT_MULTICASTS = {
    "": ("", ALWAYS),
    ".multicast::cluster": (", blocks:b16", ALWAYS),
    ".multicast::cluster::16b": (", blocks:b16", Since((9, 4), (10, 0))),
    ".multicast::cluster::32b": (", blocks:b32", Since((9, 4), (10, 7))),
}
"""By modifier, the operand for the blocks whose mbarriers it arrives at, and since when."""

for many, (blocks, since) in COMMIT_MULTICASTS.items():
    for early in ("", ".sync_restrict::shared::read::mma::a"):
        declare(
            f"tcgen05.commit.cta_group.mbarrier::arrive::one{early}{{.shared::cluster}}{many}.b64",
            OpKind.TENSOR_COMMIT,
            Since((9, 4), (10, 7)) if early else since,
            src=f"barrier:address{blocks}",
            unit=Unit.MATRIX,
            doc=EARLY_DOC if early else COMMIT_DOC,
            cta_group=GROUPS,
        )
_declare(
    OpKind.TENSOR_FENCE,
    "tcgen05.when",
    "",
    FENCE_DOC,
    when=("fence::before_thread_sync", "fence::after_thread_sync"),
)
