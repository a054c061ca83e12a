"""Builds the types, constants and intrinsics that lowering a term needs, for vectors of one
width."""

from __future__ import annotations

from llvmlite import ir

from warploom.core.types import ScalarType
from warploom.llvm.lanes import Lanes, Value, element_type, mangled, repeated


class Vectors:
    """Builds vectors of `width` lanes through the builder of `lanes`."""

    def __init__(self, lanes: Lanes, width: int) -> None:
        """Stores `lanes` and its builder, and the number of lanes that vectors have."""
        self.lanes, self.b, self.width = lanes, lanes.b, width

    def type(self, type: ScalarType) -> ir.VectorType:
        """Returns the vector type in which `width` lanes of a PTX type are computed."""
        return ir.VectorType(element_type(type), self.width)

    def constant(self, bits: int, type: ScalarType) -> Value:
        """Returns a constant of a PTX type, as it is computed, that has the lowest bits of `bits`,
        as many as the type has, in every lane."""
        element = ir.IntType(type.bits)
        value = bits & ((1 << type.bits) - 1)
        whole = repeated(value, element, self.width)
        return self.b.bitcast(whole, self.type(type)) if type.is_float else whole

    def intrinsic(self, name: str, args: list[Value]) -> Value:
        """Emits a call of `llvm.NAME`, NAME with the type's suffix, for vectors that all have one
        type, and returns its value, of that type."""
        return self.lanes.intrinsic(f"llvm.{name}.{self.suffix(args[0])}", args[0].type, args)

    def suffix(self, value: Value) -> str:
        """Returns the suffix for a vector's type in an intrinsic's name (`v32f32`)."""
        return f"v{self.width}{mangled(value.type.element)}"
