"""Tables of the version of PTX that brought each instruction: PTX ISA, "PTX ISA Notes" of each.

What is neither named here nor declared with its syntax (`spec.Since`) is as old as PTX.
`tools/ptx_releases.py` compares it with ptxas.
"""

from __future__ import annotations

from functools import cache

from warploom.isa.since import Release, Table, since
from warploom.isa.spec import FORMS, Operation

FORMATS = ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2")

_BROUGHT: Table = {
    (1, 1): ("ld.volatile", "st.volatile"),
    (1, 2): ("add.cc", "addc", "red", "atom.b64", "atom.u64", "vote"),
    (1, 3): ("sub.cc", "subc"),
    (1, 4): ("*.ftz", "*.approx", "*.full", "fma", "membar", "pmevent"),
    (2, 0): (
        *("bfe", "bfi", "bfind", "brev", "clz", "popc", "prmt", "testp", "copysign"),
        *("isspacep", "cvta", "ldu", "prefetch", "prefetchu", "fma.f32", "membar.sys"),
        *("bar.arrive", "bar.red", "vote.ballot", "atom.f32", "red.f32"),
        *("atom.shared.b64", "atom.shared.u64", "red.shared.b64", "red.shared.u64"),
        *("ld.generic", "st.generic", "atom.generic", "red.generic"),
        *("ld.ca", "ld.cg", "ld.cs", "ld.lu", "ld.cv", "st.wb", "st.cg", "st.cs", "st.wt"),
        *("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"),
    ),
    (2, 1): ("rcp.approx.f64",),
    (3, 0): (
        *("shfl", "mad.cc", "madc", "pmevent.mask"),
        *("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"),
        *("vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"),
    ),
    (3, 1): (
        *("shf", "ld.nc", "cvta.const", "red.b64", "red.s64", "red.min.u64", "red.max.u64"),
        *("atom.and.b64", "atom.or.b64", "atom.xor.b64"),
        *("atom.s64", "atom.min.u64", "atom.max.u64"),
    ),
    (4, 0): ("istypep", "rsqrt.ftz.f64"),
    (4, 2): tuple(
        f"{name}.{type}"
        for name in ("tex", "add", "sub", "mul", "fma", "set", "setp")
        for type in ("f16", "f16x2")
    ),
    (4, 3): (
        *("lop3", "tld4.cube", "tld4.acube", "txq.level"),
        *(f"{n}.cc.{t}64" for n in ("add", "addc", "sub", "subc", "mad", "madc") for t in "us"),
    ),
    (5, 0): (
        *("dp4a", "dp2a", "atom.f64", "red.f64"),
        *(f"{name}.{scope}" for name in ("atom", "red") for scope in ("cta", "gpu", "sys")),
    ),
    (6, 0): (
        *("shfl.sync", "vote.sync", "match", "fns", "barrier", "bar.warp", "brx", "fence"),
        *("ld.weak", "ld.relaxed", "ld.acquire", "st.weak", "st.relaxed", "st.release"),
        *("atom.relaxed", "atom.acquire", "atom.release", "atom.acq_rel"),
        *("red.relaxed", "red.release", "neg.f16", "neg.f16x2"),
    ),
    (6, 2): ("activemask", "nanosleep", "atom.f16x2", "red.f16x2"),
    (6, 3): ("atom.b16", "atom.f16", "red.f16", "wmma"),
    (6, 4): ("mma",),
    (6, 5): (
        *("abs.f16", "abs.f16x2", "cvt.pack", "ldmatrix"),
        *(f"set.{int}.{t}" for int in ("u16", "s16", "u32", "s32") for t in ("f16", "f16x2")),
    ),
    (7, 0): (
        *("tanh", "redux", "mbarrier", "cp.async", "ex2.f16", "ex2.f16x2"),
        *("fma.relu", "fma.bf16", "fma.bf16x2", "abs.bf16", "abs.bf16x2", "neg.bf16", "neg.bf16x2"),
        *("cvt.relu", "cvt.bf16", "cvt.bf16x2", "cvt.f16x2", "cvt.tf32"),
        *(
            f"{name}.{suffix}"
            for name in ("min", "max")
            for suffix in ("NaN", "f16", "f16x2", "bf16", "bf16x2")
        ),
        *("mma.m16n8k8.!f16", "mma.m16n8k16", "mma.m16n8k32", "mma.m16n8k64", "mma.b1"),
        *("wmma.bf16", "wmma.f64", "wmma.m16n16k8"),
    ),
    (7, 1): ("mma.sp", "mma.and", "mbarrier.parity", "cvt.f32.bf16"),
    (7, 2): ("min.xorsign", "max.xorsign"),
    (7, 3): ("alloca", "stacksave", "stackrestore"),
    (7, 4): (
        *("createpolicy", "applypriority", "discard", "*.L2::cache_hint"),
        *("ld.L1", "st.L1", "prefetch.L2::evict_last", "prefetch.L2::evict_normal"),
        *("ld.L2::64B", "ld.L2::128B", "ld.L2::256B", "cp.L2::64B", "cp.L2::128B", "cp.L2::256B"),
    ),
    (7, 5): ("fence.alias", "membar.alias"),
    (7, 6): ("bmsk", "szext"),
    (7, 7): ("cvta.param", "isspacep.param"),
    (7, 8): (
        *("movmatrix", "stmatrix", "griddepcontrol", "mbarrier.try_wait", "mma.f64.!m8n8k4"),
        *(
            "*.shared::cta.!async",
            "cp.arrive.shared::cta",
            "*.shared::cluster",
            "*.cluster",
            "bar.cta",
            "barrier.cta",
        ),
        *(
            f"{name}.{type}"
            for name in ("add", "sub", "mul", "set", "setp", "ex2", "tanh", "atom", "red")
            for type in ("bf16", "bf16x2")
        ),
        *("cvt.e4m3x2", "cvt.e5m2x2", "cvt.ftz.f32.bf16"),
        *("cvt.rn.tf32", "cvt.rz.tf32", "cvt.bf16.bf16", "cvt.bf16.f16", "cvt.bf16.f64"),
        *(f"cvt.bf16.{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64)),
        *(f"cvt.{type}.bf16" for type in ("f16", "f64")),
        *(f"cvt.{sign}{bits}.bf16" for sign in "us" for bits in (8, 16, 32, 64)),
    ),
    (8, 0): (
        *(
            "elect",
            "prefetch.tensormap",
            "cp.bulk",
            "cp.reduce",
            "mbarrier.expect_tx",
            "mbarrier.complete_tx",
        ),
        *("setmaxnreg", "wgmma"),
        *("mbarrier.cta", "mbarrier.cluster", "fence.async", "membar.async"),
        *("fence.mbarrier_init", "min.relu", "max.relu"),
        *(f"{name}.{t}16x2" for name in ("add", "min", "max") for t in "us"),
    ),
    (8, 1): (
        *("atom.v2", "atom.v4", "atom.v8", "red.v2", "red.v4", "red.v8", "red.async", "st.async"),
        *(
            "cvt.satfinite.f16",
            "cvt.satfinite.bf16",
            "cvt.satfinite.tf32",
            "cvt.satfinite.f16x2.f32",
            "cvt.satfinite.bf16x2.f32",
        ),
    ),
    (8, 2): ("wgmma.sp", "ld.mmio", "st.mmio", "lop3.or", "lop3.and"),
    (8, 3): ("*.b128", "*.param::entry", "*.param::func", "fence.tensormap", "tensormap"),
    (8, 4): ("ld.sys.b128", "st.sys.b128", "atom.sys.b128", "mma.e4m3", "mma.e5m2"),
    (8, 5): ("mma.sp::ordered_metadata",),
    (8, 6): (
        *(
            "*.f32x2",
            "st.bulk",
            "redux.f32",
            "fence.acquire",
            "fence.release.!tensormap.!mbarrier_init",
        ),
        *(
            "fence.async::generic",
            "fence.sync_restrict",
            *(
                f"mbarrier.{name}.relaxed"
                for name in ("arrive", "arrive_drop", "test_wait", "try_wait")
            ),
        ),
        *(f"{name}.f32.{type}" for name in ("add", "sub", "fma") for type in ("f16", "bf16")),
        *(
            "tcgen05",
            "cp.bulk.shared::cta.global",
            "cvt.e2m1x2",
            "cvt.e2m3x2",
            "cvt.e3m2x2",
            "cvt.ue8m0x2",
            "cvt.rn.satfinite.tf32",
        ),
        *("clusterlaunchcontrol", "cp.cp_mask"),
        *("cvt.rz.satfinite.tf32", "ldmatrix.m16n16", "ldmatrix.m8n16", "stmatrix.m16n8"),
    ),
    (8, 7): ("cvt.rs", "mma.e4m3.f16", "mma.e5m2.f16", "mma.kind"),
    (8, 8): (
        "tcgen05.red",
        *("min.abs.!xorsign", "max.abs.!xorsign"),
        *(f"{n}.L2::evict_{p}" for n in ("ld", "st") for p in ("first", "last", "normal")),
        *(f"{n}.v4.{t}" for n in ("ld", "st") for t in ("b64", "u64", "s64", "f64")),
        *(f"{n}.v8.{t}" for n in ("ld", "st") for t in ("b32", "u32", "s32", "f32")),
    ),
    (9, 1): (
        *(f"cvt.bf16x2.{type}" for type in FORMATS),
        *(f"cvt.satfinite.{type}.bf16x2" for type in FORMATS),
        *(f"cvt.satfinite.{type}.f16x2" for type in FORMATS[2:]),
        *("ld.volatile.local", "st.volatile.local"),
    ),
    (9, 2): tuple(f"cvt.relu.bf16x2.{type}" for type in FORMATS),
    (9, 3): ("fence.fabric", "fence.generic::fabric"),
    (9, 4): (
        *("*.override", "cp.mbarrier::report", "applypriority.async", "cp.tensor.L2::evict_last"),
        *("*.multicast::cluster::16b", "*.multicast::cluster::32b"),
    ),
}


@cache
def newest() -> Release:
    """Returns the newest version of PTX of which something is here."""
    declared = (spec.since.version for forms in FORMS.values() for spec in forms)
    return max(*_BROUGHT, *declared)


@cache
def needed_version(operation: Operation) -> Release:
    """Returns the oldest version of PTX that has an instruction."""
    return since(_BROUGHT, operation, operation.spec.since.version)
