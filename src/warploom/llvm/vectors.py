"""Builds the types, constants and intrinsics of vectors of so many lanes, for lowering terms."""

from __future__ import annotations

from llvmlite import ir

from warploom.core.types import ScalarType
from warploom.llvm.lanes import Lanes, Value, element_type, mangled, repeated


class Vectors:
    """Builds vectors of `width` lanes at the place of the builder of `lanes`."""

    def __init__(self, lanes: Lanes, width: int) -> None:
        self.lanes, self.b, self.width = lanes, lanes.b, width

    def type(self, type: ScalarType) -> ir.VectorType:
        """Return the LLVM type in which a PTX type is computed."""
        return ir.VectorType(element_type(type), self.width)

    def constant(self, bits: int, type: ScalarType) -> Value:
        """Return a constant by its bits, in every lane."""
        element = ir.IntType(type.bits)
        value = bits & ((1 << type.bits) - 1)
        whole = repeated(value, element, self.width)
        return self.b.bitcast(whole, self.type(type)) if type.is_float else whole

    def intrinsic(self, name: str, args: list[Value]) -> Value:
        """Return an LLVM intrinsic on vectors of one type, by its name without type."""
        return self.lanes.intrinsic(f"llvm.{name}.{self.suffix(args[0])}", args[0].type, args)

    def suffix(self, value: Value) -> str:
        """Returns how an intrinsic's name spells the type of a vector."""
        return f"v{self.width}{mangled(value.type.element)}"
