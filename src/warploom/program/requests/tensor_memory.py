"""Encodes a `tcgen05` instruction as a request: a number with packed fields, and its operands.

Both machines evaluate the operands and pass them to `asynchronous.tensor_memory`;
`asynchronous.tensor_memory.layout` defines the fields, `TensorMemoryOperands` the offsets of
operands.

    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;
    ->  ALLOC, ((TensorMemoryOperands.shared, [%r1], None), (TensorMemoryOperands.columns, 64, U32))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from warploom.asynchronous.issue.late_stores import LIST_WORDS
from warploom.asynchronous.issue.queue import QUEUE_WORDS
from warploom.asynchronous.records import LANES, ProductWork, RequestEntry, TensorMemoryOperands
from warploom.asynchronous.tensor_memory import layout as w
from warploom.core.types import PRED, U16, U32, U64, ScalarType
from warploom.isa.instruction import Address, Immediate, Instruction, Operand, Space, Vector
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Modifiers, Operation

RequestOperand = tuple[int, Operand, ScalarType | None]
"""An operand: its offset in `TensorMemoryOperands`, the PTX operand, and the type to read it as
(None: it is an address)."""

SHAPE_NUMBERS = {
    "32x32b": w.S32X32B,
    "16x64b": w.S16X64B,
    "16x128b": w.S16X128B,
    "16x256b": w.S16X256B,
    "16x32bx2": w.S16X32BX2,
}
COPY_SHAPES = {
    "128x256b": w.C128X256B,
    "4x256b": w.C4X256B,
    "128x128b": w.C128X128B,
    "warpx2::02_13": w.C64X128B_02_13,
    "warpx2::01_23": w.C64X128B_01_23,
    "warpx4": w.C32X128B,
}
FORMATS = {"b6x16_p32": w.PACKED_6, "b4x16_p64": w.PACKED_4}
KINDS = {
    "kind::f16": w.F16,
    "kind::tf32": w.TF32,
    "kind::f8f6f4": w.F8F6F4,
    "kind::i8": w.I8,
    "kind::mxf8f6f4": w.MXF8F6F4,
    "kind::mxf4": w.MXF4,
    "kind::mxf4nvf4": w.MXF4NVF4,
}
SCALES = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}
"""Scales along k in a row of A or B, by the modifier for their size."""


@dataclass(frozen=True)
class TensorMemoryRequest:
    """An encoded instruction: `request` packs its operation and flags (`layout`), `inputs` are its
    operands. `registers` are those that a load writes or a store reads."""

    request: int
    inputs: tuple[RequestOperand, ...]
    registers: tuple[Operand, ...] = ()


def tensor_memory_request(instruction: Instruction) -> TensorMemoryRequest:
    """Returns the request of a `tcgen05` instruction that has an effect (not of waits and fences):
    its operation and flags in a number (`layout`; PAIR for two blocks), its operands by their
    offsets in the record that the unit reads, and the registers that it loads or stores."""
    modifiers = instruction.operation.modifiers
    flags = w.PAIR if modifiers["cta_group"] == "cta_group::2" else 0
    request = ENCODERS[instruction.operation.kind](instruction, modifiers)
    return TensorMemoryRequest(request.request | flags, request.inputs, request.registers)


@cache
def tensor_memory_accesses(operation: Operation) -> tuple[tuple[Space, str], ...]:
    """Returns the accesses of a `tcgen05` operation to shared memory, as (space, "load" or
    "store"): an allocation stores, a product or a copy loads; empty for those that access tensor
    memory only."""
    if operation.kind is OpKind.TENSOR_ALLOC:
        return ((Space.SHARED, "store"),)
    reads = operation.kind in (OpKind.TENSOR_PRODUCT, OpKind.TENSOR_MEMORY_COPY)
    return ((Space.SHARED, "load"),) if reads else ()


def work_words(has_tensor_memory: bool) -> int:
    """Returns the 64-bit words of scratch memory that executing requests needs: those of tensor
    memory, if the kernel has it, else of one queue entry."""
    return ProductWork.WORDS if has_tensor_memory else RequestEntry.WORDS


def queue_words(has_tensor_memory: bool) -> int:
    """Returns the 64-bit words of the queue of late copies; with tensor memory, a list of late
    stores follows it."""
    return QUEUE_WORDS + LIST_WORDS if has_tensor_memory else QUEUE_WORDS


def _field(at: int, value: int) -> int:
    """Returns a value shifted to the field of a request that begins at bit `at`."""
    return value << at


def _elements(operand: Operand) -> tuple[Operand, ...]:
    """Returns the elements of a vector operand; another operand as the only element."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _alloc(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes an allocation: the shared address that receives the address of the columns, and their
    number."""
    target, columns = instruction.operands
    inputs = (
        (TensorMemoryOperands.shared, target, None),
        (TensorMemoryOperands.columns, columns, U32),
    )
    return TensorMemoryRequest(w.ALLOC, inputs)


def _free(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes a deallocation: the address of the columns, and their number."""
    address, columns = instruction.operands
    return TensorMemoryRequest(
        w.FREE,
        ((TensorMemoryOperands.d, address, U32), (TensorMemoryOperands.columns, columns, U32)),
    )


def _relinquish(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes `tcgen05.relinquish_alloc_permit`, which has no operands."""
    return TensorMemoryRequest(w.RELINQUISH, ())


def _move(
    op: int, registers: Operand, address: Operand, split: list[Operand], modifiers: Modifiers
) -> TensorMemoryRequest:
    """Encodes a load or store (`op`) between registers and tensor memory at an address (operand
    `d`), with its shape, the registers and their number, and whether they hold packed halves.
    `split` holds the immediate offset of shape 16x32bx2, if any, which becomes operand `a`."""
    held = _elements(registers)
    request = op | _field(w.SHAPE, SHAPE_NUMBERS[modifiers.text("shape", "")])
    request |= _field(w.REGISTERS, len(held))
    if "pack::16b" in modifiers or "unpack::16b" in modifiers:
        request |= w.HALVES
    inputs: list[RequestOperand] = [(TensorMemoryOperands.d, address, None)]
    inputs += [(TensorMemoryOperands.a, half, U32) for half in split]
    return TensorMemoryRequest(request, tuple(inputs), held)


def _load(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes a load of tensor memory; one that also reduces (`.red`) has flags for the reduction
    (minimum, absolute values, NaNs, type), and its result as the last register."""
    if "red" not in modifiers:
        registers, address, *split = instruction.operands
        return _move(w.LOAD, registers, address, split, modifiers)
    registers, reduced, address, *split = instruction.operands
    move = _move(w.LOAD, registers, address, split, modifiers)
    flags = w.REDUCES | (w.MINIMUM if modifiers["redop"] == "min" else 0)
    flags |= (w.ABSOLUTE_VALUES if "abs" in modifiers else 0) | (
        w.PROPAGATES_NANS if "NaN" in modifiers else 0
    )
    flags |= {"f32": w.FLOATS, "s32": w.SIGNED}.get(modifiers.text("type", ""), 0)
    return TensorMemoryRequest(move.request | flags, move.inputs, (*move.registers, reduced))


def _store(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes a store of registers to tensor memory."""
    address, *split, registers = instruction.operands
    return _move(w.STORE, registers, address, split, modifiers)


def _copy(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes a copy from shared to tensor memory: its shape, and the packing of the source's
    elements."""
    shape = next(number for name, number in COPY_SHAPES.items() if name in modifiers)
    format = FORMATS.get(modifiers.text("format", ""), w.PLAIN_BYTES)
    request = w.COPY | _field(w.SHAPE, shape) | _field(w.FORMAT, format)
    address, source = instruction.operands
    return TensorMemoryRequest(
        request, ((TensorMemoryOperands.d, address, None), (TensorMemoryOperands.b, source, U64))
    )


def _shift(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes a `tcgen05.shift`, of rows in tensor memory from an address on (operand `d`)."""
    return TensorMemoryRequest(w.SHIFT, ((TensorMemoryOperands.d, instruction.operands[0], None),))


def _commit(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes a commit to an mbarrier, in several blocks of the cluster if there is a mask of
    blocks."""
    barrier, *blocks = instruction.operands
    mask_type = U32 if "multicast::cluster::32b" in modifiers else U16
    inputs: list[RequestOperand] = [(TensorMemoryOperands.shared, barrier, None)]
    inputs += [(TensorMemoryOperands.blocks, block_mask, mask_type) for block_mask in blocks]
    return TensorMemoryRequest(w.COMMIT, tuple(inputs))


def _multiply(instruction: Instruction, modifiers: Modifiers) -> TensorMemoryRequest:
    """Encodes an mma, with flags for its kind, number of scales, sparsity, A in tensor memory (an
    address operand), weight-stationary products and shifts of A. Which optional operands follow A
    and B (sparsity metadata, scales, disabled lanes, the zero-column mask of weight-stationary
    products, the scale of D) depends on modifiers; their order is fixed."""
    kind = modifiers.text("kind", "")
    request = w.MULTIPLY | _field(w.KIND, KINDS[kind]) | _field(w.SCALES, _scales(kind, modifiers))
    d, a, b, *rest = instruction.operands
    request |= w.A_IN_TENSOR_MEMORY if isinstance(a, Address) else 0
    request |= w.WEIGHT_STATIONARY if "ws" in modifiers else 0
    request |= w.SHIFTS_A if "ashift" in modifiers else 0
    inputs: list[RequestOperand] = [
        (TensorMemoryOperands.d, d, None),
        (TensorMemoryOperands.b, b, U64),
    ]
    inputs.append((TensorMemoryOperands.a, a, None if isinstance(a, Address) else U64))
    if "sp" in modifiers:
        request |= w.SPARSE
        inputs.append((TensorMemoryOperands.metadata, rest.pop(0), None))
    inputs.append((TensorMemoryOperands.descriptor, rest.pop(0), U32))
    if "block_scale" in modifiers:
        inputs += [
            (TensorMemoryOperands.scale_a, rest.pop(0), None),
            (TensorMemoryOperands.scale_b, rest.pop(0), None),
        ]
    # Of the optional operands only the list of disabled lanes stands before the predicate, and only
    # it is a vector.
    scale_or_mask = rest[0]
    if isinstance(scale_or_mask, Vector):
        inputs += [
            (TensorMemoryOperands.disabled + LANES * number, word, U32)
            for number, word in enumerate(scale_or_mask.elements)
        ]
        rest.pop(0)
    inputs.append((TensorMemoryOperands.enable, rest.pop(0), PRED))
    if rest and "ws" in modifiers:
        inputs.append((TensorMemoryOperands.zeros, rest[0], U64))
    elif rest and isinstance(rest[0], Immediate):
        inputs.append((TensorMemoryOperands.scale_d, rest[0], U32))
    return TensorMemoryRequest(request, tuple(inputs))


def _scales(kind: str, modifiers: Modifiers) -> int:
    """Returns the number of scales along k in a row of A or B: by the size modifier, else 1 for
    `kind::mxf8f6f4` and 2 for others; 0 without `.block_scale`."""
    if "block_scale" not in modifiers:
        return 0
    whole = 1 if kind == "kind::mxf8f6f4" else 2
    return SCALES.get(modifiers.text("size", ""), whole)


ENCODERS: dict[OpKind, Callable[[Instruction, Modifiers], TensorMemoryRequest]] = {
    OpKind.TENSOR_ALLOC: _alloc,
    OpKind.TENSOR_FREE: _free,
    OpKind.TENSOR_PERMIT: _relinquish,
    OpKind.TENSOR_LOAD: _load,
    OpKind.TENSOR_STORE: _store,
    OpKind.TENSOR_MEMORY_COPY: _copy,
    OpKind.TENSOR_SHIFT: _shift,
    OpKind.TENSOR_PRODUCT: _multiply,
    OpKind.TENSOR_COMMIT: _commit,
}
"""The function that encodes each kind of operation, given the instruction and its modifiers; some
need only a part of them."""
