"""Lane vectors and masks: the vocabulary in which the code of one warp is written.

A value of 32 lanes is `<32 x T>`; a mask or a predicate is `<32 x i1>`; the bits of a mask, when
scalar code needs them, are an i32 with lane l in bit l. This module knows LLVM and nothing of PTX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from llvmlite import ir

from warploom.core.types import Kind, ScalarType

LANES = 32

Value = Any
"""An llvmlite value; the library is untyped."""

I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
PTR = ir.PointerType()
MASK = ir.VectorType(I1, LANES)


def vector(element: ir.Type) -> ir.VectorType:
    """`<32 x element>`."""
    return ir.VectorType(element, LANES)


def element_type(type: ScalarType) -> ir.Type:
    """Return the LLVM type in which one lane of a PTX type is computed."""
    if type.kind is Kind.FLOAT and type.bits in (32, 64):
        return ir.FloatType() if type.bits == 32 else ir.DoubleType()
    return ir.IntType(type.bits)


def lane_type(type: ScalarType, width: int = LANES) -> ir.VectorType:
    """Return the LLVM type in which 32 lanes, or others, of a PTX type are computed."""
    return ir.VectorType(element_type(type), width)


def storage_type(type: ScalarType, width: int = LANES) -> ir.VectorType:
    """Return the LLVM type in which a register is kept: always integers, so that any reading of its
    bits is free."""
    return ir.VectorType(ir.IntType(type.bits), width)


def splat_constant(value: int, element: ir.Type) -> ir.Constant:
    """Return the same integer in every lane."""
    return repeated(value, element, LANES)


@lru_cache(maxsize=4096)
def repeated(value: int, element: ir.Type, width: int) -> ir.Constant:
    """Return the same integer `width` times. Spelled out, such constants would be most of the text
    that goes to LLVM."""
    return _Short(ir.VectorType(element, width), f"splat ({element} {value})")


def zero(type: ir.Type) -> ir.Constant:
    """Zero of any type but a pointer, in the short spelling."""
    return _Short(type, "zeroinitializer")


def undefined(type: ir.Type) -> ir.Constant:
    """Return any value of a type."""
    return _Short(type, "undef")


def spelled(type: ir.Type, spelling: str) -> ir.Constant:
    """Return the constant of a type that LLVM spells so."""
    return _Short(type, spelling)


class _Short(ir.Constant):
    """A constant by LLVM's own short spelling of it."""

    def __init__(self, type: ir.Type, spelling: str, value: Any = ir.Undefined) -> None:
        super().__init__(type, value)
        self.spelling = spelling

    def _get_reference(self) -> str:
        return self.spelling


def selection(order: Iterable[int]) -> ir.Constant:
    """Returns the constant by which a shuffle picks these lanes."""
    picked = [I32(lane) for lane in order]
    return ir.Constant(ir.VectorType(I32, len(picked)), picked)


@lru_cache
def first(width: int) -> ir.Constant:
    """Return the shuffle that takes lane 0 for all."""
    return _Short(ir.VectorType(I32, width), "zeroinitializer", [I32(0)] * width)


@lru_cache(maxsize=256)
def lane_numbers(element: ir.Type, stride: int = 1) -> ir.Constant:
    """0, stride, 2 * stride, ..."""
    return ir.Constant(vector(element), [ir.Constant(element, stride * i) for i in range(LANES)])


class Lanes:
    """A builder for lane vectors on top of an LLVM builder (`b`), which callers also use as is."""

    def __init__(self, module: ir.Module, builder: ir.IRBuilder) -> None:
        self.module = module
        self.b: Any = builder

    def alloca(self, type: ir.Type, align: int | None = None) -> Value:
        """Return room for a value on the stack, as an opaque pointer."""
        place = self.b.alloca(type)
        place.align, place.type = align, PTR
        return place

    def intrinsic(self, name: str, result: ir.Type, args: Sequence[Value]) -> Value:
        """Call the LLVM intrinsic of that full name."""
        return self.b.call(self.function(name, result, [a.type for a in args]), list(args))

    def function(self, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> Value:
        """Return the function of that name, declared when it is first asked for."""
        known: Any = self.module.globals
        if name not in known:
            return ir.Function(self.module, ir.FunctionType(result, list(arguments)), name)
        return known[name]

    def leave_rolled(self, back: Value) -> None:
        """Have LLVM not unroll the loop of which this is the branch back (LLVM Language Reference,
        "llvm.loop"): by a node that names itself first."""
        module: Any = self.module
        rule = module.add_metadata(["llvm.loop.unroll.disable"])
        node = module.add_metadata([rule, I64(len(module.metadata))])
        node.operands = (node, rule)
        back.set_metadata("llvm.loop", node)

    def splat(self, scalar: Value, width: int = LANES) -> Value:
        """Return the scalar in every lane."""
        whole = ir.VectorType(scalar.type, width)
        alone = self.b.insert_element(undefined(whole), scalar, I32(0))
        if width == 1:
            return alone
        return self.b.shuffle_vector(alone, undefined(whole), first(width))

    def fan(self, value: Value, stride: int, width: int = LANES) -> Value:
        """Return a value of fewer lanes as one of `width`: those it has are the first of as many
        equal parts, in which others follow by a stride."""
        have = value.type.count
        if have == width:
            return value
        if value.type == ir.VectorType(I1, 1) and width == LANES:
            return self.mask(self.b.sext(self.lane(value, 0), I32))  # shuffled, it takes 16 steps
        part, step = width // have, LANES // width
        places = [I32(lane // part) for lane in range(width)]
        order = ir.Constant(ir.VectorType(I32, width), places)
        spread = self.b.shuffle_vector(value, value, order)
        if not stride:
            return spread
        element = value.type.element
        steps = [ir.Constant(element, stride * (lane % part) * step) for lane in range(width)]
        return self.b.add(spread, ir.Constant(spread.type, steps))

    def firsts(self, value: Value, width: int) -> Value:
        """Returns the first lane of each of `width` equal parts of 32 lanes."""
        return self.b.shuffle_vector(value, value, selection(range(0, LANES, LANES // width)))

    def lane(self, value: Value, index: Value | int) -> Value:
        """Return one lane of a vector."""
        return self.b.extract_element(value, I32(index) if isinstance(index, int) else index)

    def bits(self, mask: Value) -> Value:
        """Return a mask as an i32."""
        if getattr(mask, "opname", "") == "bitcast" and mask.operands[0].type == I32:
            return mask.operands[0]
        return self.b.bitcast(mask, I32)

    def mask(self, bits: Value) -> Value:
        """Return an i32 as a mask."""
        return self.b.bitcast(bits, MASK)

    def wide_mask(self, bits: Value) -> Value:
        """Return an i32 as a mask that is to select among elements of 32 or 64 bits. LLVM takes the
        plain one apart bit by bit there, where a processor has no registers for masks."""
        own = ir.Constant(vector(I32), [I32(1 << lane) for lane in range(LANES)])
        return self.b.icmp_unsigned("!=", self.b.and_(self.splat(bits), own), zero(vector(I32)))

    def any(self, mask: Value) -> Value:
        """Returns whether some lane is set, as an i1."""
        return self.b.icmp_unsigned("!=", self.bits(mask), I32(0))

    def all(self, mask: Value) -> Value:
        """Returns whether every lane is set, as an i1."""
        return self.b.icmp_unsigned("==", self.bits(mask), I32(-1))

    def some(self, mask: Value) -> Value:
        """Returns whether some lane of a mask of any width is set."""
        whole = ir.IntType(mask.type.count)
        return self.b.icmp_unsigned("!=", self.b.bitcast(mask, whole), whole(0))

    def popcount(self, bits: Value) -> Value:
        """Returns how many lanes an i32 of mask bits has, as an i64."""
        return self.b.zext(self.intrinsic("llvm.ctpop.i32", I32, [bits]), I64)

    def blend(self, mask: Value, new: Value, old: Value) -> Value:
        """`new` where the mask is set, else `old`."""
        return self.b.select(mask, new, old)

    def add_to(self, pointer: Value, amount: Value) -> None:
        """`*pointer += amount` on an i64 counter."""
        self.b.store(self.b.add(self.b.load(pointer, typ=I64), amount), pointer)

    def slot(self, pointer: Value, index: Value | int, element: ir.Type = I64) -> Value:
        """Return the address of an element of an array."""
        at = I64(index) if isinstance(index, int) else index
        return self.b.gep(pointer, [at], source_etype=element)

    def when(self, condition: Value, then: Callable[[], None], *, likely: bool = False) -> None:
        """Emit `then` under a condition, and go on after it."""
        with self.b.if_then(condition, likely=likely):
            then()


def mangled(type: ir.Type) -> str:
    """Returns how an intrinsic's name spells a scalar type."""
    return {"float": "f32", "double": "f64"}.get(str(type), str(type))
