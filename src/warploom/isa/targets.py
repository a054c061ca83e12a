"""Tables of the compute capability that brought each instruction: PTX ISA, "Target ISA Notes" of
each.

What is neither named here nor declared with its syntax (`spec.Since`) is as old as PTX.
Instructions of the oldest targets that compilers write as no-ops count as theirs: `cvta` of global
and constant memory, where there are no other generic addresses.
"""

from __future__ import annotations

from functools import cache

from warploom.isa.since import Release, Table, is_named, since
from warploom.isa.spec import Operation

_BROUGHT: Table = {
    (1, 1): ("atom", "red", "brkpt"),
    (1, 2): ("vote", "atom.shared", "red.shared", "atom.b64", "atom.u64", "red.u64"),
    (1, 3): ("*.f64",),
    (2, 0): (
        *("bfe", "bfi", "bfind", "brev", "clz", "popc", "prmt", "testp", "copysign", "isspacep"),
        *("fma.f32", "ldu", "prefetch", "prefetchu", "vote.ballot", "membar.sys"),
        *("bar.arrive", "bar.red", "bar.cta", "pmevent.mask", "madc", "mad.cc"),
        *(f"{n}.{r}.f32" for n in ("rcp", "sqrt", "div") for r in ("rn", "rz", "rm", "rp")),
        *(f"{n}.{r}.f64" for n in ("rcp", "sqrt", "div") for r in ("rz", "rm", "rp")),
        *("rcp.approx.f64", "rsqrt.ftz.f64"),
        *(f"{name}.{r}.f32" for name in ("add", "sub", "mul") for r in ("rm", "rp")),
        *(f"{n}.cc.{t}64" for n in ("add", "addc", "sub", "subc") for t in "us"),
        *("ld.generic", "st.generic", "atom.generic", "red.generic", "atom.f32", "red.f32"),
        *("ld.ca", "ld.cg", "ld.cs", "ld.lu", "ld.cv", "st.wb", "st.cg", "st.cs", "st.wt"),
        *(f"{name}.shared.{type}64" for name in ("atom", "red") for type in "bu"),
        *("cvta.shared", "cvta.local"),
        *("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"),
        *("tex.level", "tex.grad", "tex.a1d", "tex.a2d", "tex.cube", "tex.acube", "tld4"),
        *("suld", "sust", "sured", "suq"),
    ),
    (3, 0): (
        *("shfl", "vote.sync", "activemask", "bar.warp", "barrier", "fns", "brx"),
        *("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"),
        *("vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"),
        *("istypep", "txq.level", "tld4.cube", "tld4.acube"),
    ),
    (3, 2): (
        *("shf", "ld.nc"),
        *(f"{n}.{op}.b64" for n in ("atom", "red") for op in ("and", "or", "xor")),
        *(f"{n}.{op}.{t}64" for n in ("atom", "red") for op in ("min", "max") for t in "us"),
    ),
    (5, 0): ("lop3",),
    (5, 2): ("alloca", "stacksave", "stackrestore"),
    (5, 3): tuple(
        f"{name}.{type}"
        for name in ("tex", "add", "sub", "mul", "fma", "neg", "abs", "set", "setp")
        for type in ("f16", "f16x2")
    ),
    (6, 0): (
        *("atom.f64", "red.f64", "atom.f16x2", "red.f16x2", "membar.alias"),
        *("atom.cta", "atom.gpu", "atom.sys", "red.cta", "red.gpu", "red.sys"),
    ),
    (6, 1): ("dp4a", "dp2a"),
    (7, 0): (
        *("cvta.param", "isspacep.param", "match", "nanosleep", "wmma", "mma", "fence"),
        *("bmsk", "szext", "lop3.or", "lop3.and", "*.b128", "cvt.satfinite"),
        *("ld.weak", "ld.relaxed", "ld.acquire", "ld.mmio", "ld.L1"),
        *("st.weak", "st.relaxed", "st.release", "st.mmio", "st.L1"),
        *("atom.relaxed", "atom.acquire", "atom.release", "atom.acq_rel"),
        *("red.relaxed", "red.release", "atom.f16", "red.f16", "atom.b16"),
    ),
    (7, 2): ("cvt.pack", "wmma.s8", "wmma.u8", "wmma.s32"),
    (7, 5): (
        *("tanh", "ex2.f16", "ex2.f16x2", "ldmatrix", "movmatrix", "ld.L2::64B", "ld.L2::128B"),
        *("wmma.m8n8k32", "wmma.m8n8k128", "mma.m16n8k8", "mma.m8n8k16", "mma.m8n8k32"),
        *("mma.m8n8k128", *(f"cvt.pack.{type}" for type in ("u4", "s4", "u2", "s2"))),
    ),
    (8, 0): (
        *("redux", "mbarrier", "cp.async", "createpolicy", "discard", "applypriority"),
        *("*.bf16", "*.bf16x2", "*.tf32", "*.L2::cache_hint", "min.f16", "max.f16"),
        *("min.f16x2", "max.f16x2", "min.NaN", "max.NaN", "fma.relu", "mma.sp", "mma.f64"),
        *("cvt.relu", "cvt.f16x2.f32", "ld.L2::256B", "wmma.f64", "wmma.m16n16k8"),
        *("prefetch.L2::evict_last", "prefetch.L2::evict_normal"),
        *("mma.m16n8k16", "mma.m16n8k32", "mma.m16n8k64", "mma.m16n8k128", "mma.m16n8k256"),
    ),
    (8, 6): ("min.xorsign", "max.xorsign"),
    (8, 9): ("*.e4m3x2", "*.e5m2x2", "mma.e4m3", "mma.e5m2"),
    (9, 0): (
        *("mbarrier.try_wait", "mbarrier.expect_tx", "mbarrier.complete_tx"),
        *(
            "elect",
            "prefetch.tensormap",
            "stmatrix",
            "griddepcontrol",
            "setmaxnreg",
            "mapa",
            "getctarank",
            "multimem",
            "wgmma",
            "cp.bulk",
            "cp.reduce",
            "tensormap",
        ),
        *("*.shared::cluster", "*.cluster", "barrier.cluster", "fence.async", "membar.async"),
        *("fence.acquire", "fence.release.!tensormap", "mma.f64.!m8n8k4", "atom.b128"),
        *("atom.v2", "atom.v4", "atom.v8", "red.v2", "red.v4", "red.v8", "red.async", "st.async"),
        *(f"{name}.{t}16x2" for name in ("add", "min", "max") for t in "us"),
        *("min.relu", "max.relu", "cvt.rn.tf32", "cvt.rz.tf32", "cvt.ftz.f32.bf16"),
        *(
            f"{name}.{type}"
            for name in ("add", "sub", "mul", "set", "setp", "ex2", "tanh", "atom", "red")
            for type in ("bf16", "bf16x2")
        ),
        *("cvt.bf16.bf16", "cvt.bf16.f16", "cvt.bf16.f64", "cvt.f16.bf16", "cvt.f64.bf16"),
        *(f"cvt.bf16.{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64)),
        *(f"cvt.{sign}{bits}.bf16" for sign in "us" for bits in (8, 16, 32, 64)),
    ),
    (10, 0): (
        *("cp.tile::gather4", "cp.tile::scatter4", "tcgen05"),
        *("fence.fabric", "fence.generic::fabric"),
        *("st.bulk", "*.f32x2", "redux.f32", "cvt.rs", "cvt.satfinite.tf32.!rna"),
        *("*.e2m1x2", "*.e2m3x2", "*.e3m2x2", "*.ue8m0x2"),
        *(f"{name}.f32.{type}" for name in ("add", "sub", "fma") for type in ("f16", "bf16")),
        *("min.abs.!xorsign", "max.abs.!xorsign"),
        *(f"{n}.L2::evict_{p}" for n in ("ld", "st") for p in ("first", "last", "normal")),
        *(f"{n}.v4.{t}" for n in ("ld", "st") for t in ("b64", "u64", "s64", "f64")),
        *(f"{n}.v8.{t}" for n in ("ld", "st") for t in ("b32", "u32", "s32", "f32")),
        *(
            "clusterlaunchcontrol",
            "cp.cp_mask",
            "ldmatrix.m16n16",
            "ldmatrix.m8n16",
            "stmatrix.m16n8",
        ),
    ),
    (12, 0): ("mma.kind",),
}


@cache
def needed(operation: Operation) -> Release:
    """Returns the oldest compute capability that has an instruction."""
    return since(_BROUGHT, operation, operation.spec.since.target)


BLACKWELL = ((10, 0), (10, 1), (10, 3), (10, 7), (11, 0))
SMALL_BLACKWELL = ((12, 0), (12, 1))

RUBIN = ((10, 7),)

ONLY: dict[str, tuple[Release, ...]] = {
    **dict.fromkeys(
        ("cp.prefetch.L2::evict_last", "applypriority.async", "*.multicast::cluster::32b"), RUBIN
    ),
    **dict.fromkeys(("*.override", "cp.mbarrier::report", "tcgen05.sync_restrict"), RUBIN),
    "wgmma": ((9, 0),),
    "tcgen05": BLACKWELL,
    "mma.kind": SMALL_BLACKWELL,
    **dict.fromkeys(
        ("ldmatrix.m16n16", "ldmatrix.m8n16", "stmatrix.m16n8"), BLACKWELL + SMALL_BLACKWELL
    ),
}
"""Instructions that newer targets do not have, by patterns: the architectures that have them. From
compute capability 10.0 on a `.target` for a family (sm_100f) has them as well as one for an
architecture (sm_100a)."""


@cache
def only_targets(operation: Operation) -> tuple[Release, ...]:
    """Returns the only architectures that have an instruction; none where newer ones have it
    too."""
    found = (only for pattern, only in ONLY.items() if is_named(pattern, operation))
    return next(found, ())


def has_letter(release: Release, letter: str) -> bool:
    """Returns whether a `.target` with that letter has what some architectures alone have."""
    return letter == "a" or (letter == "f" and release >= (10, 0))
