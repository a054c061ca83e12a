"""Emits loads and stores of vectors in some of their lanes."""

from __future__ import annotations

from llvmlite import ir

from warploom.llvm.lanes import Lanes, Value, mangled, zero


def gather(lanes: Lanes, pointers: Value, mask: Value, element: ir.Type) -> Value:
    """Load one element a lane through a vector of pointers; lanes off give 0."""
    count = pointers.type.count
    whole = ir.VectorType(element, count)
    name = f"llvm.masked.gather.v{count}{mangled(element)}.v{count}p0"
    return lanes.intrinsic(name, whole, [pointers, mask, zero(whole)])


def scatter(lanes: Lanes, value: Value, pointers: Value, mask: Value) -> None:
    """Store one element a lane; of lanes on one address the highest lasts."""
    count = value.type.count
    name = f"llvm.masked.scatter.v{count}{mangled(value.type.element)}.v{count}p0"
    lanes.intrinsic(name, ir.VoidType(), [value, pointers, mask])


def masked_load(lanes: Lanes, pointer: Value, mask: Value, element: ir.Type) -> Value:
    """Load as many consecutive elements as the mask has lanes; lanes off give 0."""
    whole = ir.VectorType(element, mask.type.count)
    name = f"llvm.masked.load.v{mask.type.count}{mangled(element)}.p0"
    return lanes.intrinsic(name, whole, [pointer, mask, zero(whole)])


def masked_store(lanes: Lanes, value: Value, pointer: Value, mask: Value) -> None:
    """Store consecutive elements to one pointer, lanes off left out."""
    name = f"llvm.masked.store.v{mask.type.count}{mangled(value.type.element)}.p0"
    lanes.intrinsic(name, ir.VoidType(), [value, pointer, mask])
