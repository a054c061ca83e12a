"""Looks up what a name in an expression denotes, at the position of a thread."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warploom.core.lazy import cached_property
from warploom.core.mangled import read_symbol, variable_name
from warploom.core.source_files import read_source
from warploom.debug.dwarf import Debugged, Located, Scope, Variable, read_debug_info
from warploom.debug.reaching_definitions import ReachingDefinitions
from warploom.debug.scene import EvaluationError, Place, Thread, UnknownName
from warploom.debug.shared_arrays import array_type, declared_arrays
from warploom.debug.source_types import type_of
from warploom.debug.types import BYTE, UNSIGNED, Arithmetic, Array, Type, type_of_register
from warploom.debug.values import Value
from warploom.host.loaded import LoadedKernel
from warploom.host.programs.signatures import Parameter, signature_of
from warploom.isa.instruction import Space
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.program.frames import SourceFrame
from warploom.ptx.module import Variable as PtxVariable

OPTIMISED_OUT = "optimized out"

REENTERED = "unavailable: a deeper call of this function uses the same registers"
"""Why a variable of an outer frame of a recursive function has no value."""

_BUILTIN = {
    "threadIdx": "%tid",
    "blockIdx": "%ctaid",
    "blockDim": "%ntid",
    "gridDim": "%nctaid",
}


class Names:
    """The names of one kernel."""

    def __init__(self, kernel: LoadedKernel) -> None:
        self._kernel, self._program = kernel, kernel.program
        self._definitions = ReachingDefinitions(kernel.program)

    # ---- variables ------------------------------------------------------------------------------

    def variables(self, thread: Thread, frame: SourceFrame) -> list[tuple[str, Value | str]]:
        """Returns the variables of a frame, parameters first, the innermost block last: each with
        its value, or why it has none."""
        found: dict[str, Value | str] = {}
        debugged = self._debugged(thread)
        for scope in self._scopes(debugged, frame):
            for variable in sorted(scope.variables, key=lambda v: not v.is_parameter):
                found.pop(variable.name, None)
                value = self._value(variable, debugged, thread, frame)
                found[variable.name] = REENTERED if frame.reentered else value
        if not found and frame.symbol == self._program.name and not frame.depth:
            found |= dict(self._parameters(thread))
        for name, value in self._shared(thread):
            found.setdefault(name, value)
        return list(found.items())

    def find(self, name: str, thread: Thread, frame: SourceFrame | None) -> Value:
        """Returns what a name stands for; without a frame, in none of the kernel's functions.
        Raises EvaluationError where it is nothing."""
        if frame is None:
            return self._outside(name, thread)
        if name[0] in "$%":
            if frame.reentered:
                raise EvaluationError(f"{name} is {REENTERED}")
            return self._register(name, thread, frame)
        if name in _BUILTIN or name in ("warpSize", "laneId", "warpId"):
            return _builtin(name, thread)
        for known, value in reversed(self.variables(thread, frame)):
            if known == name:
                if value == REENTERED:
                    raise EvaluationError(f"{name} is {value}")
                if isinstance(value, str):
                    raise EvaluationError(f"{name} is {value} here; compile with -G to see it")
                return value
        outside = self._global(name, thread)
        if outside is not None:
            return outside
        variables = ", ".join(dict(self.variables(thread, frame))) or "none"
        message = f"there is no {name} in {frame.function}, which has these variables: {variables}"
        if not self._scopes(self._debugged(thread), frame):
            message += (
                ". There is no debug information for local variables: compile with -G to see them"
            )
        raise UnknownName(message)

    def _outside(self, name: str, thread: Thread) -> Value:
        found = self._global(name, thread)
        if found is None:
            raise EvaluationError(f"no thread is running, and there is no buffer {name}")
        return found

    def _global(self, name: str, thread: Thread) -> Value | None:
        """Returns a parameter, a variable of the module or a buffer of that name."""
        for known, value in (*self._parameters(thread), *self._module(thread)):
            if known == name:
                return value
        return self._buffer(name, thread)

    # ---- debug information ----------------------------------------------------------------------

    def _debugged(self, thread: Thread) -> Debugged:
        made = self._program.instructions[max(0, thread.warp.next)]
        return read_debug_info(made.span.text.content or self._program.module.text)

    def _scopes(self, debugged: Debugged, frame: SourceFrame) -> list[Scope]:
        """Returns the scopes of a frame, the outermost first: of copies of inlined functions around
        its line, as many as it is deep."""
        every = debugged.at(frame.text_line)
        starts = [0, *(i for i, scope in enumerate(every) if scope.inlined), len(every)]
        if frame.depth + 1 >= len(starts):
            return every if not frame.depth else []
        return every[starts[frame.depth] : starts[frame.depth + 1]]

    def _value(
        self, variable: Variable, debugged: Debugged, thread: Thread, frame: SourceFrame
    ) -> Value | str:
        type = variable.type
        if type is None:
            return "its type is not described in the debug information"
        if variable.constant is not None:
            size = type.size
            return Value(type, (variable.constant % (1 << 8 * size)).to_bytes(size, "little"))
        holds = [at for at in variable.locations if at.start <= frame.text_line < at.end]
        if not holds:
            return OPTIMISED_OUT
        try:
            found = self._located(holds[0], variable, type, debugged, thread, frame)
            return found.chosen(thread)
        except (EvaluationError, KeyError, IndexError) as reason:
            return str(reason)

    def _located(
        self,
        located: Located,
        variable: Variable,
        type: Type,
        debugged: Debugged,
        thread: Thread,
        frame: SourceFrame,
    ) -> Value:
        """Returns the value at a location (DWARF, "Location Descriptions")."""
        stack: list[int | Place] = []
        for operation in located.operations:
            name, given = operation.name, operation.arguments
            match name:
                case "DW_OP_regx":
                    return self._in_register(_register_name(given[0]) + frame.suffix, type, thread)
                case "DW_OP_addr":
                    symbol = debugged.symbols[given[0] >> 32 << 32]
                    place = self._symbol(symbol, frame.suffix, thread)
                    stack.append(place.moved(given[0] & 0xFFFFFFFF))
                case "DW_OP_plus_uconst":
                    stack.append(_moved(stack.pop(), given[0]))
                case "DW_OP_bregx":
                    base = thread.register(_register_name(given[0]) + frame.suffix) or 0
                    stack.append(base + given[1])
                case "DW_OP_deref":
                    at = _place(stack.pop())
                    stack.append(int.from_bytes(thread.read(at, 8), "little"))
                case "DW_OP_stack_value":
                    number = stack.pop()
                    assert isinstance(number, int)
                    data = (number % (1 << 8 * type.size)).to_bytes(type.size, "little")
                    return Value(type, data)
                case _ if name.startswith("DW_OP_lit"):
                    stack.append(int(name.removeprefix("DW_OP_lit")))
                case _ if name.startswith("DW_OP_const"):
                    stack.append(given[0])
                case _:
                    raise EvaluationError(f"its location uses {name}, which is not supported")
        return Value(type, place=_place(stack.pop(), variable.space))

    def _in_register(self, name: str, type: Type, thread: Thread) -> Value:
        bits = thread.register(name)
        if bits is None:
            raise EvaluationError(f"the program has no register {name}")
        if not self._definitions.may_be_written(name, thread.warp.next):
            raise EvaluationError("not set yet")
        data = (bits % (1 << 8 * type.size)).to_bytes(type.size, "little")
        return Value(type, data, register=name)

    def _symbol(self, symbol: str, suffix: str, thread: Thread) -> Place:
        """Returns the location of a PTX variable, in a copy of a function if it is its own
        there."""
        function = suffix.removeprefix("@")
        names = (symbol + suffix, f"{symbol}@{function}", symbol)
        for name in names:
            place = self._program.slots.get(name)
            if place is not None:
                return self._at(name, thread)
        raise EvaluationError(f"the program has no variable {symbol}")

    def _at(self, name: str, thread: Thread) -> Place:
        place = self._program.slots[name]
        if place.space in (Space.GLOBAL, Space.CONST):
            return Place(Space.GLOBAL, thread.launch.globals[place.offset])
        return Place(place.space, place.offset)

    # ---- without debug information --------------------------------------------------------------

    @cached_property
    def _declared(self) -> tuple[tuple[PtxVariable, Parameter], ...]:
        kernel = self._kernel
        parameters = kernel.function.parameters
        text = self._program.module.text
        declared = signature_of(kernel.name, parameters, self._source, text)
        return tuple(zip(parameters, declared, strict=True))

    def _parameters(self, thread: Thread) -> Iterator[tuple[str, Value]]:
        """Yields the kernel's parameters, by their names in its source or in PTX."""
        for number, (parameter, declared) in enumerate(self._declared):
            place = self._program.slots[parameter.name]
            type = type_of(declared.type) if declared.type else None
            if type is None or type.size != parameter.size:
                type = _of_ptx(parameter)
            name = declared.name or f"arg{number}"
            yield name, Value(type, place=Place(Space.PARAM, place.offset))

    def _shared(self, thread: Thread) -> Iterator[tuple[str, Value]]:
        """Yields the shared variables that the program declares."""
        source = declared_arrays(self._own_source, self._source)
        for symbol, place in self._program.slots.items():
            if place.space is Space.SHARED:
                name = variable_name(symbol)
                size = place.size or thread.launch.dynamic_shared_bytes
                type = array_type(source[name], size) if name in source else None
                yield name, Value(type or Array(BYTE, size), place=self._at(symbol, thread))

    @cached_property
    def _source(self) -> str:
        """Returns the source of the kernel: as it was compiled, else the file that its first line
        is in."""
        content, location = self._kernel.source.content, self._program.instructions[0].location
        if location is None or (content and content != self._program.module.text):
            return content
        return read_source(location.written.file) or ""

    @cached_property
    def _own_source(self) -> str:
        """Returns the source from the kernel's name up to that of the next kernel."""
        text = self._source
        name = read_symbol(self._kernel.name).name.partition("<")[0].rpartition("::")[2]
        found = re.search(rf"\b{re.escape(name)}\s*\(", text)
        rest = text[found.end() :] if found else text
        return rest.partition("__global__")[0]

    def _module(self, thread: Thread) -> Iterator[tuple[str, Value]]:
        """Yields the variables of the module."""
        debugged = self._debugged(thread)
        types = {v.name: v.type for v in debugged.variables if v.type is not None}
        for symbol in self._program.globals:
            name = variable_name(symbol)
            if symbol in self._program.slots:
                size = self._program.slots[symbol].size
                yield (
                    name,
                    Value(types.get(name) or Array(BYTE, size), place=self._at(symbol, thread)),
                )

    def _buffer(self, name: str, thread: Thread) -> Value | None:
        for allocation in thread.warp.run.memory.live():
            if name in (allocation.name, allocation.name.replace(" ", "_")):
                place = Place(Space.GLOBAL, allocation.address)
                return Value(Array(BYTE, allocation.size), place=place)
        return None

    def _register(self, name: str, thread: Thread, frame: SourceFrame) -> Value:
        """Returns a register: `$r1` or `%r1`, of the copy of the function in which the thread is;
        special registers; `$pc`."""
        plain = f"%{name[1:]}"
        if name == "$pc":
            return _number(thread.warp.next, UNSIGNED)
        for known in (plain + frame.suffix, plain, name[1:] + frame.suffix, name[1:]):
            for register in self._program.registers:
                if register.name == known:
                    bits = thread.register(known) or 0
                    type = type_of_register(register.type)
                    return Value(type, bits.to_bytes(type.size, "little"), register=known)
        if plain in SPECIAL_REGISTERS:
            return _number(thread.special(plain), type_of_register(SPECIAL_REGISTERS[plain].type))
        raise EvaluationError(f"there is no register {plain}; `info registers` lists the registers")


def _of_ptx(parameter: PtxVariable) -> Type:
    whole = type_of_register(parameter.type)
    count = parameter.size // max(1, whole.size)
    return whole if count == 1 and not parameter.shape else Array(whole, count)


def _builtin(name: str, thread: Thread) -> Value:
    """Returns a variable that CUDA C++ defines: of three parts, or a number."""
    from warploom.debug.types import INT, Member, Structure

    if name not in _BUILTIN:
        numbers = {
            "warpSize": thread.warp.size,
            "laneId": thread.lane,
            "warpId": thread.warp.number,
        }
        return _number(numbers[name], INT)
    members = tuple(Member(part, UNSIGNED, 4 * i) for i, part in enumerate("xyz"))
    values = (thread.special(f"{_BUILTIN[name]}.{part}") for part in "xyz")
    data = b"".join(value.to_bytes(4, "little") for value in values)
    return Value(Structure("uint3", 12, members), data)


def _number(number: int, type: Arithmetic) -> Value:
    return Value(type, type.data(number))


def _register_name(number: int) -> str:
    """Returns the register that a number in DWARF names by its bytes."""
    size = (number.bit_length() + 7) // 8
    return number.to_bytes(size, "big").decode("ascii")


def _moved(at: int | Place, offset: int) -> int | Place:
    return at.moved(offset) if isinstance(at, Place) else at + offset


def _place(at: int | Place, space: Space | None = None) -> Place:
    if isinstance(at, Place):
        return at
    return Place(space or Space.GENERIC, at)
