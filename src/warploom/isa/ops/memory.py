"""Loads, stores and copies: PTX ISA, "Data Movement and Conversion Instructions: ld, ldu, st,
prefetch, isspacep, cp.async" and their neighbors.

What moves bytes has no terms: the machines do it. Hints about caches change no value.
"""

from __future__ import annotations

from warploom.core.types import PRED, U64
from warploom.isa.kinds import OpKind
from warploom.isa.ops.common import BITS, FLOATS, INTEGERS
from warploom.isa.preconditions import (
    BULK_SIZE,
    BULK_SOURCE,
    BULK_TARGET,
    SOURCE_ALIGNMENT,
    SOURCE_SIZE,
)
from warploom.isa.spec import ALWAYS, Modifiers, Since, Unit, declare, op
from warploom.isa.terms import Term, constant
from warploom.simt.address_windows import BLOCK_BITS, LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE

SHARED = ("shared", "shared::cta", "shared::cluster")
SPACES = {
    "space": ("const", "global", "local", "param", "param::entry", "param::func", *SHARED),
}
WRITTEN_SPACES = {
    "space": ("global", "local", "param", "param::func", *SHARED),
}
ORDER = {"scope": ("cta", "cluster", "gpu", "sys"), "space": ("global", *SHARED)}
VOLATILE = {"space": ("global", "local", *SHARED)}
"""An access whose order is defined is to memory that threads share; ptxas also compiles volatile
accesses to local memory."""
L1_EVICTIONS = tuple(
    f"L1::{policy}"
    for policy in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
)
L2_EVICTIONS = ("L2::evict_normal", "L2::evict_first", "L2::evict_last")
HINTS = "{.evict1}{.evict2}{.L2::cache_hint}"
EVICTIONS = {"evict1": L1_EVICTIONS, "evict2": L2_EVICTIONS}
PREFETCH = {"prefetch": ("L2::64B", "L2::128B", "L2::256B")}
VALUES = {
    "vec": ("v2", "v4", "v8"),
    "type": ("b8", "u8", "s8", *BITS, "b128", *INTEGERS, *FLOATS),
}

LOAD_DOC = "d = [a]                      PTX ISA, Data Movement and Conversion: ld"
STORE_DOC = "[a] = b                     PTX ISA, Data Movement and Conversion: st"


def load(syntax: str, **choices: tuple[str, ...]) -> None:
    """Declares one syntax line of `ld`: what stands before the hints, the vector and the type."""
    declare(
        f"ld{syntax}{HINTS}{{.prefetch}}{{.vec}}.type",
        OpKind.LOAD,
        dst="d:type",
        src="a:address, policy:b64?",
        unit=Unit.MEMORY,
        semantics=None,
        doc=LOAD_DOC,
        **(EVICTIONS | PREFETCH | VALUES | SPACES | choices),
    )


def store(syntax: str, **choices: tuple[str, ...]) -> None:
    """Declares one syntax line of `st`, likewise."""
    declare(
        f"st{syntax}{HINTS}{{.vec}}.type",
        OpKind.STORE,
        dst="",
        src="a:address, b:type, policy:b64?",
        unit=Unit.MEMORY,
        semantics=None,
        doc=STORE_DOC,
        **(EVICTIONS | VALUES | WRITTEN_SPACES | choices),
    )


load("{.weak}{.space}")
load("{.weak}{.space}.cop", cop=("ca", "cg", "cs", "lu", "cv"))
load(".volatile{.space}", **VOLATILE)
load(".relaxed.scope{.space}", **ORDER)
load(".acquire.scope{.space}", **ORDER)
load(".mmio.relaxed.scope{.space}", scope=("sys",), space=("global",))
load("{.weak}.space{.cop}.nc", space=("global",), cop=("ca", "cg", "cs"))

store("{.weak}{.space}")
store("{.weak}{.space}.cop", cop=("wb", "cg", "cs", "wt"))
store(".volatile{.space}", **VOLATILE)
store(".relaxed.scope{.space}", **ORDER)
store(".release.scope{.space}", **ORDER)
store(".mmio.relaxed.scope{.space}", scope=("sys",), space=("global",))

COMPLETES = "mbarrier::complete_tx::bytes"
"""The modifier of instructions that report their bytes to an mbarrier."""

declare(
    f"st.async{{.weak}}.space.{COMPLETES}{{.vec}}.type",
    OpKind.ASYNC_STORE,
    src="a:address, b:type, barrier:address",
    unit=Unit.MEMORY,
    doc="[a] = b; then signals completion to an mbarrier   PTX ISA, Data Movement: st.async",
    space=("shared::cluster",),
    vec=("v2", "v4"),
    type=("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"),
)
declare(
    "st.async.mmio.release.scope{.space}.type",
    OpKind.STORE,
    Since((8, 7), (10, 0)),
    src="a:address, b:type",
    unit=Unit.MEMORY,
    doc="[a] = b (modelled as a synchronous store)   PTX ISA, Data Movement: st.async",
    scope=("sys",),
    space=("global",),
    type=(*BITS, *INTEGERS, "f32", "f64"),
)
declare(
    "st.bulk{.weak}{.space}",
    OpKind.FILL,
    src="a:address, size:u64, value:zero",
    unit=Unit.MEMORY,
    doc="size bytes at [a] = 0, 8 bytes at a time   PTX ISA, Data Movement: st.bulk",
    space=("shared::cta",),
)
declare(
    "ldu{.space}{.vec}.type",
    OpKind.LOAD,
    dst="d:type",
    src="a:address",
    unit=Unit.MEMORY,
    doc="d = [a]; all lanes use the same address   PTX ISA, Data Movement and Conversion: ldu",
    space=("global",),
    vec=VALUES["vec"],
    type=VALUES["type"],
)


# ---- hints --------------------------------------------------------------------------------------

HINT_DOC = "gives a cache a hint about [a]; changes no value"


def hint(
    syntax: str,
    section: str,
    src: str = "a:address",
    needs: tuple[str, ...] = (),
    since: Since = ALWAYS,
    **choices: tuple[str, ...],
) -> None:
    """Declares one syntax line of what only speaks to caches."""
    doc = f"{HINT_DOC}   PTX ISA, Data Movement and Conversion: {section}"
    declare(
        syntax,
        OpKind.CACHE_HINT,
        since,
        dst="",
        src=src,
        unit=Unit.MEMORY,
        semantics=None,
        doc=doc,
        needs=needs,
        **choices,
    )


hint("prefetch{.space}.level", "prefetch", space=("global", "local"), level=("L1", "L2"))
hint("prefetch.space.level", "prefetch", space=("global",), level=L2_EVICTIONS)
hint(
    "prefetch{.space}.L1::32B.valid_addr",
    "prefetch",
    since=Since((9, 4), (9, 0)),
    space=("global",),
)
hint("prefetch{.space}.tensormap", "prefetch", space=("const", "param"))
hint("prefetchu.L1", "prefetchu")
hint(
    "applypriority{.space}.level",
    "applypriority",
    "a:address, size:u64",
    space=("global",),
    level=("L2::evict_normal",),
)
hint("discard{.space}.L2", "discard", "a:address, size:u64", space=("global",))
hint(
    "cp.async.bulk.prefetch.L2.space{.L2::cache_hint}",
    "cp.async.bulk.prefetch",
    "a:address, size:u32, policy:b64?",
    (BULK_SIZE.name, BULK_SOURCE.name),
    space=("global",),
)
RUBIN = Since((9, 4), (10, 7))
hint(
    "cp.async.bulk.prefetch.L2.space.L2::evict_last",
    "cp.async.bulk.prefetch",
    "a:address, size:u32",
    (BULK_SIZE.name, BULK_SOURCE.name),
    RUBIN,
    space=("global",),
)
hint(
    "applypriority.async.bulk.space.bulk_group.L2::evict_normal",
    "applypriority.async.bulk",
    "a:address, size:u32",
    since=RUBIN,
    space=("global",),
)

POLICIES = {
    "primary": (*L2_EVICTIONS, "L2::evict_unchanged"),
    "secondary": ("L2::evict_first", "L2::evict_unchanged"),
}


@op(
    "createpolicy.fractional.primary{.secondary}.b64",
    dst="d:b64",
    src="fraction:f32?",
    unit=Unit.MOVE,
    **POLICIES,
)
@op(
    "createpolicy.range{.global}.primary{.secondary}.b64",
    dst="d:b64",
    src="a:address, primary_size:u32, total_size:u32",
    unit=Unit.MOVE,
    **POLICIES,
)
@op("createpolicy.cvt.L2.b64", dst="d:b64", src="property:b64", unit=Unit.MOVE)
def createpolicy(_: Modifiers, *operands: Term) -> Term:
    """d = a cache policy for use as a hint   PTX ISA, Data Movement and Conversion: createpolicy

    What it is made of is open; no cache here listens to it."""
    return constant(0, U64)


# ---- generic addresses --------------------------------------------------------------------------


@op(
    "isspacep.space",
    dst="p:pred",
    src="a:u64",
    unit=Unit.LOGIC,
    space=("global", "local", "shared", "shared::cta", "shared::cluster"),
)
def isspacep(m: Modifiers, a: Term) -> Term:
    """p = whether the generic address a is in this space   PTX ISA, Data Movement: isspacep

    What lies in no window is global memory."""
    windows = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
    inside = {name: (a - start) < WINDOW_SIZE for name, start in windows.items()}
    space = m.text("space", "").partition("::")[0]
    if space == "shared" and m["space"] != "shared::cluster":
        return (a - SHARED_WINDOW) < (1 << BLOCK_BITS)
    if space != "global":
        return inside[space]
    return Term("not", PRED, (Term("or", PRED, tuple(inside.values())),))


declare(
    "isspacep.space",
    OpKind.TEST_PARAMETER,
    dst="p:pred",
    src="a:u64",
    unit=Unit.LOGIC,
    doc="p = whether the generic address a is in the parameter space   PTX ISA, isspacep",
    space=("param", "param::entry"),
)


# ---- asynchronous copies ------------------------------------------------------------------------

declare(
    "cp.async.cop.to.global{.L2::cache_hint}{.prefetch}",
    OpKind.COPY,
    dst="",
    src="d:address, a:address, size:bytes, count:any?, policy:b64?",
    unit=Unit.MEMORY,
    semantics=None,
    doc="""[d] = size bytes at [a]; bytes beyond count are 0; if the predicate is true, all are 0
    PTX ISA, Data Movement and Conversion: cp.async. Each copy is complete when the next begins.""",
    needs=(SOURCE_SIZE.name, SOURCE_ALIGNMENT.name),
    cop=("ca", "cg"),
    to=("shared", "shared::cta"),
    **PREFETCH,
)
BULK_NEEDS = (BULK_SIZE.name, BULK_TARGET.name, BULK_SOURCE.name)
BULK_DOC = """[d] = size bytes at [a], 16 bytes at a time; then signals completion to an mbarrier
PTX ISA, Data Movement and Conversion: cp.async.bulk. Each copy is complete when the next begins."""
declare(
    "cp.async.bulk.to.from.mbarrier::complete_tx::bytes{.mbarrier::report::disabled}{.L2::cache_hint}",
    OpKind.BULK_COPY,
    dst="",
    src="d:address, a:address, size:u32, barrier:address, policy:b64?",
    unit=Unit.MEMORY,
    semantics=None,
    doc=BULK_DOC,
    needs=BULK_NEEDS,
    **{"to": ("shared::cta", "shared::cluster"), "from": ("global",)},
)
declare(
    "cp.async.bulk.to.from.bulk_group{.L2::cache_hint}",
    OpKind.BULK_COPY,
    dst="",
    src="d:address, a:address, size:u32, policy:b64?",
    unit=Unit.MEMORY,
    semantics=None,
    doc="[d] = size bytes at [a], 16 bytes at a time   PTX ISA, Data Movement: cp.async.bulk",
    needs=BULK_NEEDS,
    **{"to": ("global",), "from": ("shared::cta",)},
)
GROUP_DOC = (
    "groups copies, or waits for groups of copies   PTX ISA, Data Movement and Conversion: cp.async"
)
declare("cp.async.commit_group", OpKind.COPY_COMMIT, unit=Unit.MEMORY, doc=GROUP_DOC)
declare("cp.async.wait_group", OpKind.COPY_WAIT, src="n:u32", unit=Unit.MEMORY, doc=GROUP_DOC)
declare("cp.async.bulk.commit_group", OpKind.COPY_COMMIT, unit=Unit.MEMORY, doc=GROUP_DOC)
declare(
    "cp.async.bulk.wait_group{.read}",
    OpKind.COPY_WAIT,
    src="n:u32",
    unit=Unit.MEMORY,
    doc=GROUP_DOC,
)
declare(
    "cp.async.bulk.wait_group.sync_restrict::proxy::async",
    OpKind.COPY_WAIT,
    Since((9, 5), (9, 0)),
    src="n:u32",
    unit=Unit.MEMORY,
    doc=GROUP_DOC,
)
declare("cp.async.wait_all", OpKind.COPY_WAIT, unit=Unit.MEMORY, doc=GROUP_DOC)
