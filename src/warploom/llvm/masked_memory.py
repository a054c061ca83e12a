"""Emits LLVM's masked loads, masked stores, gathers and scatters.

    masked_load(lanes, p, mask, I32)   ->   @llvm.masked.load.v32i32.p0(p, mask, zeroinitializer)

Lanes that are off access nothing, so that their pointers may be invalid."""

from __future__ import annotations

from llvmlite import ir

from warploom.llvm.lanes import Lanes, Value, mangled, zero


def gather(lanes: Lanes, pointers: Value, mask: Value, element: ir.Type) -> Value:
    """Loads an element for each lane from a vector of pointers; inactive lanes get 0."""
    count = pointers.type.count
    whole = ir.VectorType(element, count)
    name = f"llvm.masked.gather.v{count}{mangled(element)}.v{count}p0"
    return lanes.intrinsic(name, whole, [pointers, mask, zero(whole)])


def scatter(lanes: Lanes, value: Value, pointers: Value, mask: Value) -> None:
    """Stores an element for each active lane; of lanes with one address, the highest lane's value
    stays (LLVM stores in the order of lanes)."""
    count = value.type.count
    name = f"llvm.masked.scatter.v{count}{mangled(value.type.element)}.v{count}p0"
    lanes.intrinsic(name, ir.VoidType(), [value, pointers, mask])


def masked_load(lanes: Lanes, pointer: Value, mask: Value, element: ir.Type) -> Value:
    """Loads consecutive elements, one for each lane of the mask; inactive lanes get 0."""
    whole = ir.VectorType(element, mask.type.count)
    name = f"llvm.masked.load.v{mask.type.count}{mangled(element)}.p0"
    return lanes.intrinsic(name, whole, [pointer, mask, zero(whole)])


def masked_store(lanes: Lanes, value: Value, pointer: Value, mask: Value) -> None:
    """Stores the elements of active lanes to consecutive addresses."""
    name = f"llvm.masked.store.v{mask.type.count}{mangled(value.type.element)}.p0"
    lanes.intrinsic(name, ir.VoidType(), [value, pointer, mask])
