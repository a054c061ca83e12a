"""Builds LLVM values of a warp: vectors with one element per lane, masks, and constants of both.

A varying value is `<32 x T>`; a mask or predicate is `<32 x i1>`; where scalar code needs the bits
of a mask, they are an i32 with lane l in bit l. A uniform or affine value has fewer elements: one
for each run of lanes (`Lanes.expand`).
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
    """Returns the type `<32 x element>`."""
    return ir.VectorType(element, LANES)


def element_type(type: ScalarType) -> ir.Type:
    """Returns the LLVM type in which one lane of a PTX type is computed: a float for f32 and f64,
    else an integer of as many bits."""
    if type.kind is Kind.FLOAT and type.bits in (32, 64):
        return ir.FloatType() if type.bits == 32 else ir.DoubleType()
    return ir.IntType(type.bits)


def lane_type(type: ScalarType, width: int = LANES) -> ir.VectorType:
    """Returns the LLVM type in which `width` lanes of a PTX type are computed."""
    return ir.VectorType(element_type(type), width)


def storage_type(type: ScalarType, width: int = LANES) -> ir.VectorType:
    """Returns the LLVM type in which a register of a PTX type is stored: a vector of integers, so
    that reading it as another type of the same size is a bitcast."""
    return ir.VectorType(ir.IntType(type.bits), width)


def splat_constant(value: int, element: ir.Type) -> ir.Constant:
    """Returns a constant of 32 equal integers."""
    return repeated(value, element, LANES)


@lru_cache(maxsize=4096)
def repeated(value: int, element: ir.Type, width: int) -> ir.Constant:
    """Returns a constant of `width` equal integers, spelled `splat (i32 5)`: written element by
    element, such constants would be most of the text that LLVM parses."""
    return _SpelledConstant(ir.VectorType(element, width), f"splat ({element} {value})")


def zero(type: ir.Type) -> ir.Constant:
    """Returns zero of any type but a pointer, spelled `zeroinitializer`."""
    return _SpelledConstant(type, "zeroinitializer")


def undefined(type: ir.Type) -> ir.Constant:
    """Returns `undef` of a type."""
    return _SpelledConstant(type, "undef")


def spelled(type: ir.Type, spelling: str) -> ir.Constant:
    """Returns the constant of a type with the given text in LLVM IR."""
    return _SpelledConstant(type, spelling)


class _SpelledConstant(ir.Constant):
    """Represents a constant by its text in LLVM IR, where llvmlite would spell out each element."""

    def __init__(self, type: ir.Type, spelling: str, value: Any = ir.Undefined) -> None:
        """Stores the text, and `value` as llvmlite's attribute `constant`. Folding
        (`llvm.folding`) uses no constant of this class, whatever its value is."""
        super().__init__(type, value)
        self.spelling = spelling

    def _get_reference(self) -> str:
        """Returns the constant's text without its type, which llvmlite prints where the constant is
        an operand."""
        return self.spelling


def selection(order: Iterable[int]) -> ir.Constant:
    """Returns the index vector of a `shufflevector` that selects lanes, in the order of `order`."""
    return _integers(I32, tuple(order))


@lru_cache(maxsize=4096)
def _integers(element: ir.Type, values: tuple[int, ...]) -> ir.Constant:
    """Returns a constant vector of integers. Each is made once in a process: a kernel has hundreds
    that are equal, of 32 elements each."""
    elements = [ir.Constant(element, value) for value in values]
    return ir.Constant(ir.VectorType(element, len(values)), elements)


@lru_cache
def first(width: int) -> ir.Constant:
    """Returns the index vector of a `shufflevector` that broadcasts lane 0."""
    return _SpelledConstant(ir.VectorType(I32, width), "zeroinitializer", [I32(0)] * width)


def lane_numbers(element: ir.Type, stride: int = 1) -> ir.Constant:
    """Returns the constant <0, stride, 2 * stride, ..., 31 * stride>."""
    return _integers(element, tuple([stride * lane for lane in range(LANES)]))


def constant_table(module: ir.Module, name: str, words: Sequence[int]) -> Value:
    """Defines a constant array of i64 in a module, unless it has one of that name; returns its
    address."""
    if name not in module.globals:
        type = ir.ArrayType(ir.IntType(64), len(words))
        table = ir.GlobalVariable(module, type, name)
        table.linkage, table.global_constant = "internal", True
        spelling = f"[{', '.join([f'i64 {word}' for word in words])}]"
        table.initializer = _SpelledConstant(type, spelling)
        table.type = PTR
    return module.globals[name]


class Lanes:
    """Emits operations on lane vectors through an LLVM builder, `b`, which callers use as well."""

    def __init__(self, module: ir.Module, builder: ir.IRBuilder) -> None:
        """Stores the module, in which intrinsics are declared, and the builder as `b`."""
        self.module = module
        self.b: Any = builder

    def alloca(self, type: ir.Type, align: int | None = None) -> Value:
        """Emits a stack slot (`alloca`) for a value at the builder's position, aligned to `align`
        bytes (None: as its type); returns its address as an opaque pointer."""
        slot = self.b.alloca(type)
        slot.align, slot.type = align, PTR
        return slot

    def intrinsic(self, name: str, result: ir.Type, args: Sequence[Value]) -> Value:
        """Emits a call of the LLVM intrinsic with that full name (`llvm.ctpop.i32`), declared in
        the module at its first use; returns the call's value."""
        return self.b.call(self.function(name, result, [a.type for a in args]), list(args))

    def function(self, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> Value:
        """Returns the function of that name in the module; declares it with the result and argument
        types at its first use."""
        declared: Any = self.module.globals
        if name not in declared:
            return ir.Function(self.module, ir.FunctionType(result, list(arguments)), name)
        return declared[name]

    def disable_unrolling(self, back: Value) -> None:
        """Disables the unrolling of the loop whose back edge is the branch `back` (LLVM Language
        Reference, "llvm.loop")."""
        module: Any = self.module
        rule = module.add_metadata(["llvm.loop.unroll.disable"])
        node = module.add_metadata([rule, I64(len(module.metadata))])
        node.operands = (node, rule)  # a loop's metadata is distinct by naming itself first
        back.set_metadata("llvm.loop", node)

    def splat(self, scalar: Value, width: int = LANES) -> Value:
        """Emits a vector of `width` lanes that all hold a scalar."""
        vector_type = ir.VectorType(scalar.type, width)
        alone = self.b.insert_element(undefined(vector_type), scalar, I32(0))
        if width == 1:
            return alone
        return self.b.shuffle_vector(alone, undefined(vector_type), first(width))

    def expand(self, value: Value, width: int = LANES, offsets: Sequence[int] = ()) -> Value:
        """Expands an affine value to `width` lanes at equal distances from lane 0 on.

        `value` has one element for each of equal parts of the lanes, that of the part's first lane.
        `offsets` has one for each of the `width` lanes, its difference from the first lane of its
        run (`VectorShape.offsets`); if empty, lanes of a part are equal. <10, 50> with offsets 0,
        1, .., 15, 0, 1, .., 15 becomes <10, 11, .., 25, 50, .., 65>. A value of `width` elements is
        returned as it is."""
        count = value.type.count
        if count == width:
            return value
        if value.type == ir.VectorType(I1, 1) and width == LANES:
            # LLVM lowers a shuffle of i1 elements to 16 instructions.
            return self.mask(self.b.sext(self.lane(value, 0), I32))
        part: int = width // count
        order = selection([lane // part for lane in range(width)])
        spread = self.b.shuffle_vector(value, value, order)
        if not any(offsets):
            return spread
        steps = [offsets[lane] - offsets[lane // part * part] for lane in range(width)]
        return self.b.add(spread, _integers(value.type.element, tuple(steps)))

    def firsts(self, value: Value, width: int) -> Value:
        """Returns a vector with `width` elements: the first lane of each of `width` equal parts of
        a vector of 32 lanes; the inverse of `expand`."""
        return self.b.shuffle_vector(value, value, selection(range(0, LANES, LANES // width)))

    def lane(self, value: Value, index: Value | int) -> Value:
        """Returns one element of a vector."""
        return self.b.extract_element(value, I32(index) if isinstance(index, int) else index)

    def bits(self, mask: Value) -> Value:
        """Returns a mask of 32 lanes as an i32; a mask that was made from an i32 needs no
        instruction."""
        if getattr(mask, "opname", "") == "bitcast" and mask.operands[0].type == I32:
            return mask.operands[0]
        return self.b.bitcast(mask, I32)

    def mask(self, bits: Value) -> Value:
        """Returns an i32 as a mask."""
        return self.b.bitcast(bits, MASK)

    def wide_mask(self, bits: Value) -> Value:
        """Returns an i32 as a mask for a `select` of elements of 32 or 64 bits.

        On processors without mask registers (AVX2), LLVM extracts the bits of a bitcast mask one
        by one; a comparison of vectors gives lanes of the elements' width at once.
        """
        own = _integers(I32, tuple([1 << lane for lane in range(LANES)]))
        return self.b.icmp_unsigned("!=", self.b.and_(self.splat(bits), own), zero(vector(I32)))

    def any(self, mask: Value) -> Value:
        """Returns whether some lane of a mask of 32 lanes is set, as an i1."""
        return self.b.icmp_unsigned("!=", self.bits(mask), I32(0))

    def all(self, mask: Value) -> Value:
        """Returns whether all lanes of a mask of 32 lanes are set, as an i1."""
        return self.b.icmp_unsigned("==", self.bits(mask), I32(-1))

    def some(self, mask: Value) -> Value:
        """Returns whether some lane of a mask of any width is set, as an i1."""
        integer = ir.IntType(mask.type.count)
        return self.b.icmp_unsigned("!=", self.b.bitcast(mask, integer), integer(0))

    def splits_pairs(self, bits: Value) -> Value:
        """Returns whether a mask (an i32) has only one of lanes 2k and 2k + 1, for some k, as an
        i1."""
        # Bit 2k is set if the two differ.
        differ = self.b.and_(self.b.xor(bits, self.b.lshr(bits, I32(1))), I32(0x55555555))
        return self.b.icmp_unsigned("!=", differ, I32(0))

    def are_zero(self, values: Value) -> Value:
        """Returns whether all i64 of a vector are 0, as an i1; their number is a power of two."""
        b, count = self.b, values.type.count
        # At most 256 bits are compared, which x86 does by one vptest; a reduction takes six.
        while count > 4:
            count //= 2
            halves = (range(count), range(count, 2 * count))
            values = b.or_(*(b.shuffle_vector(values, values, selection(half)) for half in halves))
        integer = ir.IntType(count)
        equal = b.bitcast(b.icmp_unsigned("==", values, zero(values.type)), integer)
        return b.icmp_unsigned("==", equal, integer(-1))

    def popcount(self, bits: Value) -> Value:
        """Returns the number of set bits of an i32, as an i64."""
        return self.b.zext(self.intrinsic("llvm.ctpop.i32", I32, [bits]), I64)

    def blend(self, mask: Value, new: Value, old: Value) -> Value:
        """Returns `new` in the lanes of the mask, `old` in the others."""
        return self.b.select(mask, new, old)

    def add_to(self, pointer: Value, amount: Value) -> None:
        """Emits an addition of an amount (an i64) to the i64 at an address: a load, an addition and
        a store, which are not atomic."""
        self.b.store(self.b.add(self.b.load(pointer, typ=I64), amount), pointer)

    def slot(self, pointer: Value, index: Value | int, element: ir.Type = I64) -> Value:
        """Emits the address of element `index` of an array of `element`s (by default i64) at
        `pointer`."""
        at = I64(index) if isinstance(index, int) else index
        return self.b.gep(pointer, [at], source_etype=element)

    def when(self, condition: Value, then: Callable[[], None], *, likely: bool = False) -> None:
        """Emits `then` in a block that runs if a condition holds; code after it follows both. LLVM
        lays the code out for a condition that mostly holds if `likely`, else for one that mostly
        does not."""
        with self.b.if_then(condition, likely=likely):
            then()


def mangled(type: ir.Type) -> str:
    """Returns the suffix for a scalar type in an intrinsic's name (`f32`, `i64`)."""
    return {"float": "f32", "double": "f64"}.get(str(type), str(type))
