"""Puts the functions that a kernel calls into the kernel, so that one list of instructions is left.

The `call` stays in front of the body that it brings in: it is issued and counted and does nothing.
A `ret` of the callee becomes a branch behind that body. What the callee declares is renamed for
each call ("%r1@3"), except for static variables, of which there is one ("s@callee"). A `.param`
variable that is passed becomes the callee's parameter; any other argument is copied into it.
Source: PTX ISA, "Abstracting the ABI: Function Declarations and Definitions".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from warploom.analysis.program import Site
from warploom.analysis.rename import Renaming
from warploom.analysis.services import service_function
from warploom.core.errors import UnsupportedInstruction
from warploom.core.source import Span
from warploom.core.types import TYPES
from warploom.isa.spec import decode
from warploom.ptx.ir import (
    Address,
    Function,
    Guard,
    Instruction,
    Label,
    Module,
    Operand,
    Register,
    Space,
    Symbol,
    Targets,
    Variable,
    Vector,
)
from warploom.ptx.lexer import source_line

STATIC = (Space.SHARED, Space.GLOBAL, Space.CONST)


@dataclass
class Flat:
    """A kernel without calls. `labels` say before which instruction each label stands;
    `variables` are those of the kernel and of what it calls, without the kernel's parameters."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    sites: list[Site] = field(default_factory=list[Site])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    registers: list[Register] = field(default_factory=list[Register])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])

    def add(self, instruction: Instruction, site: Site) -> None:
        self.instructions.append(instruction)
        self.sites.append(site)

    def mark(self, label: str) -> None:
        """Put a label before the next instruction."""
        self.labels[label] = len(self.instructions)


@dataclass(frozen=True)
class _Frame:
    """A function on its way into the kernel; `end` is the label behind it, None for the kernel."""

    function: Function
    renaming: Renaming
    running: tuple[str, ...]
    end: str | None


def flatten(module: Module, kernel: Function) -> Flat:
    """The kernel with everything it calls in place.

    Raises UnsupportedInstruction for a call that cannot be followed: of a function without a body,
    through a register, or of a function that is already running.
    """
    inliner = _Inliner(module)
    inliner.body(_Frame(kernel, Renaming(), (kernel.name,), None))
    return inliner.flat


class _Inliner:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.flat = Flat()
        self.calls = 0
        self.module_names = {v.name for v in module.variables}

    def body(self, frame: _Frame) -> None:
        """Add a function's declarations and instructions."""
        self._declare(frame)
        index = 0
        for statement in frame.function.body or ():
            if isinstance(statement, Label):
                self.flat.mark(frame.renaming.name(statement.name))
            elif isinstance(statement, Instruction):
                made = frame.renaming.instruction(with_targets(statement, frame.function))
                self._instruction(made, Site(frame.function.name, index), frame)
                index += 1

    def _declare(self, frame: _Frame) -> None:
        """Give what the function declares its names here."""
        renaming = frame.renaming
        self.flat.registers.extend(renaming.register(r) for r in frame.function.registers)
        for statement in frame.function.body or ():
            if isinstance(statement, Label):
                renaming.names[statement.name] = statement.name + renaming.suffix
            elif isinstance(statement, Variable):
                name = self._variable_name(frame.function, statement, renaming.suffix)
                renaming.names[statement.name] = name
                self.flat.variables[name] = replace(statement, name=name)

    def _variable_name(self, function: Function, variable: Variable, suffix: str) -> str:
        if variable.space in STATIC and (suffix or variable.name in self.module_names):
            return f"{variable.name}@{function.name}"
        return variable.name + suffix

    def _instruction(self, made: Instruction, site: Site, frame: _Frame) -> None:
        if made.operation.name == "call":
            self._call(made, site, frame)
        elif made.operation.name == "ret" and frame.end is not None:
            self.flat.add(_branch(made, frame.end), site)
        else:
            self.flat.add(made, site)

    def _call(self, call: Instruction, site: Site, caller: _Frame) -> None:
        service = service_function(self.module, call)
        if service is not None:
            self._service(call, service, site)
            return
        callee = self._callee(call, caller.running)
        self.calls += 1
        suffix = f"@{self.calls}"
        end = f"return{suffix}"
        if call.guard is not None:
            around = Guard(call.guard.register, not call.guard.negated)
            self.flat.add(_branch(replace(call, guard=around), end), site)
        call = replace(call, guard=None)
        renaming = Renaming(suffix)
        arguments = self._bind(call, callee.parameters, call.operands[2], renaming)
        results = self._bind(call, callee.returns, call.operands[0], renaming)
        self.flat.add(replace(call, operands=(Vector(()), call.operands[1], Vector(()))), site)
        for formal, actual in arguments:
            self.flat.add(_copy_in(call, formal, actual), site)
        running = (*caller.running, callee.name)
        self.body(_Frame(callee, renaming, running, end))
        self.flat.mark(end)
        for formal, actual in results:
            self.flat.add(_copy_out(call, formal, actual), site)

    def _service(self, call: Instruction, service: Function, site: Site) -> None:
        """A call that the machine answers: its arguments and results go through registers."""
        self.calls += 1
        returns, target, given = call.operands[:3]
        assert isinstance(returns, Vector)
        assert isinstance(given, Vector)
        arguments: list[Operand] = []
        for formal, actual in zip(service.parameters, given.elements, strict=True):
            if isinstance(actual, Symbol):
                register = self._register(formal)
                load = decode(f"ld.param.{register.type.name}")
                self.flat.add(
                    replace(call, operation=load, operands=(register, Address(actual))), site
                )
                actual = register
            arguments.append(actual)
        results = [
            self._register(formal) if isinstance(actual, Symbol) else actual
            for formal, actual in zip(service.returns, returns.elements, strict=True)
        ]
        operands = (Vector(tuple(results)), target, Vector(tuple(arguments)))
        self.flat.add(replace(call, operands=operands), site)
        for register, actual in zip(results, returns.elements, strict=True):
            if isinstance(actual, Symbol) and isinstance(register, Register):
                store = decode(f"st.param.{register.type.name}")
                self.flat.add(
                    replace(call, operation=store, operands=(Address(actual), register)), site
                )

    def _register(self, formal: Variable) -> Register:
        """A new register for what a service takes or gives."""
        made = Register(f"{formal.name}@{self.calls}", TYPES[f"b{formal.type.bits}"])
        self.flat.registers.append(made)
        return made

    def _callee(self, call: Instruction, running: tuple[str, ...]) -> Function:
        """The function that a call brings in."""
        target = call.operands[1]
        if not isinstance(target, Symbol):
            raise self._error("calls through a register are not supported", target.span)
        callee = self.module.function(target.name)
        if callee is None:
            raise self._error(f"`{target.name}` is not a function", target.span)
        if callee.body is None:
            message = (
                f"`{target.name}` has no body in this module, and Warploom does not provide it;"
                f" itself; give it a body here, or link the module that has it"
            )
            raise self._error(message, target.span)
        if callee.name in running:
            chain = " -> ".join((*running[running.index(callee.name) :], callee.name))
            message = f"recursion is not supported ({chain}); write it as a loop"
            raise self._error(message, target.span)
        return callee

    def _bind(
        self, call: Instruction, formals: Iterable[Variable], given: Operand, renaming: Renaming
    ) -> list[tuple[Variable, Operand]]:
        """Connect parameters with what is passed; gives the pairs that have to be copied."""
        assert isinstance(given, Vector)
        wanted = tuple(formals)
        if len(wanted) != len(given.elements):
            message = f"the function takes {len(wanted)} here, the call gives {len(given.elements)}"
            raise self._error(message, call.span)
        copied: list[tuple[Variable, Operand]] = []
        for formal, actual in zip(wanted, given.elements, strict=True):
            if formal.space is Space.PARAM and isinstance(actual, Symbol):
                renaming.names[formal.name] = actual.name
                continue
            own = replace(formal, name=formal.name + renaming.suffix)
            renaming.names[formal.name] = own.name
            if formal.space is Space.PARAM:
                self.flat.variables[own.name] = own
            copied.append((own, actual))
        return copied

    def _error(self, message: str, span: Span) -> UnsupportedInstruction:
        line = source_line(self.module.text, span.line)
        return UnsupportedInstruction(message, span, line, self.module.name)


def _branch(origin: Instruction, label: str) -> Instruction:
    """A branch under the guard and at the place of `origin`."""
    return replace(origin, operation=decode("bra"), operands=(Symbol(label),))


def with_targets(made: Instruction, function: Function) -> Instruction:
    """An indexed branch with its targets in place of the name of their list."""
    if made.operation.name != "brx":
        return made
    index, name = made.operands
    assert isinstance(name, Symbol)
    lists = (s for s in function.body or () if isinstance(s, Targets) and s.name == name.name)
    labels = tuple(Symbol(label, span=name.span) for label in next(lists).names)
    return replace(made, operands=(index, Vector(labels, name.span)))


def _copy_in(call: Instruction, formal: Variable, actual: Operand) -> Instruction:
    """Puts an argument into a parameter that is not a variable of the caller."""
    if formal.space is Space.PARAM:
        operation = decode(f"st.param.{formal.type.name}")
        return replace(call, operation=operation, operands=(Address(Symbol(formal.name)), actual))
    return _move(call, formal, Register(formal.name, formal.type), actual)


def _copy_out(call: Instruction, formal: Variable, actual: Operand) -> Instruction:
    """Takes a result from a parameter that is not a variable of the caller."""
    if formal.space is Space.PARAM:
        operation = decode(f"ld.param.{formal.type.name}")
        return replace(call, operation=operation, operands=(actual, Address(Symbol(formal.name))))
    return _move(call, formal, actual, Register(formal.name, formal.type))


def _move(
    call: Instruction, formal: Variable, destination: Operand, source: Operand
) -> Instruction:
    kind = "pred" if formal.type.bits == 1 else f"b{max(16, formal.type.bits)}"
    return replace(call, operation=decode(f"mov.{kind}"), operands=(destination, source))
