"""Builds the messages of faults of copies by the Tensor Memory Accelerator."""

from __future__ import annotations

from warploom.asynchronous.tensors.addresses import (
    BULK_ALIGNMENT,
    COLUMN_OPERANDS,
    MAP_STRIDE,
    NEW_VALUES,
    NO_BLOCK,
    NO_TENSOR_MAP,
    OPEN_HALO,
    OTHER_TENSOR,
    PACKED_RULE,
    TENSOR_ALIGNMENT,
    UNSUPPORTED_TENSOR,
)
from warploom.asynchronous.tensors.cancel import RESPONSE_BYTES
from warploom.asynchronous.tensors.maps import ELEMENT_TYPES
from warploom.asynchronous.tensors.packed import (
    ALIGNMENT,
    B6X16_P32,
    FIRST_COORDINATE,
    INTERLEAVE,
    NAN_FILL,
    REDUCED,
    ROW_SIZE,
    STORED,
    SWIZZLE,
    TENSOR_SIZE,
)
from warploom.isa.spec import Operation

NAMES = {
    NO_TENSOR_MAP: "no tensor map",
    OTHER_TENSOR: "wrong tensor map",
    TENSOR_ALIGNMENT: "misaligned",
    UNSUPPORTED_TENSOR: "unsupported tensor map",
    NO_BLOCK: "no such block",
    BULK_ALIGNMENT: "misaligned",
    COLUMN_OPERANDS: "invalid operand",
    OPEN_HALO: "unsupported halo",
    PACKED_RULE: "packed elements",
    NEW_VALUES: "invalid operand",
    MAP_STRIDE: "invalid operand",
}
"""The kinds of these faults, as in `MemoryFault.kind`."""

PACKED_RULES = {
    REDUCED: "reductions do not support packed elements",
    STORED: "stores do not support this type",
    NAN_FILL: "out-of-bounds elements must be filled with zeros, not with NaNs",
    ROW_SIZE: "a row of the box must have 128 elements (or a multiple of 32 for b4x16)",
    TENSOR_SIZE: "the innermost dimension of the tensor must be a multiple of 128 (or of 2 "
    "for b4x16)",
    FIRST_COORDINATE: "the first coordinate must be a multiple of 128 (or of 2 for b4x16)",
    ALIGNMENT: "the address and the strides of the tensor must be multiples of 32",
    SWIZZLE: "the swizzle must be none, 128B, or 128B in 32-byte chunks; stores of 6-bit "
    "elements can also use 64-byte chunks",
    INTERLEAVE: "the tensor must not be interleaved",
}
"""Rules for packed element types, by the code of the broken one (PTX ISA, "Restriction on Tensor
Copy instructions", and cuda.h)."""

MODES = ("tile", "im2col", "im2col::w", "im2col::w::128")
"""Modes of tensor maps, by their number in a recorded fault."""


TITLES = {
    NO_TENSOR_MAP: "{name}: {address:#x} is not the address of a tensor map",
    OTHER_TENSOR: "{name} with a tensor map of {rank} dimensions, created for {mode}",
    TENSOR_ALIGNMENT: "{name}: address {address:#x} of shared memory is not a multiple of {size}",
    UNSUPPORTED_TENSOR: "{name} with an interleaved tensor map of several channel slices",
    PACKED_RULE: "{name} with elements of type {type}: {rule}",
    COLUMN_OPERANDS: "{name} with a wHalo of {address} and a wOffset of {size}",
    NEW_VALUES: "{name}: the global address {address:#x} is not a multiple of 16, an overriding "
    "size is 0, or a coordinate is not 0",
    MAP_STRIDE: "{name}: a stride of {address} bytes is not a multiple of 16",
    OPEN_HALO: "{name} with a halo of {address} pixels that extends beyond the bounding box, which "
    "ends at W = {size}",
    NO_BLOCK: "{name} accesses block {address} of the cluster, but this block does not exist "
    "or is not running",
    BULK_ALIGNMENT: "{name}: the size ({address} bytes) or an address is not a multiple of 16",
}
"""What is wrong, by kind: formats of the fields that `tensor_fault` computes."""

ADVICE = {
    NO_TENSOR_MAP: "A tensor map is 128 bytes long, is aligned to 64 bytes, and is created by "
    "cuTensorMapEncodeTiled or a related function (or device.tensor_map). Pass it "
    "as a const __grid_constant__ parameter, or copy it into device memory "
    "unchanged.",
    OTHER_TENSOR: 'PTX ISA, "cp.async.bulk.tensor": .dim and the mode must match the tensor '
    "map.\n    Use the instruction that matches how the map was created.",
    TENSOR_ALIGNMENT: 'PTX ISA, "cp.async.bulk.tensor": addresses of shared memory must be '
    "multiples of 128, or of 256 for boxes with 32-byte interleave.\n    Align "
    "the buffer (alignas(128), or alignas(1024) if it is swizzled).",
    UNSUPPORTED_TENSOR: 'Such copies are not supported: PTX ISA, "Interleave layout", does not '
    "specify the distance between slices.\n    Create the map without "
    "interleaving, and add an axis for the slices.",
    PACKED_RULE: 'PTX ISA, "Restriction on Tensor Copy instructions"; cuda.h, '
    "cuTensorMapEncodeTiled.\n    Create the map and choose the coordinates according "
    "to these rules.",
    COLUMN_OPERANDS: 'PTX ISA, "cp.async.bulk.tensor": wHalo must be less than 512 in .im2col::w '
    "and less than 32 in .im2col::w::128, and wOffset must be less than 32.",
    OPEN_HALO: 'PTX ISA, "wHalo", shows the positions of these halo pixels only in figures, so '
    "such copies are not supported.\n    Choose a number of pixels per column and a "
    "first coordinate for which each halo lies inside the bounding box, or copy the halo "
    "separately.",
    NEW_VALUES: 'PTX ISA, "Overriding tensor property value": the address must be a multiple of '
    "16, and if the sizes are also overridden, the coordinates must be 0.\n    Add the "
    "offset of the box to the address.",
    MAP_STRIDE: "cuda.h, cuTensorMapEncodeTiled: each stride of a tensor must be a multiple of 16 "
    "bytes.\n    Lengthen the rows of the tensor in memory, or copy it into such a tensor first.",
    NO_BLOCK: 'PTX ISA, "mapa": the block of the cluster must have started and must not have '
    "ended.\n    Synchronize all blocks (barrier.cluster) before a block accesses "
    "the shared memory of another block, and before a block ends.",
    BULK_ALIGNMENT: 'PTX ISA, "cp.async.bulk": the size and the addresses must be multiples of '
    "16.\n    Align the buffer (alignas(16)), and copy any remaining bytes with loads and stores.",
}
"""The rule and a remedy, by kind."""

RESPONSE_ADVICE = (
    'PTX ISA, "clusterlaunchcontrol.try_cancel": the response is 16 bytes, aligned to 16 bytes.\n '
    "   Align its variable (alignas(16))."
)
"""The same of TENSOR_ALIGNMENT for a response, by whose size it is recognized."""


def tensor_fault(
    kind: int, operation: Operation, address: int, size: int, at: str
) -> tuple[str, str]:
    """Returns the kind's name (NAMES) and the message of a fault of an instruction with that
    operation: what is wrong, then `at`, which states where it happened, then the rule and a remedy.

    `address` and `size` are the two words that `asynchronous.tensors` records. By kind:
    OTHER_TENSOR: `size` packs the map's rank in bits 0-3, its mode (MODES) in bits 4-5;
    TENSOR_ALIGNMENT: an address of shared memory, and the bytes that it must be a multiple of;
    PACKED_RULE: the broken rule and the map's element type, of which B6X16_P32 is named b6p2x16 in
    stores (`.bulk_group`); COLUMN_OPERANDS: wHalo and wOffset; OPEN_HALO: the pixels of the halo,
    and where the bounding box ends; NO_BLOCK: `address` is a cluster rank; MAP_STRIDE: the stride;
    BULK_ALIGNMENT, the rule of 16 bytes: `address` is the size of the copy."""
    fields: dict[str, object] = {"name": operation.opcode, "address": address, "size": size}
    if kind == OTHER_TENSOR:
        fields |= {"rank": size & 15, "mode": MODES[size >> 4 & 3]}
    elif kind == PACKED_RULE:
        of_bytes = size == B6X16_P32 and "bulk_group" in operation.modifiers
        fields["type"] = "b6p2x16" if of_bytes else ELEMENT_TYPES[size]
        fields["rule"] = PACKED_RULES[address]
    title = TITLES[kind].format(**fields)
    is_response = kind == TENSOR_ALIGNMENT and size == RESPONSE_BYTES
    return NAMES[kind], f"{title}\n    {at}\n    {RESPONSE_ADVICE if is_response else ADVICE[kind]}"
