"""Emits, as PTX instructions of the program, calls that are not inlined: calls of recursive
functions, indirect calls (of a function whose address is in a register), and calls of functions
that would make the kernel too large. Arguments and results are in a stack in local memory.

Such a function stands in the program once, after the kernel (`program.callees`). Every thread has a
stack in its local memory, with a frame for each active call: arguments and results at offsets that
follow from the signature alone, the function's variables, registers saved around calls, and the
return link. A call stores its arguments where the callee's frame begins and jumps, through a table
if a register holds the address; `ret` jumps back through a table by the number of the call:

    call (%r2), f, (%r1);   ->   st.local [@top], %r1; mov @return, 3; call; bra entry@f;
                                 back@3: ld.local %r2, [@top + 4];

All but the `call` are hidden instructions (`Program.hidden`): the `call` is counted, and the `ret`,
which becomes a branch to the function's end as in inlined code.

Lanes that diverge in a call reconverge at its return point, which is the successor of the call in
`Program.local_successors`. The depth of calls is a register of each lane, so that lanes that wait
at a block do not reconverge with lanes that pass it in a deeper call. Source: PTX ISA, "Abstracting
the ABI", call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from warploom.isa.instruction import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Symbol,
    Vector,
)
from warploom.program.callgraph import FUNCTION_BASE, FUNCTION_STEP
from warploom.program.flat import EXIT, Flat
from warploom.program.program import Site
from warploom.program.stack import INDEX, RETURN, SCRATCH, TOP, WIDE, HiddenCode, chunks, slots
from warploom.ptx.module import Function, Prototype, Variable


@dataclass(frozen=True)
class RetainedCall:
    """A call that is not inlined: its number (from 1, unique in the program), the indices of its
    jump and of the first instruction after its return, in the caller's own list, and the functions
    that it may call."""

    number: int
    jump: int
    back: int
    callees: tuple[str, ...]

    @property
    def label(self) -> str:
        """Returns the label of its return point."""
        return return_label(self.number)


@dataclass
class FunctionCode:
    """The instructions of the kernel, or of a function that is not inlined, as they are emitted,
    and the `retained` calls among them."""

    function: Function
    flat: Flat = field(default_factory=Flat)
    retained: list[RetainedCall] = field(default_factory=list[RetainedCall])


def entry_label(name: str) -> str:
    """Returns the label at which a function that is not inlined begins."""
    return f"entry@{name}"


def end_label(name: str) -> str:
    """Returns the label after the body of a function that is not inlined, to which its `ret`
    branch."""
    return f"end@{name}"


def return_label(number: int) -> str:
    """Returns the label of the return point of a call that is not inlined, by its number."""
    return f"back@{number}"


@dataclass(frozen=True)
class CallTargets:
    """The functions that a call may call, with their numbers (`CallGraph.number`), and whether a
    thread may exit in any of them."""

    functions: Mapping[str, int]
    may_exit: bool


def emit_retained_call(
    caller_code: FunctionCode,
    call: Instruction,
    site: Site,
    number: int,
    shape: Function | Prototype,
    targets: CallTargets,
) -> None:
    """Appends a call that is not inlined to the code of the caller (`caller_code`). It is stores of
    arguments on the stack, a store of the call's number to RETURN, the `call` itself (counted,
    without effect), and the jump to the callee; at the return point, it is loads of results. The
    jump's local successor is the return point, and also EXIT if the callee may exit. Records the
    call in `caller_code.retained`.

    `number` identifies the call, `shape` declares the parameters and results that it passes,
    `targets` are the functions that it may jump to.
    """
    flat, code = caller_code.flat, HiddenCode(caller_code.flat, call, site)
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
    # Overrides the successors of the jump in the graph of its own function.
    flat.local_successors[jump] = (
        (return_label(number), EXIT) if targets.may_exit else (return_label(number),)
    )
    flat.mark(return_label(number))
    caller_code.retained.append(
        RetainedCall(number, jump, len(flat.instructions), tuple(targets.functions))
    )
    for formal, actual, at in zip(shape.returns, returns.elements, outputs, strict=True):
        _emit_result_copy(code, formal, actual, at)


def _emit_indirect_jump(code: HiddenCode, target: Operand, targets: CallTargets) -> None:
    """Emits a jump to the function whose address the operand `target` holds: a branch table of
    `targets`, indexed by the address minus FUNCTION_BASE, over FUNCTION_STEP. An address that is no
    multiple of the step yields an index beyond the table."""
    # An address below FUNCTION_BASE wraps around to a number that is beyond any table as well.
    shift = FUNCTION_STEP.bit_length() - 1
    code.emit("sub.u64", WIDE, target, Immediate(FUNCTION_BASE))
    # Rotates right by the step's bits: low bits that should be zero become high bits of the index.
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
    """Yields the values to store for the argument `actual` of parameter `formal`, as (offset in
    bytes, bits, value): a register or immediate as a whole (at least 8 bits), a `.param` variable
    in chunks. Before it yields a chunk, emits to `code` the load of the chunk into a scratch
    register, which is the value."""
    if not isinstance(actual, Symbol):
        yield 0, max(8, formal.type.bits), actual
        return
    for offset, size in chunks(formal):
        register = SCRATCH[8 * size]
        code.emit(f"ld.param.b{8 * size}", register, Address(actual, offset))
        yield offset, 8 * size, register


def _emit_result_copy(code: HiddenCode, formal: Variable, actual: Operand, at: int) -> None:
    """Copies a result from the callee's frame, at offset `at`, to the register or `.param` variable
    `actual` that receives it, a variable in chunks; nothing for a sink."""
    if isinstance(actual, Register):
        code.load(actual, TOP, at)
    elif isinstance(actual, Symbol):
        for offset, size in chunks(formal):
            register = SCRATCH[8 * size]
            code.load(register, TOP, at + offset)
            code.emit(f"st.param.b{8 * size}", Address(actual, offset), register)
