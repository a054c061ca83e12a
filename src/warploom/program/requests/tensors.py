"""Encodes an instruction for the Tensor Memory Accelerator (TMA) as a request: a number with packed
fields, and its operands.

Both machines evaluate the operands and pass them to `asynchronous.tensors`;
`asynchronous.tensors.requests` defines the fields, `CopyOperands` the offsets of operands.

    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r1], [%rd1, {%r2, %r3}], [%r4];
    ->   OP = LOAD, MODE = TILE, RANK = 2;
         shared: %r1, barrier: %r4, map: %rd1, coordinates: %r2, %r3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from warploom.asynchronous.records import LANES, CopyOperands
from warploom.asynchronous.tensors import maps
from warploom.asynchronous.tensors import requests as r
from warploom.core.types import S32, U8, U16, U32, U64, ScalarType
from warploom.isa.instruction import Immediate, Instruction, Operand, Register, Space, Vector
from warploom.isa.kinds import OpKind
from warploom.isa.ops.tensors import (
    HINT,
    NEW_ADDRESS,
    NEW_SHAPE,
    NEW_SIZE,
    OPERATIONS,
    WIDE,
)
from warploom.isa.spec import Operation

RequestOperand = tuple[int, Operand, ScalarType | None]
"""An operand: its offset in `CopyOperands`, the PTX operand, and the type to read it as (None: it
is an address)."""

TYPES = {
    **{name: number for number, name in enumerate(maps.ELEMENT_TYPES)},
    "b32": maps.U32,
    "b64": maps.U64,
}
"""Maps the types of reductions to their numbers."""

MODES = {
    **dict.fromkeys(("im2col", "im2col_no_offs"), r.IM2COL_MODE),
    **dict(zip((mode[1:] for mode in WIDE), (r.WIDE_MODE, r.WIDE_128_MODE), strict=True)),
    **dict.fromkeys(("tile::gather4", "tile::scatter4"), r.GATHER),
}


@dataclass(frozen=True)
class TensorRequest:
    """An encoded instruction and its operands. `map_space` is the state space of the address
    `map`, GENERIC if the address is generic."""

    request: int
    inputs: tuple[RequestOperand, ...]
    map_space: Space = Space.GENERIC


def tensor_request(instruction: Instruction) -> TensorRequest:
    """Returns the request of an instruction for the TMA (`Effect.USES_TMA`): a change of a tensor
    map, a cancellation of a launch, a copy of a box, or a copy of contiguous bytes."""
    return ENCODERS[instruction.operation.kind](instruction)


@cache
def tensor_accesses(operation: Operation) -> tuple[tuple[Space, str], ...]:
    """Returns the spaces that a TMA operation accesses, with load, store or atomic (a reduction to
    global memory), the source first. A copy between shared memories has only the store, as a
    cancellation of a launch, which writes its response; a prefetch only the load; a change of a
    tensor map nothing."""
    if operation.kind in FIXED_ACCESSES:
        return FIXED_ACCESSES[operation.kind]
    modifiers = operation.modifiers
    several = modifiers["multicast"] is not None
    if modifiers["into"] is not None or (several and "global" in modifiers):
        return ((Space.GLOBAL, "load"), (Space.SHARED, "store"))
    if "shared::cluster" in modifiers:
        return ((Space.SHARED, "store"),)
    return ((Space.SHARED, "load"), (Space.GLOBAL, "atomic" if "reduce" in modifiers else "store"))


FIXED_ACCESSES: dict[OpKind, tuple[tuple[Space, str], ...]] = {
    OpKind.TENSOR_MAP: (),
    OpKind.LAUNCH_CANCEL: ((Space.SHARED, "store"),),
    OpKind.TENSOR_PREFETCH: ((Space.GLOBAL, "load"),),
}
"""The accesses of kinds of operations that do not depend on modifiers."""


def _field(at: int, value: int) -> int:
    """Returns a value shifted to the field of a request that begins at bit `at`."""
    return value << at


def _elements(operand: Operand) -> tuple[Operand, ...]:
    """Returns the elements of a vector operand; another operand as the only element."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _reduction(operation: Operation) -> int:
    """Returns the number of a reduction's operation, shifted to its field of a request (OPERATION);
    0 for an instruction that reduces nothing."""
    name = operation.modifiers["redop"]
    return _field(r.OPERATION, OPERATIONS.index(name)) if name else 0


def _box_request(instruction: Instruction) -> TensorRequest:
    """Encodes a load, store, reduction or prefetch of a box of a tensor. Fields: which of these,
    mode, rank, reduction, pair of blocks, and that stores and reductions join a bulk group;
    operands: addresses of map, shared memory and mbarrier, coordinates, im2col offsets, blocks of a
    multicast. The cache hint, the last operand, is left out."""
    operation, operands = instruction.operation, list(instruction.operands)
    modifiers = operation.modifiers
    mode = next((MODES[name] for name in MODES if name in modifiers), r.TILE)
    rank = int(modifiers.text("dim", "1d")[0])
    request = _field(r.MODE, mode) | _field(r.RANK, rank) | _reduction(operation)
    request |= _field(r.PAIR, int(modifiers["cta_group"] == "cta_group::2"))
    inputs: list[RequestOperand] = []
    # Optional operands are at the end of the list, the cache hint last, the mask of a multicast
    # before it: they are taken off from there, and the order of the others is fixed.
    hinted = HINT in modifiers
    if hinted:
        operands.pop()
    if modifiers["multicast"] is not None:
        inputs.append((CopyOperands.blocks, operands.pop(), operation.source_types[-1 - hinted]))
    if operation.kind is OpKind.TENSOR_PREFETCH:
        request |= r.PREFETCH
        tensor, *offsets = operands
    elif modifiers["into"] is not None:
        request |= r.LOAD
        target, tensor, barrier, *offsets = operands
        inputs += [(CopyOperands.shared, target, None), (CopyOperands.barrier, barrier, None)]
    else:
        request |= (r.REDUCE if "reduce" in modifiers else r.STORE) | _field(r.GROUPED, 1)
        tensor, source, *offsets = operands
        inputs.append((CopyOperands.shared, source, None))
    map_address, *new_values, coordinates = _elements(tensor)
    inputs.append((CopyOperands.map, map_address, None))
    if NEW_ADDRESS in modifiers:
        request |= _field(r.FIELD, r.NEW_ADDRESS)
        inputs.append((CopyOperands.opposite, new_values[0], U64))
    if NEW_SIZE in modifiers or NEW_SHAPE in modifiers:
        request |= _field(r.FIELD, r.NEW_SHAPE)
        inputs += _new_shape(new_values[1:])
    inputs += [
        (CopyOperands.coordinates + LANES * axis, element, S32)
        for axis, element in enumerate(_elements(coordinates))
    ]
    for operand in offsets:
        inputs += [
            (CopyOperands.offsets + LANES * axis, element, U16)
            for axis, element in enumerate(_elements(operand))
        ]
    return TensorRequest(request, tuple(inputs))


def _new_shape(values: list[Operand]) -> list[RequestOperand]:
    """Returns the operands of sizes that replace those of a tensor map, `{sizes}`, and of strides,
    if there are any: `{low words}, high bits`."""
    sizes, *strides = values
    inputs: list[RequestOperand] = [
        (CopyOperands.sizes + LANES * axis, each, _size_type(each))
        for axis, each in enumerate(_elements(sizes))
    ]
    if strides:
        low, high = strides
        inputs += [
            (CopyOperands.strides + LANES * axis, each, U32)
            for axis, each in enumerate(_elements(low))
        ]
        inputs.append((CopyOperands.value, high, U16))
    return inputs


def _size_type(operand: Operand) -> ScalarType:
    """Returns the type to read a size by: its register has 8 or 16 bits."""
    return U8 if isinstance(operand, Register) and operand.type.bits == 8 else U16


def _bytes_request(instruction: Instruction) -> TensorRequest:
    """Encodes a copy or a reduction (with operation and type) of contiguous bytes between global
    and shared memory (field MODE is 1), or from shared to shared memory of another block (MODE 0:
    `other` then has the source's shared address). A bulk group means that the target is global;
    FIELD, that operand `value` is a mask of bytes. The cache hint is left out."""
    operation, operands = instruction.operation, list(instruction.operands)
    modifiers = operation.modifiers
    request = (r.REDUCE_BYTES if "reduce" in modifiers else r.COPY_BYTES) | _reduction(operation)
    if "reduce" in modifiers:
        request |= _field(r.TYPE, TYPES[modifiers.text("type", "")])
    request |= _field(r.MODE, int("global" in modifiers)) | _field(
        r.GROUPED, int("bulk_group" in modifiers)
    )
    inputs: list[RequestOperand] = []
    if "cp_mask" in modifiers:
        request |= _field(r.FIELD, 1)
        inputs.append((CopyOperands.value, operands.pop(), U16))
    # As in `_box_request`: optional operands come last, and are taken off from the end.
    hinted = HINT in modifiers
    if hinted:
        operands.pop()
    if modifiers["multicast"] is not None:
        inputs.append((CopyOperands.blocks, operands.pop(), operation.source_types[-1 - hinted]))
    target, source, size, *barrier = operands
    rows = (
        (CopyOperands.opposite, CopyOperands.shared)
        if "bulk_group" in modifiers
        else (CopyOperands.shared, CopyOperands.opposite)
    )
    inputs += [(rows[0], target, None), (rows[1], source, None), (CopyOperands.size, size, U32)]
    inputs += [(CopyOperands.barrier, operand, None) for operand in barrier]
    return TensorRequest(request, tuple(inputs))


def _cancellation(instruction: Instruction) -> TensorRequest:
    """Encodes `clusterlaunchcontrol.try_cancel`, a request for the work of a cluster that is not
    launched yet: addresses of the response and the mbarrier, and all blocks for a multicast."""
    target, barrier = instruction.operands
    inputs: list[RequestOperand] = [
        (CopyOperands.shared, target, None),
        (CopyOperands.barrier, barrier, None),
    ]
    if "multicast::cluster::all" in instruction.operation.modifiers:
        inputs.append((CopyOperands.blocks, Immediate(r.ALL_BLOCKS), U16))
    return TensorRequest(_field(r.OP, r.CANCEL), tuple(inputs))


def _map_request(instruction: Instruction) -> TensorRequest:
    """Encodes an instruction on a tensor map: the copy of a map from shared to global memory, or
    the replacement of one of its fields (along an axis), with the state space of the map's
    address."""
    modifiers = instruction.operation.modifiers
    if "cp_fenceproxy" in modifiers:
        target, source, _ = instruction.operands
        inputs = ((CopyOperands.map, target, None), (CopyOperands.shared, source, None))
        return TensorRequest(r.COPY_MAP, inputs, Space.GLOBAL)
    target, *axis, value = instruction.operands
    request = r.REPLACE | _field(r.FIELD, maps.FIELDS.index(modifiers.text("field", "")))
    for operand in axis:
        assert isinstance(operand, Immediate)
        request |= _field(r.AXIS, operand.value)
    type = U64 if "b64" in modifiers else U32
    space = Space((modifiers["space"] or "").partition("::")[0] or Space.GENERIC.value)
    return TensorRequest(
        request, ((CopyOperands.map, target, None), (CopyOperands.value, value, type)), space
    )


ENCODERS: dict[OpKind, Callable[[Instruction], TensorRequest]] = {
    OpKind.TENSOR_MAP: _map_request,
    OpKind.LAUNCH_CANCEL: _cancellation,
    OpKind.TENSOR_COPY: _box_request,
    OpKind.TENSOR_PREFETCH: _box_request,
    OpKind.TMA_BULK_COPY: _bytes_request,
    OpKind.BULK_REDUCTION: _bytes_request,
}
"""The function that encodes each kind of operation."""
