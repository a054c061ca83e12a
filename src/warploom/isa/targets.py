"""Which compute capability brought an instruction: PTX ISA, "Target ISA Notes" of each.

What is not named here is as old as PTX. Instructions of the oldest targets that compilers write as
no-ops count as theirs: `cvta` of global and constant memory, where there are no other generic
addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from warploom.isa.spec import Operation

ComputeCapability = tuple[int, int]

OLDEST: ComputeCapability = (1, 0)

_BROUGHT: dict[ComputeCapability, tuple[str, ...]] = {
    (1, 1): ("atom.global", "red.global"),
    (1, 2): ("atom.shared", "red.shared", "atom.global.b64", "atom.global.u64", "red.global.u64"),
    (1, 3): ("*.f64",),
    (2, 0): (
        *("bfe", "bfi", "bfind", "brev", "clz", "popc", "prmt", "testp", "copysign", "isspacep"),
        *("fma.f32", "ldu", "prefetch", "prefetchu", "bar.arrive", "bar.red", "vote.ballot"),
        *("rcp.rn.f32", "rcp.rz.f32", "sqrt.rn.f32", "sqrt.rz.f32", "div.rn.f32", "div.rz.f32"),
        *("add.rm.f32", "add.rp.f32", "sub.rm.f32", "sub.rp.f32", "mul.rm.f32", "mul.rp.f32"),
        *("atom.add.f32", "red.add.f32", "atom.shared.b64", "atom.shared.u64", "membar.sys"),
        *("cvta.shared", "cvta.local", "madc", "mad.cc"),
        *("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"),
        *("tex.level", "tex.grad", "tex.a1d", "tex.a2d", "tex.cube", "tex.acube", "tld4"),
        *("suld", "sust", "sured", "suq"),
    ),
    (3, 0): (
        *("shfl", "vote.sync", "activemask", "bar.warp", "barrier", "fns", "brx"),
        *("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"),
        *("vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"),
        *("istypep", "txq.level"),
    ),
    (3, 2): (
        *("shf", "ld.nc", "atom.and.b64", "atom.or.b64", "atom.xor.b64"),
        *("atom.min.u64", "atom.max.u64", "atom.min.s64", "atom.max.s64"),
    ),
    (5, 0): ("lop3",),
    (5, 2): ("alloca", "stacksave", "stackrestore"),
    (5, 3): tuple(
        f"{name}.{type}"
        for name in ("tex", "add", "sub", "mul", "fma", "neg", "abs", "set", "setp")
        for type in ("f16", "f16x2")
    ),
    (6, 0): (
        *("atom.add.f64", "red.add.f64", "atom.f16x2", "red.f16x2"),
        *("atom.cta", "atom.gpu", "atom.sys", "red.cta", "red.gpu", "red.sys"),
    ),
    (6, 1): ("dp4a", "dp2a"),
    (7, 0): (
        *(
            "cvta.param",
            "isspacep.param",
            "match",
            "nanosleep",
            "wmma",
            "mma",
            "fence",
            "bmsk",
            "szext",
        ),
        *("ld.relaxed", "ld.acquire", "st.relaxed", "st.release"),
        *("atom.relaxed", "atom.acquire", "atom.release", "atom.acq_rel"),
        *("red.relaxed", "red.release", "atom.f16", "red.f16", "atom.b16"),
    ),
    (7, 5): ("tanh", "ex2.f16", "ex2.f16x2", "ldmatrix", "movmatrix"),
    (8, 0): (
        *("redux", "mbarrier", "cp.async", "createpolicy", "discard", "applypriority"),
        *("*.bf16", "*.bf16x2", "*.tf32", "*.L2::cache_hint", "min.f16", "max.f16"),
        *("min.f16x2", "max.f16x2", "min.NaN", "max.NaN", "fma.relu"),
        "mma.sp",
    ),
    (8, 6): ("min.xorsign", "max.xorsign"),
    (8, 9): ("*.e4m3x2", "*.e5m2x2"),
    (9, 0): (
        *("mbarrier.try_wait", "mbarrier.expect_tx", "mbarrier.complete_tx"),
        *("elect", "stmatrix", "griddepcontrol", "mapa", "getctarank", "multimem", "cp.bulk"),
        *("*.shared::cluster", "barrier.cluster", "atom.b128", "atom.v2", "atom.v4", "atom.v8"),
        *("add.u16x2", "add.s16x2", "min.u16x2", "min.s16x2", "max.u16x2", "max.s16x2"),
        *("red.v2", "red.v4", "red.v8", "red.async", "st.async", "redux.f32"),
    ),
    (10, 0): (
        *("st.bulk", "*.f32x2", "ld.v8", "st.v8", "*.e2m1x2", "*.e2m3x2", "*.e3m2x2", "*.ue8m0x2"),
    ),
}
"""Instructions by the compute capability that brought them: a name, or `*`, and parts of it."""


def needed(operation: Operation) -> ComputeCapability:
    """The oldest compute capability that has an instruction."""
    return _needed(operation.text)


@lru_cache
def _needed(text: str) -> ComputeCapability:
    name, *parts = text.split(".")
    present = {*parts, *(part.partition("::")[0] for part in parts)}
    if name in ("ld", "st", "atom", "red") and not present & _SPACES:
        return max((2, 0), _brought(name, {*present, "global"}))  # a generic address
    return _brought(name, present)


_SPACES = {"global", "shared", "local", "const", "param"}


def _brought(name: str, present: set[str]) -> ComputeCapability:
    return max(_matching(name, present), default=OLDEST)


def _matching(name: str, present: set[str]) -> Iterator[ComputeCapability]:
    for brought, patterns in _BROUGHT.items():
        for pattern in patterns:
            first, *wanted = pattern.split(".")
            if first in ("*", name) and present.issuperset(wanted):
                yield brought
