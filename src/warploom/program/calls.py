"""Calls that cannot be inlined: of functions that call themselves, and through registers.

Such a function stands in the program once, behind the kernel. Every thread has a stack in its local
memory, and on it a frame for each call that it is in: what was passed and what is given back, at
places that follow from the signature alone; the function's own variables; registers that a call
inside may overwrite; and the way back. A call writes the arguments where the next frame will be and
jumps to the function, through a table where a register says which; `ret` jumps back through a table
by the number of the call. What does all this are hidden instructions (`Program.hidden`): the `call`
is counted, and the `ret`, which becomes a branch to the function's end as where it is inlined.

Lanes that a call parts meet again at its return point: inside a function the call leads there. How
deep in calls a lane is, its own register tells, so that lanes that wait at a place for others do
not take a deeper call's passing it for their coming. Source: PTX ISA, "Abstracting the ABI", call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from warploom.program.callgraph import FUNCTION_BASE, FUNCTION_STEP
from warploom.program.flat import EXIT, Flat
from warploom.program.program import Site
from warploom.program.stack import INDEX, RETURN, SCRATCH, TOP, WIDE, HiddenCode, chunks, slots
from warploom.ptx.ir import (
    Address,
    Function,
    Immediate,
    Instruction,
    Operand,
    Prototype,
    Register,
    Sink,
    Symbol,
    Variable,
    Vector,
)


@dataclass(frozen=True)
class RetainedCall:
    """A call that is not inlined: where its jump stands, and where its function goes on (positions
    in the list of the caller), and whom it may reach."""

    number: int
    jump: int
    back: int
    callees: tuple[str, ...]

    @property
    def label(self) -> str:
        return return_label(self.number)


@dataclass
class FunctionCode:
    """A function that is not inlined, or the kernel, on its way into the program."""

    function: Function
    flat: Flat = field(default_factory=Flat)
    kept: list[RetainedCall] = field(default_factory=list[RetainedCall])


def entry_label(name: str) -> str:
    return f"entry@{name}"


def end_label(name: str) -> str:
    return f"end@{name}"


def return_label(number: int) -> str:
    return f"back@{number}"


@dataclass(frozen=True)
class CallTargets:
    """Whom a call may reach: the functions with their numbers (`CallGraph.number`), and whether a
    thread may end in one of them."""

    functions: Mapping[str, int]
    may_exit: bool


def keep_call(
    part: FunctionCode,
    call: Instruction,
    site: Site,
    number: int,
    shape: Function | Prototype,
    targets: CallTargets,
) -> None:
    """Add a call that is not inlined; `shape` says what it passes, `targets` whom it may reach."""
    flat, code = part.flat, HiddenCode(part.flat, call, site)
    returns, target, actuals = call.operands[:3]
    assert isinstance(returns, Vector)
    assert isinstance(actuals, Vector)
    inputs, outputs, _ = slots(shape)
    for formal, actual, at in zip(shape.parameters, actuals.elements, inputs, strict=True):
        for offset, bits, value in _pieces(code, formal, actual):
            code.store(TOP, at + offset, value, bits)
    code.emit("mov.u32", RETURN, Immediate(number))
    counted = replace(call, operands=(Vector(()), target, Vector(())), guard=None)
    flat.add(counted, site)
    if isinstance(target, Symbol):
        code.emit("bra", Symbol(entry_label(target.name)))
    else:
        _emit_indirect_jump(code, target, targets)
    jump = len(flat.instructions) - 1
    flat.inside[jump] = (
        (return_label(number), EXIT) if targets.may_exit else (return_label(number),)
    )
    flat.mark(return_label(number))
    part.kept.append(RetainedCall(number, jump, len(flat.instructions), tuple(targets.functions)))
    for formal, actual, at in zip(shape.returns, returns.elements, outputs, strict=True):
        _emit_result_copy(code, formal, actual, at)


def _emit_indirect_jump(code: HiddenCode, target: Operand, targets: CallTargets) -> None:
    """Jump to the function whose address a register holds: the address becomes an index. What is
    not a multiple of the step becomes a large one, which a table of functions does not have."""
    shift = FUNCTION_STEP.bit_length() - 1
    code.emit("sub.u64", WIDE, target, Immediate(FUNCTION_BASE))
    code.emit("shl.b64", SCRATCH[64], WIDE, Immediate(64 - shift))
    code.emit("shr.u64", WIDE, WIDE, Immediate(shift))
    code.emit("or.b64", WIDE, WIDE, SCRATCH[64])
    code.emit("min.u64", WIDE, WIDE, Immediate(0xFFFFFFFF))
    code.emit("cvt.u32.u64", INDEX, WIDE)
    entries = {number: Symbol(entry_label(name)) for name, number in targets.functions.items()}
    table = tuple(entries.get(number, Sink()) for number in range(max(entries, default=0) + 1))
    code.emit("brx.idx", INDEX, Vector(table))


def _pieces(
    code: HiddenCode, formal: Variable, actual: Operand
) -> Iterator[tuple[int, int, Operand]]:
    """Yield what is passed for a parameter, piece by piece: its offset, its bits, its value."""
    if not isinstance(actual, Symbol):
        yield 0, max(8, formal.type.bits), actual
        return
    for offset, size in chunks(formal):
        register = SCRATCH[8 * size]
        code.emit(f"ld.param.b{8 * size}", register, Address(actual, offset))
        yield offset, 8 * size, register


def _emit_result_copy(code: HiddenCode, formal: Variable, actual: Operand, at: int) -> None:
    """Put a result where the caller wants it."""
    if isinstance(actual, Register):
        code.load(actual, TOP, at)
    elif isinstance(actual, Symbol):
        for offset, size in chunks(formal):
            register = SCRATCH[8 * size]
            code.load(register, TOP, at + offset)
            code.emit(f"st.param.b{8 * size}", Address(actual, offset), register)
