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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warploom.analysis.callgraph import FUNCTION_BASE, FUNCTION_STEP
from warploom.analysis.cfg import cut
from warploom.analysis.flat import EXIT, Flat
from warploom.analysis.liveness import live_in
from warploom.analysis.program import Site
from warploom.core.types import TYPES
from warploom.isa.spec import decode
from warploom.ptx.ir import (
    Address,
    Function,
    Immediate,
    Instruction,
    Operand,
    Prototype,
    Register,
    Sink,
    Space,
    Symbol,
    Variable,
    Vector,
)

STACK = "@stack"
TOP = Register("@top", TYPES["b64"])
FRAME = Register("@frame", TYPES["b64"])
RETURN = Register("@return", TYPES["b32"])
DEPTH = Register("@depth", TYPES["b32"])
WIDE = Register("@wide", TYPES["b64"])
INDEX = Register("@index", TYPES["b32"])
COPIES = {bits: Register(f"@copy{bits}", TYPES[f"b{bits}"]) for bits in (8, 16, 32, 64)}
"""Registers that no text can name: where the stack ends and the current frame begins, the number of
the call to go back to, how many calls deep the thread is; and what copies go through."""

REGISTERS = (TOP, FRAME, RETURN, DEPTH, WIDE, INDEX, *COPIES.values())

LINK_BYTES = 16
"""At the end of a frame: the caller's frame, and the number of the call."""

ALIGNMENT = 16

DEFAULT_ALIGNMENT = 8
"""Of `alloca` where it asks for none (PTX ISA, alloca)."""


@dataclass(frozen=True)
class Kept:
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
class Part:
    """A function that is not inlined, or the kernel, on its way into the program."""

    function: Function
    flat: Flat = field(default_factory=Flat)
    kept: list[Kept] = field(default_factory=list[Kept])


def entry_label(name: str) -> str:
    return f"entry@{name}"


def end_label(name: str) -> str:
    return f"end@{name}"


def return_label(number: int) -> str:
    return f"back@{number}"


def made(opcode: str, *operands: Operand, like: Instruction) -> Instruction:
    """An instruction at the place of another."""
    return replace(like, operation=decode(opcode), operands=operands, guard=None)


class Code:
    """Adds hidden instructions to a list, all at the place of one instruction."""

    def __init__(self, flat: Flat, like: Instruction, site: Site) -> None:
        self.flat, self.like, self.site = flat, like, site

    def do(self, opcode: str, *operands: Operand) -> None:
        self.flat.add(made(opcode, *operands, like=self.like), self.site, hidden=True)

    def touch(self, opcode: str, *operands: Operand) -> None:
        """The same for what reaches the stack."""
        one = made(opcode, *operands, like=self.like)
        self.flat.add(one, self.site, hidden=True, private=True)

    def load(self, register: Register, base: Register, offset: int) -> None:
        """A register from the stack."""
        if register.type.bits == 1:
            self.load(COPIES[32], base, offset)
            self.do("setp.ne.u32", register, COPIES[32], Immediate(0))
        else:
            self.touch(f"ld.local.b{register.type.bits}", register, Address(base, offset))

    def store(self, base: Register, offset: int, value: Operand, bits: int) -> None:
        """A value of so many bits to the stack."""
        if bits == 1:
            self.do("selp.b32", COPIES[32], Immediate(1), Immediate(0), value)
            value, bits = COPIES[32], 32
        self.touch(f"st.local.b{bits}", Address(base, offset), value)


# ---- the caller ---------------------------------------------------------------------------------


def slots(shape: Function | Prototype) -> tuple[list[int], list[int], int]:
    """Where in a frame the parameters and the results stand, and the bytes that they take."""
    places: list[int] = []
    end = 0
    for formal in (*shape.parameters, *shape.returns):
        # By size alone, for the alignment that a prototype declares may differ from the function's.
        start = aligned(end, 4 if formal.size <= 4 else 8 if formal.size <= 8 else ALIGNMENT)
        places.append(start)
        end = start + max(4, formal.size)
    count = len(shape.parameters)
    return places[:count], places[count:], end


def keep_call(
    part: Part, call: Instruction, site: Site, number: int, shape: Function | Prototype, to: Reach
) -> None:
    """Add a call that is not inlined; `shape` says what it passes, `to` whom it may reach."""
    flat, code = part.flat, Code(part.flat, call, site)
    returns, target, given = call.operands[:3]
    assert isinstance(returns, Vector)
    assert isinstance(given, Vector)
    inputs, outputs, _ = slots(shape)
    for formal, actual, at in zip(shape.parameters, given.elements, inputs, strict=True):
        for offset, bits, value in _pieces(code, formal, actual):
            code.store(TOP, at + offset, value, bits)
    code.do("mov.u32", RETURN, Immediate(number))
    counted = replace(call, operands=(Vector(()), target, Vector(())), guard=None)
    flat.add(counted, site)
    if isinstance(target, Symbol):
        code.do("bra", Symbol(entry_label(target.name)))
    else:
        _choose(code, target, to)
    jump = len(flat.instructions) - 1
    flat.inside[jump] = (return_label(number), EXIT) if to.may_exit else (return_label(number),)
    flat.mark(return_label(number))
    part.kept.append(Kept(number, jump, len(flat.instructions), tuple(to.functions)))
    for formal, actual, at in zip(shape.returns, returns.elements, outputs, strict=True):
        _take(code, formal, actual, at)


@dataclass(frozen=True)
class Reach:
    """Whom a call may reach: the functions with their numbers (`CallGraph.number`), and whether a
    thread may end in one of them."""

    functions: Mapping[str, int]
    may_exit: bool


def _choose(code: Code, target: Operand, to: Reach) -> None:
    """Jump to the function whose address a register holds: the address becomes an index. What is
    not a multiple of the step becomes a large one, which a table of functions does not have."""
    shift = FUNCTION_STEP.bit_length() - 1
    code.do("sub.u64", WIDE, target, Immediate(FUNCTION_BASE))
    code.do("shl.b64", COPIES[64], WIDE, Immediate(64 - shift))
    code.do("shr.u64", WIDE, WIDE, Immediate(shift))
    code.do("or.b64", WIDE, WIDE, COPIES[64])
    code.do("min.u64", WIDE, WIDE, Immediate(0xFFFFFFFF))
    code.do("cvt.u32.u64", INDEX, WIDE)
    known = {number: Symbol(entry_label(name)) for name, number in to.functions.items()}
    table = tuple(known.get(number, Sink()) for number in range(max(known, default=0) + 1))
    code.do("brx.idx", INDEX, Vector(table))


def _pieces(code: Code, formal: Variable, actual: Operand) -> Iterator[tuple[int, int, Operand]]:
    """What is passed for a parameter, piece by piece: its offset, its bits, its value."""
    if not isinstance(actual, Symbol):
        yield 0, max(8, formal.type.bits), actual
        return
    for offset, size in chunks(formal):
        register = COPIES[8 * size]
        code.do(f"ld.param.b{8 * size}", register, Address(actual, offset))
        yield offset, 8 * size, register


def _take(code: Code, formal: Variable, actual: Operand, at: int) -> None:
    """Put a result where the caller wants it."""
    if isinstance(actual, Register):
        code.load(actual, TOP, at)
    elif isinstance(actual, Symbol):
        for offset, size in chunks(formal):
            register = COPIES[8 * size]
            code.load(register, TOP, at + offset)
            code.do(f"st.param.b{8 * size}", Address(actual, offset), register)


def chunks(variable: Variable) -> Iterator[tuple[int, int]]:
    """A variable cut into pieces of 1 to 8 bytes that its alignment allows: offsets, sizes."""
    offset = 0
    while offset < variable.size:
        size = min(8, variable.alignment)
        while offset % size or offset + size > variable.size:
            size //= 2
        yield offset, size
        offset += size


# ---- the function -------------------------------------------------------------------------------


def assemble(kernel: Part, functions: Iterable[Part], stack_bytes: int, reached: Reached) -> Flat:
    """The whole program: the kernel, and behind it the functions that it calls."""
    parts = [*functions]
    whole = Flat()
    first = kernel.flat.instructions[0]
    start = Code(whole, first, kernel.flat.sites[0])
    whole.variables.update(kernel.flat.variables)
    start.do("mov.u64", TOP, Symbol(STACK))
    _append(whole, kernel.flat)
    if parts:
        last = Code(whole, kernel.flat.instructions[-1], kernel.flat.sites[-1])
        last.do("exit")
    calls = [kept for part in (kernel, *parts) for kept in part.kept]
    for part in parts:
        _append_function(whole, part, calls, reached)
    whole.mark(EXIT)
    whole.registers.extend(REGISTERS)
    whole.depth = DEPTH if parts else None
    whole.variables[STACK] = Variable(
        STACK, Space.LOCAL, TYPES["b8"], (aligned(stack_bytes, ALIGNMENT),), align=ALIGNMENT
    )
    return whole


Reached = Callable[[str], frozenset[str]]
"""By the name of a function, those that it can come to call."""


def _append(whole: Flat, flat: Flat) -> None:
    """Add one list behind another."""
    shift = len(whole.instructions)
    whole.instructions += flat.instructions
    whole.sites += flat.sites
    whole.labels |= {label: at + shift for label, at in flat.labels.items()}
    whole.hidden |= {at + shift for at in flat.hidden}
    whole.private |= {at + shift for at in flat.private}
    whole.inside |= {at + shift: labels for at, labels in flat.inside.items()}
    whole.registers += flat.registers


def _append_function(whole: Flat, part: Part, calls: Sequence[Kept], reached: Reached) -> None:
    """Add a function: its entry, its body, its way back."""
    function = part.function
    inputs, outputs, end = slots(function)
    places, end = _own_places(part, inputs, outputs, end)
    saved, end = _saved(part, end, reached)
    size = aligned(end + LINK_BYTES, ALIGNMENT)
    like, site = _place_of(part)
    whole.mark(entry_label(function.name))
    code = Code(whole, like, site)
    code.store(TOP, size - 16, FRAME, 64)
    code.store(TOP, size - 8, RETURN, 32)
    code.do("mov.b64", FRAME, TOP)
    code.do("add.u64", TOP, TOP, Immediate(size))
    code.do("add.u32", DEPTH, DEPTH, Immediate(1))
    for formal, at in zip(function.parameters, inputs, strict=True):
        if formal.space is Space.REG:
            code.load(own_register(formal, function), FRAME, at)
    _append(whole, _rewritten(part, places, saved))
    whole.variables |= {n: v for n, v in part.flat.variables.items() if n not in places}
    whole.mark(end_label(function.name))
    for formal, at in zip(function.returns, outputs, strict=True):
        if formal.space is Space.REG:
            code.store(FRAME, at, own_register(formal, function), formal.type.bits)
    code.do("mov.b64", TOP, FRAME)
    code.load(RETURN, TOP, size - 8)
    code.load(FRAME, TOP, size - 16)
    code.do("sub.u32", DEPTH, DEPTH, Immediate(1))
    ways = {kept.number: Symbol(kept.label) for kept in calls if function.name in kept.callees}
    table = tuple(ways.get(number, Sink()) for number in range(max(ways, default=0) + 1))
    code.do("brx.idx", RETURN, Vector(table))
    whole.inside[len(whole.instructions) - 1] = (EXIT,)


def _place_of(part: Part) -> tuple[Instruction, Site]:
    """Where the code at a function's entry and end says that it is from: its first instruction."""
    if part.flat.instructions:
        return part.flat.instructions[0], part.flat.sites[0]
    return Instruction(decode("ret"), (), span=part.function.span), Site(part.function.name, 0)


def own_register(formal: Variable, function: Function) -> Register:
    """The register that a parameter in a register is, inside of its function."""
    return Register(f"{formal.name}@{function.name}", formal.type)


def _own_places(
    part: Part, inputs: Sequence[int], outputs: Sequence[int], end: int
) -> tuple[dict[str, int], int]:
    """Where in the frame a function's variables stand, and where those end."""
    function = part.function
    formals = zip((*function.parameters, *function.returns), (*inputs, *outputs), strict=True)
    places = {f"{formal.name}@{function.name}": at for formal, at in formals}
    for name, variable in part.flat.variables.items():
        if name not in places and variable.space in (Space.LOCAL, Space.PARAM):
            start = aligned(end, min(ALIGNMENT, variable.alignment))
            places[name] = start
            end = start + variable.size
    return places, end


def _saved(
    part: Part, end: int, reached: Reached
) -> tuple[dict[int, list[tuple[Register, int]]], int]:
    """By the number of a call, the registers that it must keep and where: those that are read
    behind it, if it may lead back into this function."""
    name, flat = part.function.name, part.flat
    again = [
        kept
        for kept in part.kept
        if any(name == callee or name in reached(callee) for callee in kept.callees)
    ]
    if not again:
        return {}, end
    ends = dict.fromkeys((EXIT, end_label(name)), len(flat.instructions))
    blocks, targets = cut(flat.instructions, flat.labels | ends, flat.inside)
    live = live_in(flat.instructions, blocks, (*flat.registers, *REGISTERS))
    places: dict[Register, int] = {}
    saved: dict[int, list[tuple[Register, int]]] = {}
    for kept in again:
        block = targets[kept.label]
        needed = live[block].difference(REGISTERS) if block < len(blocks) else ()
        needed = sorted(needed, key=lambda r: r.name)
        for register in needed:
            if register not in places:
                size = max(4, register.type.bits // 8)
                places[register] = end = aligned(end, size)
                end += size
        saved[kept.number] = [(register, places[register]) for register in needed]
    return saved, end


def _rewritten(
    part: Part, places: Mapping[str, int], saved: Mapping[int, list[tuple[Register, int]]]
) -> Flat:
    """A function's body with its variables on the stack and its registers kept over calls."""
    old, new = part.flat, Flat(registers=part.flat.registers)
    marks: dict[int, list[str]] = {}
    for label, at in old.labels.items():
        marks.setdefault(at, []).append(label)
    jumps = {kept.jump: saved.get(kept.number, []) for kept in part.kept}
    backs = {kept.back: (saved.get(kept.number, []), kept.jump) for kept in part.kept}
    for at in range(len(old.instructions) + 1):
        for label in marks.get(at, ()):
            new.mark(label)
        if at in backs:
            code = Code(new, old.instructions[backs[at][1]], old.sites[backs[at][1]])
            for register, offset in backs[at][0]:
                code.load(register, FRAME, offset)
        if at == len(old.instructions):
            break
        for register, offset in jumps.get(at, ()):
            Code(new, old.instructions[at], old.sites[at]).store(
                FRAME, offset, register, register.type.bits
            )
        _add_rewritten(new, old, at, places)
    return new


def _add_rewritten(new: Flat, old: Flat, at: int, places: Mapping[str, int]) -> None:
    """One instruction, with what it names on the stack."""
    instruction, site = old.instructions[at], old.sites[at]
    hidden, private = at in old.hidden, at in old.private
    operands: list[Operand] = []
    operation = instruction.operation
    for operand in instruction.operands:
        match operand:
            case Address(Symbol(name) as base) if name in places:
                operands.append(Address(FRAME, places[name] + base.offset + operand.offset))
                if operation.modifiers["space"] != "local":
                    space = f".{operation.modifiers['space']}"
                    operation, private = decode(operation.text.replace(space, ".local")), True
            case Symbol(name) if name in places:
                whole = Immediate(places[name] + operand.offset)
                Code(new, instruction, site).do("add.u64", WIDE, FRAME, whole)
                operands.append(WIDE)
            case _:
                operands.append(operand)
    one = replace(instruction, operation=operation, operands=tuple(operands))
    if at in old.inside:
        new.inside[len(new.instructions)] = old.inside[at]
    new.add(one, site, hidden=hidden, private=private)


# ---- stack memory -------------------------------------------------------------------------------


def stack_instruction(flat: Flat, like: Instruction, site: Site) -> None:
    """`alloca`, `stacksave` or `stackrestore`: the stack ends elsewhere, or says where it ends."""
    code, first = Code(flat, like, site), like.operands[0]
    move = decode("mov.b64")
    if like.operation.name == "stackrestore":
        flat.add(replace(like, operation=move, operands=(TOP, first)), site)
        return
    if like.operation.name == "stacksave":
        flat.add(replace(like, operation=move, operands=(first, TOP)), site)
        return
    size, *alignment = like.operands[1:]
    for asked in alignment or (Immediate(DEFAULT_ALIGNMENT),):
        assert isinstance(asked, Immediate)
        _align_top(code, asked.value)
    flat.add(replace(like, operation=move, operands=(first, TOP)), site)
    code.do("add.u64", TOP, TOP, size)
    _align_top(code, ALIGNMENT)
    code.touch("ld.local.b8", COPIES[8], Address(TOP, -1))


def _align_top(code: Code, alignment: int) -> None:
    code.do("add.u64", TOP, TOP, Immediate(alignment - 1))
    code.do("and.b64", TOP, TOP, Immediate(-alignment))


STACK_NAMES = frozenset({"alloca", "stacksave", "stackrestore"})


def uses_stack(function: Function) -> bool:
    """Whether a function takes memory that its end gives back."""
    return any(i.operation.name == "alloca" for i in function.instructions)


def aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
