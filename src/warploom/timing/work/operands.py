"""Reads from the operands and modifiers of an instruction how much work it is: cycles of sleeps and
fences, the warps of a barrier, the multiply-adds of a matrix product, the words of a copy."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.devices.timing import TimingSpec
from warploom.isa.fragments import WIDTHS, extents
from warploom.isa.instruction import Immediate, Instruction, Space, Vector
from warploom.isa.kinds import OpKind
from warploom.isa.ops.matrix import element_type
from warploom.isa.ops.tcgen05 import COPY_SHAPES
from warploom.isa.spec import Unit


def sleep_cycles(instruction: Instruction, timing: TimingSpec) -> int:
    """Returns the core cycles (of `clock_mhz`, rounded, at least 1) for which a `nanosleep` sleeps:
    its operand in nanoseconds if that is a constant, 100 ns if it is a register (an estimate)."""
    [amount] = instruction.operands
    nanoseconds = amount.value if isinstance(amount, Immediate) else 100
    return max(1, round(nanoseconds * timing.clock_mhz / 1000))


def fence_cycles(parts: Sequence[str], timing: TimingSpec) -> int:
    """Returns the cycles of a fence, by its scope among the modifiers `parts` of PTX or of machine
    code: system ("sys"), device ("gl", "gpu", "cluster"), else block."""
    if "sys" in parts:
        return timing.latency_fence_system
    if "gl" in parts or "gpu" in parts or "cluster" in parts:
        return timing.latency_fence_device
    return timing.latency_fence_block


def is_off_chip(instruction: Instruction) -> bool:
    """Returns whether an instruction is a memory access or an atomic whose space is not shared or
    constant memory, so that its result is late: global, local or parameter memory, or a generic
    address."""
    space = instruction.operation.modifiers.text("space", "").partition("::")[0]
    return space not in (
        Space.SHARED.value,
        Space.CONST.value,
    ) and instruction.operation.spec.unit in (
        Unit.MEMORY,
        Unit.ATOMIC,
    )


def barrier_of(instruction: Instruction) -> tuple[int, int]:
    """Returns the number of a barrier, and the warps that it waits for, rounded up: 0 for all of
    the block; for an arrival that does not wait, -1 less the warps. Without operands, as for a
    cluster's, or where they are registers, which are not known here, the barrier is taken for
    number 0, or for one of all warps of the block."""
    operands = instruction.operands[len(instruction.operation.spec.destinations) :]
    number = operands[0].value if operands and isinstance(operands[0], Immediate) else 0
    threads = 0
    counted = instruction.operation.modifiers["op"] is None or len(operands) > 2
    if counted and len(operands) > 1 and isinstance(operands[1], Immediate):
        threads = operands[1].value
    warps = -(-threads // 32)
    return number, -1 - warps if "arrive" in instruction.operation.modifiers else warps


TENSOR_MEMORY_SHAPE, TENSOR_MEMORY_DEPTH = (128, 128), 32
"""Rows and columns of a product in tensor memory, and its bytes along k: an estimate, as the number
of columns is in a descriptor in a register."""


COPIED_WORDS = 32
"""Words of shared memory that a copy into tensor memory reads in a cycle: one from each bank."""


def moved_words(instruction: Instruction) -> int:
    """Returns how often an access to tensor memory moves a word for each of 32 lanes: the number of
    registers in its vector operand (1 without one) or, for a copy (`cp`), its words divided by
    COPIED_WORDS, at least 1."""
    modifiers = instruction.operation.modifiers
    if "cp" in modifiers:
        shape = next(shape for shape in COPY_SHAPES if shape in instruction.operation.text)
        rows, bits = shape.partition("b")[0].split("x")
        return max(1, int(rows) * int(bits) // 32 // COPIED_WORDS)
    return max(
        (len(operand.elements) for operand in instruction.operands if isinstance(operand, Vector)),
        default=1,
    )


TENSOR_CORES = 4
"""Tensor cores of an SM; all of them work on a product of a warp group, or in tensor memory."""


def products_of(instruction: Instruction) -> int:
    """Returns the multiply-adds of a matrix instruction for each tensor core that works on it,
    converted to multiply-adds of 16 bits; of a product in tensor memory an estimate
    (TENSOR_MEMORY_SHAPE). At least 1."""
    modifiers = instruction.operation.modifiers
    if instruction.operation.kind is OpKind.TENSOR_PRODUCT:
        rows, columns = TENSOR_MEMORY_SHAPE
        return rows * columns * TENSOR_MEMORY_DEPTH // 2 // TENSOR_CORES
    rows, columns, depth = extents(modifiers.text("shape", "m16n8k16"))
    kind = element_type(modifiers, "a") if "atype" in modifiers else modifiers.text("type", "f16")
    # FP64 counts as 16 products of 16 bits (an estimate), 1-bit products as a 16th.
    bits = {"f64": 256, "b1": 1}.get(kind) or WIDTHS[kind]
    cores = TENSOR_CORES if instruction.operation.kind is OpKind.GROUP_PRODUCT else 1
    return max(1, rows * columns * depth * bits // 16 // cores)
