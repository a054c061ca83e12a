"""Legality of operands: each rule is a small function that raises PtxSyntaxError at the operand.

Source: PTX ISA, "Instruction Operands", "Type Information for Instructions and Operands".
"""

from __future__ import annotations

from warploom.core.types import B32, BF16X2, PACKED, PRED, TYPES, U64, Kind, ScalarType
from warploom.isa.instruction import (
    Element,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from warploom.isa.kinds import ACCESSES_BY_LANE, Effect, OpKind
from warploom.isa.spec import OperandSpec, Operation, Unit
from warploom.isa.special import SPECIAL_REGISTERS, WERE_NARROW
from warploom.ptx.module import Targets
from warploom.ptx.rules.addresses import WIDE_SPACES, check_address, check_space
from warploom.ptx.rules.scales import CHOICES, SCALE_CHECKS, check_choice, check_selector
from warploom.ptx.rules.tensor_memory import TENSOR_MEMORY_CHECKS, check_switches
from warploom.ptx.rules.tensors import TENSOR_CHECKS
from warploom.ptx.rules.textures import check_axes, check_handle, check_texels
from warploom.ptx.scope import Scope

MOVES_BITS = ACCESSES_BY_LANE | {OpKind.SURFACE_LOAD, OpKind.SURFACE_STORE}
ADDRESS_SOURCES = frozenset({OpKind.MOVE, OpKind.CONVERT_ADDRESS, OpKind.MAP_ADDRESS})
"""Instructions that take the address of a symbol."""


ASYNCHRONOUS_CHECKS = {**TENSOR_CHECKS, **TENSOR_MEMORY_CHECKS}
"""The checks of operands of tensor copies and of `tcgen05`, by their types."""


def check_operands(scope: Scope, instruction: Instruction) -> None:
    """Check that every operand suits the instruction's form, and that there are as many."""
    operation = instruction.operation
    specs, needed = operation.spec.shown, operation.spec.needed
    given = instruction.written
    if not needed <= len(given) <= len(specs):
        wanted = f"{needed}" if needed == len(specs) else f"{needed} to {len(specs)}"
        names = ", ".join(spec.name for spec in specs) or "none"
        message = f"`{operation.text}` takes {wanted} operands ({names}), not {len(given)}"
        raise scope.error(message, instruction.span)
    for spec, operand in zip(specs, given, strict=False):
        if spec.type == "address":
            check_address(scope, instruction, operand)
        elif spec.type == "label":
            check_label(scope, operand)
        elif spec.type == "targets":
            check_targets(scope, operand)
        elif spec.type == "texels":
            check_texels(scope, operation, operand)
        elif spec.type == "handle":
            check_handle(scope, operation, operand)
        elif spec.type == "axes":
            check_axes(scope, operation, spec, operand)
        elif spec.type in ASYNCHRONOUS_CHECKS:
            ASYNCHRONOUS_CHECKS[spec.type](scope, operation, operand)
        elif spec.type == "selector":
            check_selector(scope, operation, operand)
        elif spec.type in SCALE_CHECKS:
            SCALE_CHECKS[spec.type](scope, operation, operand)
        elif spec.type == "zero":
            check_zero(scope, operation, operand)
        elif spec.type == "bytes":
            check_bytes(scope, operation, operand)
        elif spec.type == "alignment":
            check_alignment(scope, operation, operand)
        elif spec.type == "registers":
            check_registers(scope, operation, operand)
        elif spec.type == "multiplicand":
            check_multiplicand(scope, operation, spec, operand)
        elif spec.type in CHOICES:
            check_choice(scope, operation, spec, operand)
        elif spec.type not in ("any", "function"):
            check_typed(scope, operation, spec, operand)
    packs = operation.kind is OpKind.MOVE and "vec" not in operation.modifiers
    if packs and all(isinstance(operand, Vector) for operand in given):
        message = (
            f"`{operation.text}` packs or unpacks a vector; to copy a vector, write `mov.v2` or "
            "`mov.v4`"
        )
        raise scope.error(message, instruction.span)
    if operation.kind is OpKind.GROUP_PRODUCT:
        check_transpositions(scope, instruction)
    elif operation.has(Effect.USES_TENSOR_MEMORY):
        check_switches(scope, instruction)


def check_label(scope: Scope, operand: Operand) -> None:
    """Check that a branch goes to a label of its own function."""
    if not isinstance(operand, Symbol) or operand.name not in scope.labels:
        raise scope.error("the target of a branch must be a label in this function", operand.span)


def check_targets(scope: Scope, operand: Operand) -> None:
    """Check that an indexed branch goes to a label of a list of its own function."""
    target_list = scope.targets.get(operand.name) if isinstance(operand, Symbol) else None
    if not isinstance(target_list, Targets) or target_list.calls:
        message = "an indexed branch requires the name of a .branchtargets list"
        raise scope.error(message, operand.span)


def check_zero(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check a number that can only be 0 so far (PTX ISA, st.bulk)."""
    if not isinstance(operand, Immediate) or operand.value != 0:
        raise scope.error(f"`{operation.text}` only supports the number 0 here", operand.span)


def check_bytes(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Checks how much each lane copies; past L1 it is always 16 bytes (PTX ISA, cp.async)."""
    sizes = (16,) if "cg" in operation.modifiers else (4, 8, 16)
    if not isinstance(operand, Immediate) or operand.value not in sizes:
        wanted = " or ".join(map(str, sizes))
        raise scope.error(f"`{operation.text}` must copy {wanted} bytes", operand.span)


def check_alignment(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check a constant power of two, at most 2^23 (PTX ISA, alloca)."""
    allowed = [1 << bit for bit in range(24)]
    if not isinstance(operand, Immediate) or operand.value not in allowed:
        message = (
            f"`{operation.text}` requires a constant alignment that is a power of two, at most "
            f"{allowed[-1]}"
        )
        raise scope.error(message, operand.span)


def check_registers(scope: Scope, operation: Operation, operand: Operand) -> None:
    """Check a constant number of registers (PTX ISA, setmaxnreg)."""
    if not isinstance(operand, Immediate) or operand.value not in range(24, 257, 8):
        message = f"`{operation.text}` requires a constant from 24 to 256 that is a multiple of 8"
        raise scope.error(message, operand.span)


MULTIPLICAND_REGISTERS = 4
"""Registers of a warp's part of A, whatever its type (PTX ISA, wgmma "Register Fragments")."""


def check_multiplicand(
    scope: Scope, operation: Operation, spec: OperandSpec, operand: Operand
) -> None:
    """Check A of `wgmma.mma_async`: four registers in braces, or the descriptor of a matrix."""
    if isinstance(operand, Vector):
        check_vector(scope, operation, spec, operand, B32, MULTIPLICAND_REGISTERS)
    else:
        check_scalar(scope, operation, spec, operand, U64)


def check_transpositions(scope: Scope, instruction: Instruction) -> None:
    """Only a matrix in shared memory is transposed: B always, A where it stands there."""
    spec = instruction.operation.spec
    given = sum(form.type == "transposition" for form in spec.shown) - len(spec.shown)
    given += len(instruction.written)
    wanted = 1 if isinstance(instruction.operands[1], Vector) else 2
    if given >= 0 and spec.operands[-1].optional and given != wanted:
        where = "in registers" if wanted == 1 else "in shared memory"
        message = (
            f"`{instruction.operation.text}` takes {wanted} "
            f"transpose operand{'s' if wanted > 1 else ''} if A is {where}, not {given}"
        )
        raise scope.error(message, instruction.span)


def check_typed(scope: Scope, operation: Operation, spec: OperandSpec, operand: Operand) -> None:
    """Check an operand with a scalar type: its kind, and that its type agrees."""
    type = operation.type_of(spec)
    assert type is not None
    vectors = {"v2": 2, "v4": 4, "v8": 8}
    count = vectors.get(operation.modifiers.text("vec", ""), operation.count_of(spec))
    if isinstance(operand, Pair):
        check_pair(scope, operation, spec, operand)
        return
    several = operation.count_of(spec) > 1
    braces = spec.type == "type" or several or operation.spec.unit is Unit.MATRIX
    if braces and (count > 1 or isinstance(operand, Vector)):
        check_vector(scope, operation, spec, operand, type, count)
    else:
        check_scalar(scope, operation, spec, operand, type)


def check_vector(
    scope: Scope,
    operation: Operation,
    spec: OperandSpec,
    operand: Operand,
    type: ScalarType,
    count: int,
) -> None:
    """Vectors have as many elements as they say; `mov` packs and unpacks equal parts."""
    if not isinstance(operand, Vector):
        raise scope.error(f"`{operation.text}` requires {count} elements in braces", operand.span)
    packs = count == 1 and operation.kind is OpKind.MOVE
    if packs:
        part = TYPES.get(f"b{type.bits // max(1, len(operand.elements))}")
        if len(operand.elements) not in (2, 4) or part is None or type.kind is not Kind.BITS:
            message = f"`{operation.text}` cannot pack or unpack {len(operand.elements)} elements"
            raise scope.error(message, operand.span)
        type = part
    elif len(operand.elements) != count:
        wanted = f"{count} elements" if count > 1 else "one operand without braces"
        raise scope.error(f"`{operation.text}` requires {wanted} here", operand.span)
    for element in operand.elements:
        if packs and isinstance(element, Special):
            has = SPECIAL_REGISTERS[element.name].type
            if has.bits != type.bits:
                raise scope.error(
                    f"`{element.name}` is {has}, but the vector element is {type}", element.span
                )
        if isinstance(element, Symbol):
            raise scope.error(
                "an address cannot be an element of a vector; move it separately", element.span
            )
        check_scalar(scope, operation, spec, element, type)


def is_paired(operation: Operation) -> bool:
    """Returns whether an operation can write a predicate beside its result, `d|p`: by its kind, or
    since a term more than it has destinations is a predicate."""
    further = operation.terms[len(operation.spec.destinations) :]
    return operation.has(Effect.WRITES_PREDICATE) or any(term.type is PRED for term in further)


def check_pair(scope: Scope, operation: Operation, spec: OperandSpec, operand: Pair) -> None:
    """`d|p` writes a second result, a predicate."""
    if not spec.written or not is_paired(operation):
        raise scope.error(f"`{operation.text}` does not support a pair here", operand.span)
    check_typed(scope, operation, spec, operand.first)
    check_scalar(scope, operation, spec, operand.second, PRED)


def check_scalar(
    scope: Scope, operation: Operation, spec: OperandSpec, operand: Operand, type: ScalarType
) -> None:
    """Check a single value of `type`, written or read."""
    match operand:
        case Register() | Element(Register()):
            register = operand if isinstance(operand, Register) else operand.register
            if register.type is not type and not agrees(register.type, type, operation):
                message = (
                    f"`{register.name}` is a {register.type} register, but `{operation.text}` "
                    f"takes {spec.name} as {type}"
                )
                raise scope.error(message, operand.span)
        case Sink() if spec.written:
            pass
        case Immediate() if not spec.written:
            check_immediate(scope, operand, type)
        case Special(name) if not spec.written:
            has = SPECIAL_REGISTERS[name].type
            if has.bits != type.bits and not is_narrowed(operation, name, type):
                message = f"`{name}` is {has}, but the operand must be {type}"
                raise scope.error(message, operand.span)
        case Negated(register) if not spec.written and type is PRED:
            check_scalar(scope, operation, spec, register, type)
        case Symbol() if not spec.written and operation.kind in ADDRESS_SOURCES:
            check_taken_address(scope, operation, operand, type)
        case _:
            role = "written" if spec.written else "read as a value"
            message = f"`{operation.text}`: operand {spec.name} cannot be {role} here"
            raise scope.error(message, operand.span)


def is_narrowed(operation: Operation, special: str, type: ScalarType) -> bool:
    """Returns whether an instruction reads fewer bits than a special register has: a conversion any
    integer, `mov` what it was in an earlier version of PTX."""
    if type.is_float or type.bits > SPECIAL_REGISTERS[special].type.bits:
        return False
    once = WERE_NARROW.get(special.partition(".")[0], 64)
    moves = operation.kind is OpKind.MOVE and type.bits >= once
    return moves or (operation.kind not in MOVES_BITS and takes_wider_registers(operation))


def takes_wider_registers(operation: Operation) -> bool:
    """Returns whether the registers of an instruction may be wider than its type: a load, a store
    or a conversion (PTX ISA, "Operand Size Exceeding Instruction-Type Size")."""
    converts = operation.spec.unit is Unit.CONVERT and operation.kind is OpKind.COMPUTE
    return converts or operation.kind in MOVES_BITS


def agrees(register: ScalarType, type: ScalarType, operation: Operation) -> bool:
    """Returns whether a register of one type can stand for an operand of another.

    Widths are equal, or the register of a load, a store or a conversion is wider and no float;
    untyped bits agree with all, integers with integers, floats with floats.
    """
    if (register is PRED) is not (type is PRED):
        return False
    if register.bits != type.bits:
        wider = register.bits > type.bits and not register.is_float
        if not wider or not takes_wider_registers(operation):
            return False
    if type in PACKED:  # "operands have type .b32" (PTX ISA, add of .f16x2)
        return register.kind is Kind.BITS and not (register in PACKED and type is BF16X2)
    if Kind.BITS in (register.kind, type.kind):
        return True
    alike = register is type or register.bits != 16  # .bf16 is not .f16
    return register.is_float == type.is_float and (alike or not type.is_float)


def check_immediate(scope: Scope, operand: Immediate, type: ScalarType) -> None:
    """Check a number: of the operand's kind, and within its width."""
    if operand.float_bits:
        if type is PRED:
            raise scope.error("a predicate cannot be a floating-point number", operand.span)
        if type.is_integer and (type.kind is not Kind.BITS or operand.float_bits != type.bits):
            raise scope.error(f"a {type} operand cannot be a floating-point number", operand.span)
        return
    if type in PACKED or (type.is_float and type.bits == 16):
        raise scope.error(
            f"a {type} operand must be a register; move the bits into a register", operand.span
        )
    if type.is_float:
        raise scope.error(
            f"a {type} operand must be a floating-point number, such as 1.0", operand.span
        )
    if type is PRED:
        return
    low, high = -(1 << (type.bits - 1)), 1 << type.bits
    # An unsigned constant may stand for a negative one: 64 bits, all ones, are -1.
    if not (low <= operand.value < high or low <= operand.value - (1 << 64) < 0):
        raise scope.error(f"{operand.value} does not fit into {type}", operand.span)


def check_taken_address(
    scope: Scope, operation: Operation, operand: Symbol, type: ScalarType
) -> None:
    """Check that the address of a variable or a function has the width of an address."""
    if operand.name in scope.labels or not (
        operand.name in scope.variables or operand.name in scope.functions
    ):
        raise scope.error(f"`{operand.name}` has no address", operand.span)
    if operation.kind is OpKind.CONVERT_ADDRESS:
        check_space(scope, operation, operand)
    variable = scope.variables.get(operand.name)
    wide = scope.address_bits == 64 and (variable is None or variable.space in WIDE_SPACES)
    if not type.is_integer or type.bits not in ((64,) if wide else (32, 64)):
        raise scope.error(f"an address does not fit into {type}", operand.span)
