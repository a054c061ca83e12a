"""Loads and stores: PTX ISA, "Data Movement and Conversion Instructions: ld, ldu, st".

They have no terms: the machines move the bytes. Hints about caches change no value.
"""

from __future__ import annotations

from warploom.isa.ops.common import BITS, FLOATS, INTEGERS
from warploom.isa.spec import Unit, declare

SPACES = {
    "space": (
        *("const", "global", "local", "param", "param::entry", "param::func"),
        *("shared", "shared::cta", "shared::cluster"),
    ),
}
ORDER = {"scope": ("cta", "cluster", "gpu", "sys")}
L1_EVICTIONS = tuple(
    f"L1::{policy}"
    for policy in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
)
L2_EVICTIONS = ("L2::evict_normal", "L2::evict_first", "L2::evict_last")
HINTS = "{.evict1}{.evict2}{.L2::cache_hint}"
EVICTIONS = {"evict1": L1_EVICTIONS, "evict2": L2_EVICTIONS}
PREFETCH = {"prefetch": ("L2::64B", "L2::128B", "L2::256B")}
VALUES = {
    "vec": ("v2", "v4"),
    "type": ("b8", "u8", "s8", *BITS, *INTEGERS, *FLOATS),
}

LOAD_DOC = "d = [a]                      PTX ISA, Data Movement and Conversion: ld"
STORE_DOC = "[a] = b                     PTX ISA, Data Movement and Conversion: st"


def load(syntax: str, **choices: tuple[str, ...]) -> None:
    """Declare one syntax line of `ld`: what stands before the hints, the vector and the type."""
    declare(
        f"ld{syntax}{HINTS}{{.prefetch}}{{.vec}}.type",
        dst="d:type",
        src="a:address, policy:b64?",
        unit=Unit.MEMORY,
        semantics=None,
        doc=LOAD_DOC,
        **(EVICTIONS | PREFETCH | VALUES | SPACES | choices),
    )


def store(syntax: str, **choices: tuple[str, ...]) -> None:
    """Declare one syntax line of `st`, likewise."""
    declare(
        f"st{syntax}{HINTS}{{.vec}}.type",
        dst="",
        src="a:address, b:type, policy:b64?",
        unit=Unit.MEMORY,
        semantics=None,
        doc=STORE_DOC,
        **(EVICTIONS | VALUES | SPACES | choices),
    )


load("{.weak}{.space}")
load("{.weak}{.space}.cop", cop=("ca", "cg", "cs", "lu", "cv"))
load(".volatile{.space}")
load(".relaxed.scope{.space}", **ORDER)
load(".acquire.scope{.space}", **ORDER)
load(".mmio.relaxed.scope{.space}", scope=("sys",))
load("{.weak}.space{.cop}.nc", space=("global",), cop=("ca", "cg", "cs"))

store("{.weak}{.space}")
store("{.weak}{.space}.cop", cop=("wb", "cg", "cs", "wt"))
store(".volatile{.space}")
store(".relaxed.scope{.space}", **ORDER)
store(".release.scope{.space}", **ORDER)
store(".mmio.relaxed.scope{.space}", scope=("sys",))

declare(
    "ldu{.space}{.vec}.type",
    dst="d:type",
    src="a:address",
    unit=Unit.MEMORY,
    doc="d = [a], the same address in all lanes   PTX ISA, Data Movement and Conversion: ldu",
    space=("global",),
    vec=VALUES["vec"],
    type=VALUES["type"],
)
