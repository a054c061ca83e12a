"""Atomic read-modify-writes: PTX ISA, "Parallel Synchronization and Communication: atom, red".

Their term is the value that they leave in memory, over the old value and the operands after the
address (`Operation.combine`); `atom` gives the old value to its destination.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.core.types import PRED
from warploom.isa.kinds import OpKind
from warploom.isa.ops import half
from warploom.isa.ops.common import by_part
from warploom.isa.spec import Modifiers, Semantics, Unit, op
from warploom.isa.terms import (
    Term,
    canonical,
    eq,
    float_op,
    flush_subnormal,
    maximum,
    minimum,
    select,
)

ADDED = ("u32", "u64", "s32")
COMPARED = ("u32", "u64", "s32", "s64")
BITS = ("b32", "b64")
HALVES = ("f16", "bf16")
PACKED_HALVES = ("f16x2", "bf16x2")
ORDERS = ("relaxed", "acquire", "release", "acq_rel")
REDUCTION_ORDERS = ("relaxed", "release")
PREFIX = "{.sem}{.scope}{.space}"
CHOICES = {
    "scope": ("cta", "cluster", "gpu", "sys"),
    "space": ("global", "shared", "shared::cta", "shared::cluster"),
}


def atomic(
    names: tuple[str, ...],
    types: tuple[str, ...],
    *,
    reduction: bool = True,
    src: str = "b:type",
    flush: str = "",
    vectors: tuple[str, ...] = (),
) -> Callable[[Semantics], Semantics]:
    """Declares the operations `names` as `atom` and, unless `reduction` is false, as `red`.

    With `vectors`, those forms of .global memory whose elements are each an atomic of its own.
    """

    def register(semantics: Semantics) -> Semantics:
        vector = ".vec" if vectors else ""
        tail = f"{PREFIX}.op{flush}{{.L2::cache_hint}}{vector}.type"
        sources = f"a:address, {src}, policy:b64?"
        choices = CHOICES | {"op": names, "type": types, "sem": ORDERS, "vec": vectors}
        if vectors:
            choices["space"] = ("global",)
        op(
            f"atom{tail}",
            OpKind.ATOMIC,
            dst="d:type",
            src=sources,
            unit=Unit.ATOMIC,
            **choices,
        )(semantics)
        if reduction:
            choices["sem"] = REDUCTION_ORDERS
            op(
                f"red{tail}",
                OpKind.REDUCTION,
                dst="",
                src=sources,
                unit=Unit.ATOMIC,
                **choices,
            )(semantics)
        return semantics

    return register


def asynchronous(name: str, *types: str) -> Callable[[Semantics], Semantics]:
    """Declares an operation as `red.async`: behind it, its bytes have come at an mbarrier."""
    return op(
        "red.async.sem.scope.space.mbarrier::complete_tx::bytes.op.type",
        OpKind.ASYNC_REDUCTION,
        src="a:address, b:type, barrier:address",
        unit=Unit.ATOMIC,
        sem=("relaxed",),
        scope=("cluster",),
        space=("shared::cluster",),
        op=(name,),
        type=types,
    )


@asynchronous("add", "u32", "s32", "u64")
@atomic(("add",), ADDED)
def add(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = [a] + b                               PTX ISA, Parallel Synchronization: atom, red"""
    return old + b


@atomic(("add",), ("f32",), vectors=("v2", "v4"))
@atomic(("add",), ("f32", "f64"))
def add_float(m: Modifiers, old: Term, b: Term) -> Term:
    """[a] = [a] + b; .f32 flushes subnormals except in .shared
    PTX ISA, Parallel Synchronization: atom, red"""
    if old.type.bits == 64 or m.text("space", "").startswith("shared"):
        return canonical(float_op("fadd", "rn", old, b))
    total = float_op("fadd", "rn", flush_subnormal(old), flush_subnormal(b))
    return flush_subnormal(canonical(total))


@atomic(("add",), PACKED_HALVES, flush=".noftz", vectors=("v2", "v4"))
@atomic(("add",), HALVES, flush=".noftz", vectors=("v2", "v4", "v8"))
@atomic(("add",), (*HALVES, *PACKED_HALVES), flush=".noftz")
@by_part
def add_half(m: Modifiers, old: Term, b: Term) -> Term:
    """[a] = [a] + b                               PTX ISA, Parallel Synchronization: atom, red"""
    return half.add(m, old, b)


@atomic(("min",), PACKED_HALVES, flush=".noftz", vectors=("v2", "v4"))
@atomic(("min",), HALVES, flush=".noftz", vectors=("v2", "v4", "v8"))
@by_part
def smaller_half(m: Modifiers, old: Term, b: Term) -> Term:
    """[a] = min([a], b)                           PTX ISA, Parallel Synchronization: atom, red"""
    return half.smaller(m, old, b)


@atomic(("max",), PACKED_HALVES, flush=".noftz", vectors=("v2", "v4"))
@atomic(("max",), HALVES, flush=".noftz", vectors=("v2", "v4", "v8"))
@by_part
def larger_half(m: Modifiers, old: Term, b: Term) -> Term:
    """[a] = max([a], b)                           PTX ISA, Parallel Synchronization: atom, red"""
    return half.larger(m, old, b)


@asynchronous("min", "u32", "s32")
@atomic(("min",), COMPARED)
def smaller(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = min([a], b)                           PTX ISA, Parallel Synchronization: atom, red"""
    return minimum(old, b)


@asynchronous("max", "u32", "s32")
@atomic(("max",), COMPARED)
def larger(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = max([a], b)                           PTX ISA, Parallel Synchronization: atom, red"""
    return maximum(old, b)


@asynchronous("inc", "u32")
@atomic(("inc",), ("u32",))
def increment(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = ([a] >= b) ? 0 : [a] + 1              PTX ISA, Parallel Synchronization: atom, red"""
    return select(old >= b, 0, old + 1)


@asynchronous("dec", "u32")
@atomic(("dec",), ("u32",))
def decrement(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = ([a] == 0 or [a] > b) ? b : [a] - 1   PTX ISA, Parallel Synchronization: atom, red"""
    return select(Term("or", PRED, (eq(old, 0), old > b)), b, old - 1)


@asynchronous("and", "b32")
@atomic(("and",), BITS)
def bitwise_and(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = [a] & b                               PTX ISA, Parallel Synchronization: atom, red"""
    return old & b


@asynchronous("or", "b32")
@atomic(("or",), BITS)
def bitwise_or(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = [a] | b                               PTX ISA, Parallel Synchronization: atom, red"""
    return old | b


@asynchronous("xor", "b32")
@atomic(("xor",), BITS)
def bitwise_xor(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = [a] ^ b                               PTX ISA, Parallel Synchronization: atom, red"""
    return old ^ b


@atomic(("exch",), (*BITS, "b128"), reduction=False)
def exchange(_: Modifiers, old: Term, b: Term) -> Term:
    """[a] = b                                     PTX ISA, Parallel Synchronization: atom"""
    return b


@atomic(("cas",), ("b16", *BITS, "b128"), reduction=False, src="b:type, c:type")
def compare_and_swap(_: Modifiers, old: Term, b: Term, c: Term) -> Term:
    """[a] = ([a] == b) ? c : [a]                  PTX ISA, Parallel Synchronization: atom"""
    return select(eq(old, b), c, old)
