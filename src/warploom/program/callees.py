"""Emits, as PTX instructions of the program, the callee's side of calls that are not inlined
(`program.calls`).

Each function stands once, after the kernel: a prologue that pushes a frame, the body with its
variables at offsets from the frame, and an epilogue that pops the frame and returns by a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from warploom.core.types import TYPES
from warploom.isa.instruction import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Space,
    Symbol,
    Vector,
)
from warploom.isa.spec import decode
from warploom.program.calls import FunctionCode, RetainedCall, end_label, entry_label
from warploom.program.cfg import cut_into_blocks
from warploom.program.flat import EXIT, Flat
from warploom.program.liveness import live_in
from warploom.program.program import Site
from warploom.program.stack import (
    ALIGNMENT,
    DEPTH,
    FRAME,
    LINK_BYTES,
    REGISTERS,
    RETURN,
    STACK,
    TOP,
    WIDE,
    HiddenCode,
    aligned,
    own_register,
    slots,
)
from warploom.ptx.module import Variable


def assemble(
    kernel: FunctionCode, functions: Iterable[FunctionCode], stack_bytes: int, reachable: Reachable
) -> Flat:
    """Returns the whole program: a hidden instruction that sets the stack's top; the kernel; if
    functions are not inlined, an `exit`, then each of them with prologue and epilogue; the label
    EXIT. Also adds the registers of calls, the depth of calls (only with such functions), and the
    local variable of `stack_bytes` bytes that is a thread's stack."""
    parts = [*functions]
    whole = Flat()
    first_instruction = kernel.flat.instructions[0]
    start = HiddenCode(whole, first_instruction, kernel.flat.sites[0])
    whole.variables.update(kernel.flat.variables)
    start.emit("mov.u64", TOP, Symbol(STACK))
    _append(whole, kernel.flat)
    if parts:
        # Stores a kernel that ends without `ret` from running into the functions after it.
        last = HiddenCode(whole, kernel.flat.instructions[-1], kernel.flat.sites[-1])
        last.emit("exit")
    calls = [retained for function_code in (kernel, *parts) for retained in function_code.retained]
    for function_code in parts:
        _append_function(whole, function_code, calls, reachable)
    whole.mark(EXIT)
    whole.registers.extend(REGISTERS)
    whole.depth = DEPTH if parts else None
    whole.variables[STACK] = Variable(
        STACK, Space.LOCAL, TYPES["b8"], (aligned(stack_bytes, ALIGNMENT),), align=ALIGNMENT
    )
    return whole


Reachable = Callable[[str], frozenset[str]]
"""Maps the name of a function to the functions that it can call, directly or not."""


def _append(whole: Flat, flat: Flat) -> None:
    """Appends the instructions of `flat` to `whole`, with all indices (labels, hidden and private
    instructions, successors) shifted to their new positions, and its registers; variables are left
    to the caller."""
    shift = len(whole.instructions)
    whole.instructions += flat.instructions
    whole.sites += flat.sites
    whole.labels |= {label: at + shift for label, at in flat.labels.items()}
    whole.hidden |= {at + shift for at in flat.hidden}
    whole.private |= {at + shift for at in flat.private}
    whole.local_successors |= {at + shift: labels for at, labels in flat.local_successors.items()}
    whole.registers += flat.registers


def _append_function(
    whole: Flat, function_code: FunctionCode, calls: Sequence[RetainedCall], reachable: Reachable
) -> None:
    """Appends a function that is not inlined: its entry label, the prologue, its body, its end
    label, and the epilogue. The prologue pushes a frame, counts it in DEPTH and loads register
    parameters. The epilogue stores register results, pops the frame, and branches back by the
    number of the call; its local successor is EXIT. Also adds its variables outside of the frame.
    `calls` are the retained calls of the whole program."""
    function = function_code.function
    inputs, outputs, end = slots(function)
    recursive = function.name in reachable(function.name)
    offsets, end = _frame_offsets(function_code, inputs, outputs, end, recursive=recursive)
    saved, end = _saved_registers(function_code, end, reachable)
    size = aligned(end + LINK_BYTES, ALIGNMENT)
    like, site = _attribution(function_code)
    whole.mark(entry_label(function.name))
    code = HiddenCode(whole, like, site)
    # The link, in the last LINK_BYTES of the frame: the caller's FRAME, then the number to return
    # by.
    # Relative to TOP, which is this frame's start, as FRAME is still the caller's.
    code.store(TOP, size - 16, FRAME, 64)
    code.store(TOP, size - 8, RETURN, 32)
    code.emit("mov.b64", FRAME, TOP)
    code.emit("add.u64", TOP, TOP, Immediate(size))
    code.emit("add.u32", DEPTH, DEPTH, Immediate(1))
    for formal, at in zip(function.parameters, inputs, strict=True):
        if formal.space is Space.REG:
            code.load(own_register(formal, function), FRAME, at)
    _append(whole, _rewritten_body(function_code, offsets, saved))
    whole.variables |= {n: v for n, v in function_code.flat.variables.items() if n not in offsets}
    whole.mark(end_label(function.name))
    for formal, at in zip(function.returns, outputs, strict=True):
        if formal.space is Space.REG:
            code.store(FRAME, at, own_register(formal, function), formal.type.bits)
    code.emit("mov.b64", TOP, FRAME)
    # RETURN has the number of whichever call came last from inside of the body: the frame has that
    # of the call to return from.
    code.load(RETURN, TOP, size - 8)
    code.load(FRAME, TOP, size - 16)
    code.emit("sub.u32", DEPTH, DEPTH, Immediate(1))
    # The return is a branch table over the numbers of the calls that may call this function; a
    # number without an entry cannot occur.
    return_targets = {
        retained.number: Symbol(retained.label)
        for retained in calls
        if function.name in retained.callees
    }
    table = tuple(
        return_targets.get(number, Sink()) for number in range(max(return_targets, default=0) + 1)
    )
    code.emit("brx.idx", RETURN, Vector(table))
    # For the analyses of one function a return ends it. With the edges to all calls, the nearest
    # block on all paths from a branch in the body would be far outside of the function.
    whole.local_successors[len(whole.instructions) - 1] = (EXIT,)


def _attribution(function_code: FunctionCode) -> tuple[Instruction, Site]:
    """Returns the instruction and site that prologue and epilogue are attributed to: the function's
    first, or a `ret` if its body is empty."""
    if function_code.flat.instructions:
        return function_code.flat.instructions[0], function_code.flat.sites[0]
    return Instruction(decode("ret"), (), span=function_code.function.span), Site(
        function_code.function.name, 0
    )


def _frame_offsets(
    function_code: FunctionCode,
    inputs: Sequence[int],
    outputs: Sequence[int],
    end: int,
    *,
    recursive: bool,
) -> tuple[dict[str, int], int]:
    """Returns the offsets in the frame of a function's variables by name, and the end of these, in
    bytes. `inputs` and `outputs` are the offsets of parameters and results, `end` is where these
    end.

    A thread is at most once in a function that is not recursive: then only parameters and results
    need the frame, and other variables have fixed addresses. Of a recursive one, local and `.param`
    variables have offsets, too.
    """
    function = function_code.function
    formals = zip((*function.parameters, *function.returns), (*inputs, *outputs), strict=True)
    offsets = {f"{formal.name}@{function.name}": at for formal, at in formals}
    for name, variable in function_code.flat.variables.items():
        framed = recursive and variable.space in (Space.LOCAL, Space.PARAM)
        if name not in offsets and framed:
            # Frames are aligned to ALIGNMENT only, whatever a variable requests.
            start = aligned(end, min(ALIGNMENT, variable.alignment))
            offsets[name] = start
            end = start + variable.size
    return offsets, end


def _saved_registers(
    function_code: FunctionCode, end: int, reachable: Reachable
) -> tuple[dict[int, list[tuple[Register, int]]], int]:
    """Returns, by the number of a call, the registers to save around it with their offsets in the
    frame, and the end of these. Only calls that may re-enter this function have an entry: they
    overwrite its registers, so those that are live after the call are saved."""
    name, flat = function_code.function.name, function_code.flat
    reentrant = [
        retained
        for retained in function_code.retained
        if any(name == callee or name in reachable(callee) for callee in retained.callees)
    ]
    if not reentrant:
        return {}, end
    # The epilogue and the program's end come later, outside of this list: here both labels are at
    # its end.
    ends = dict.fromkeys((EXIT, end_label(name)), len(flat.instructions))
    blocks, targets = cut_into_blocks(flat.instructions, flat.labels | ends, flat.local_successors)
    live = live_in(flat.instructions, blocks, (*flat.registers, *REGISTERS))
    offsets: dict[Register, int] = {}
    saved: dict[int, list[tuple[Register, int]]] = {}
    for retained in reentrant:
        block = targets[retained.label]
        # The registers of the stack itself are restored by the epilogue of the callee.
        needed = live[block].difference(REGISTERS) if block < len(blocks) else ()
        needed = sorted(needed, key=lambda r: r.name)
        for register in needed:
            if register not in offsets:
                size = max(4, register.type.bits // 8)
                offsets[register] = end = aligned(end, size)
                end += size
        saved[retained.number] = [(register, offsets[register]) for register in needed]
    return saved, end


def _rewritten_body(
    function_code: FunctionCode,
    offsets: Mapping[str, int],
    saved: Mapping[int, list[tuple[Register, int]]],
) -> Flat:
    """Returns a copy of a function's body in which operands that name variables of the frame are
    addresses relative to the frame's start, and registers are stored before the jump of a call and
    loaded back at its return point. `offsets` are those of the variables, `saved` the registers by
    the number of the call."""
    old, new = function_code.flat, Flat(registers=function_code.flat.registers)
    labels_at: dict[int, list[str]] = {}
    for label, at in old.labels.items():
        labels_at.setdefault(at, []).append(label)
    jumps = {retained.jump: saved.get(retained.number, []) for retained in function_code.retained}
    returns = {
        retained.back: (saved.get(retained.number, []), retained.jump)
        for retained in function_code.retained
    }
    for at in range(len(old.instructions) + 1):
        for label in labels_at.get(at, ()):
            new.mark(label)
        if at in returns:
            code = HiddenCode(new, old.instructions[returns[at][1]], old.sites[returns[at][1]])
            for register, offset in returns[at][0]:
                code.load(register, FRAME, offset)
        if at == len(old.instructions):
            break
        for register, offset in jumps.get(at, ()):
            HiddenCode(new, old.instructions[at], old.sites[at]).store(
                FRAME, offset, register, register.type.bits
            )
        _add_rewritten(new, old, at, offsets)
    return new


def _add_rewritten(new: Flat, old: Flat, at: int, offsets: Mapping[str, int]) -> None:
    """Appends instruction number `at` of `old` to `new`, with its marks and local successors. An
    address in a variable of the frame (`offsets`: by name) becomes one relative to the frame's
    start; an access that is not to local memory (but `.param`) becomes one to local memory, and
    private: it is not counted. Where the address of such a variable is an operand itself, a hidden
    instruction computes it before, into the scratch register WIDE, and the register is the
    operand."""
    instruction, site = old.instructions[at], old.sites[at]
    hidden, private = at in old.hidden, at in old.private
    operands: list[Operand] = []
    operation = instruction.operation
    for operand in instruction.operands:
        match operand:
            case Address(Symbol(name) as base) if name in offsets:
                operands.append(Address(FRAME, offsets[name] + base.offset + operand.offset))
                if operation.modifiers["space"] != "local":
                    space = f".{operation.modifiers['space']}"
                    operation, private = decode(operation.text.replace(space, ".local")), True
            case Symbol(name) if name in offsets:
                frame_offset = Immediate(offsets[name] + operand.offset)
                HiddenCode(new, instruction, site).emit("add.u64", WIDE, FRAME, frame_offset)
                operands.append(WIDE)
            case _:
                operands.append(operand)
    rewritten = replace(instruction, operation=operation, operands=tuple(operands))
    if at in old.local_successors:
        new.local_successors[len(new.instructions)] = old.local_successors[at]
    new.add(rewritten, site, hidden=hidden, private=private)
