"""Classifies PTX instructions by the machine work that they become: the classes of
`devices/data/work.json`.

Instructions that every compiler folds into others are FREE: copies, address conversions, parameters
(operands from the constant bank), negations and absolute values of floats (operand modifiers).
"""

from __future__ import annotations

from warploom.isa.instruction import Instruction, Special
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Modifiers, Operation, Unit
from warploom.isa.special import SPECIAL_REGISTERS, Varies

FREE = "free"
"""No issue slot; the result is ready when the sources are."""

_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_SPECIALS = {"ex2": "special", "lg2": "special", "tanh": "special", "sin": "sin", "cos": "sin"}
_ROOTS = {"rcp": "special", "sqrt": "sqrt", "rsqrt": "rsqrt"}
_BITS = ("popc", "clz", "bfind", "brev", "fns")
_FIELDS = ("bfe", "bfi", "bmsk", "szext", "prmt")
_WARP = {
    OpKind.SHUFFLE: "shuffle",
    OpKind.MATCH: "match",
    OpKind.WARP_REDUCTION: "redux",
    OpKind.WARP_BARRIER: "control",
}


def class_of(instruction: Instruction) -> str:
    """Returns the class of an instruction's work, by its unit and then by name and modifiers: a row
    name of `work.json`, or FREE for an instruction that costs no instruction of the machine. Units
    without a function of this module have their own name as the class ("vote" for other warp-wide
    operations than shuffle, match, redux and barrier)."""
    operation = instruction.operation
    unit, name = operation.spec.unit, operation.name
    match unit:
        case Unit.FLOAT:
            return _float(name, operation.modifiers)
        case Unit.INTEGER:
            return _integer(name, operation.modifiers)
        case Unit.LOGIC:
            return _logic(name, operation.modifiers)
        case Unit.CONVERT:
            return (
                FREE if operation.kind is OpKind.CONVERT_ADDRESS else _convert(operation.modifiers)
            )
        case Unit.MOVE:
            return _move(instruction)
        case Unit.WARP:
            return _WARP.get(operation.kind, "vote")
        case Unit.MATRIX:
            return _matrix(operation)
        case Unit.MEMORY | Unit.ATOMIC:
            return _memory(operation)
        case _:
            return unit.value


def _float(name: str, modifiers: Modifiers) -> str:
    """Returns the class of a floating-point instruction, the first that fits. It is "special" or
    "sin" for approximated functions and reciprocals, and "fp16" for halves, also their `neg` and
    `abs`. Roots and divisions have it by name, with the type if they are rounded (`div.rn.f32`,
    else `div.approx.f32`, `sqrt`). It is FREE for `neg` and `abs`; "int32" for `min`, `max`,
    `copysign` and `testp` but of `f64`; else "fp32" or "fp64"."""
    kind = modifiers.text("type", "f32")
    if name in _SPECIALS:
        return _SPECIALS[name]
    if kind in _HALVES:
        return "fp16"
    double = kind == "f64"
    if name in _ROOTS:
        if "approx" in modifiers:
            return "rsqrt.f64" if double and name == "rsqrt" else _ROOTS[name]
        return f"{name}.rn.{kind}"
    if name == "div":
        return f"div.rn.{kind}" if modifiers["rnd"] else "div.approx.f32"
    if name in ("neg", "abs"):
        return FREE
    if name in ("min", "max", "copysign", "testp") and not double:
        return "int32"
    return "fp64" if double else "fp32"


def _integer(name: str, modifiers: Modifiers) -> str:
    """Returns the class of an integer instruction, by name and by whether its type has 64 bits. For
    `mul` and `mad` it is "imul32", "imul64" or one of these with ".hi"; for `mul24` and `mad24`
    "imul24"; for dot products "imul32". For quotients and remainders it is "div.s32" or "div.s64",
    signed or not; for _BITS "bits" or "bits64"; for _FIELDS "shift32" or "shift64"; for names that
    begin with v "video". All others are "int32" or "int64"."""
    wide = "64" in modifiers.text("type", "")
    if name in ("mul", "mad", "madc"):
        part = ".hi" if "hi" in modifiers else ""
        return f"imul64{part}" if wide else f"imul32{part}"
    if name in ("mul24", "mad24"):
        return "imul24"
    if name in ("div", "rem"):
        return "div.s64" if wide else "div.s32"
    if name in _BITS:
        return "bits64" if wide else "bits"
    if name in ("dp4a", "dp2a"):
        return "imul32"
    if name in _FIELDS:
        return "shift64" if wide else "shift32"
    if name.startswith("v"):
        return "video"
    return "int64" if wide else "int32"


def _logic(name: str, modifiers: Modifiers) -> str:
    """Returns the class of a comparison ("setp", "setp64", "setp.f64", by the type of its
    operands), of a shift ("shift32", "shift64"; `shf` always "shift32"), or of a bitwise operation
    or selection ("int32", "int64")."""
    kind = modifiers.text("type", "")
    wide = "64" in kind
    if name in ("setp", "set"):
        kind = modifiers.text("stype", kind)
        if kind == "f64":
            return "setp.f64"
        return "setp64" if "64" in kind else "setp"
    if name in ("shl", "shr"):
        return "shift64" if wide else "shift32"
    if name == "shf":
        return "shift32"
    return "int64" if wide else "int32"


def _convert(modifiers: Modifiers) -> str:
    """Returns the class of a conversion: between integers FREE to 32 bits from 32 or 64 without
    `.sat`, else "int32"; of others, from or to floats, "convert64" if either type has 64 bits, else
    "convert"."""
    # All types have a digit in their names, and no other modifier has.
    kinds = [kind for kind in modifiers.values.values() if any(map(str.isdigit, kind))]
    widths = [kind[1:] for kind in kinds]
    if all(kind[0] in "usb" and width.isdigit() for kind, width in zip(kinds, widths, strict=True)):
        # A conversion to 32 bits from 32 or 64 reads the low register: free.
        reads_low = widths in (["32", "32"], ["32", "64"]) and "sat" not in modifiers
        return FREE if reads_low else "int32"
    return "convert64" if "64" in widths else "convert"


def _move(instruction: Instruction) -> str:
    """Returns the class of a move: "special_register" if it reads a special register that differs
    between lanes, warps or blocks, or a clock, as such are read from a register of the
    multiprocessor; FREE for all others, also for registers that are in the constant bank."""
    for operand in instruction.operands:
        if isinstance(operand, Special):
            register = SPECIAL_REGISTERS[operand.name]
            if register.varies is not Varies.LAUNCH or register.clock_bit is not None:
                return "special_register"
    return FREE


def _matrix(operation: Operation) -> str:
    """Returns the class of a matrix instruction: "tensor" for products, "shuffle" for transposes,
    "memory" for moves to and from shared memory, "tensor_memory" for those of tensor memory,
    "control" for commits, waits and allocations."""
    return _MATRICES.get(operation.kind, "control")


_MATRICES = {
    OpKind.MATRIX_TRANSPOSE: "shuffle",
    **dict.fromkeys(
        (
            OpKind.MATRIX_PRODUCT,
            OpKind.WARP_MATRIX_PRODUCT,
            OpKind.GROUP_PRODUCT,
            OpKind.TENSOR_PRODUCT,
        ),
        "tensor",
    ),
    **dict.fromkeys(
        (
            OpKind.MATRIX_LOAD,
            OpKind.MATRIX_STORE,
            OpKind.WARP_MATRIX_LOAD,
            OpKind.WARP_MATRIX_STORE,
        ),
        "memory",
    ),
    **dict.fromkeys(
        (OpKind.TENSOR_LOAD, OpKind.TENSOR_STORE, OpKind.TENSOR_MEMORY_COPY), "tensor_memory"
    ),
}
"""The classes of matrix instructions; "control" for the others, which wait, commit or allocate."""


def _memory(operation: Operation) -> str:
    """Returns the class of a memory access, atomic or fence: "control" for fences, FREE for
    parameters, else "memory"."""
    if operation.kind is OpKind.FENCE:
        return "control"
    space = operation.modifiers.text("space", "")
    return FREE if space.startswith("param") else "memory"


def is_bulk(operation: Operation) -> bool:
    """Returns whether the Tensor Memory Accelerator carries out an operation: bulk copies,
    reductions and prefetches, without their commits and waits."""
    return operation.text.startswith(("cp.async.bulk.", "cp.reduce.async.bulk.")) and (
        operation.kind not in (OpKind.COPY_COMMIT, OpKind.COPY_WAIT)
    )
