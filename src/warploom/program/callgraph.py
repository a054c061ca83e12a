"""Builds the call graph of a module: the functions that each call may call, to find recursive
functions and the targets of indirect calls.

A recursive function cannot be inlined. A call through a register may call any function whose
address is taken and whose parameters and results have the sizes of the call's prototype.

    call f, (x);                   may call f
    call %rd1, (x), p;             p: .callprototype _ (.param .b32 _); may call each function whose
                                   address is taken and that has one parameter of 4 bytes, no result
    in f: call g; in g: call f;    f and g are recursive
"""

from __future__ import annotations

from collections.abc import Iterator

from warploom.core.lazy import cached_property
from warploom.isa.instruction import Instruction, Symbol
from warploom.isa.kinds import OpKind
from warploom.program.services import service_function
from warploom.program.uses import leaf_operands
from warploom.ptx.module import Function, Initializer, Masked, Module, Prototype, Targets, Variable

FUNCTION_BASE, FUNCTION_STEP = 0x1000, 16
"""The address of the first function, and the bytes between addresses of functions: below all
memory, even, and not 0."""


class CallGraph:
    """The calls between the functions of a module."""

    def __init__(self, module: Module) -> None:
        """Finds the functions with a body; calls are followed when they are first needed."""
        self.module = module
        self._functions = {f.name: f for f in module.functions if f.body is not None}
        self._reachable: dict[str, frozenset[str]] = {}

    @cached_property
    def number(self) -> dict[str, int]:
        """Returns the index of each function that has a body, in order of definition."""
        return {name: number for number, name in enumerate(self._functions)}

    def address(self, name: str) -> int | None:
        """Returns the address that a pointer to a function holds, FUNCTION_BASE plus FUNCTION_STEP
        times its number; None if no function with a body has that name."""
        number = self.number.get(name)
        return None if number is None else FUNCTION_BASE + FUNCTION_STEP * number

    @cached_property
    def address_taken(self) -> tuple[str, ...]:
        """Returns the functions whose address some instruction or initial value uses, in order of
        definition: the candidates of calls through registers."""
        address_taken = {
            name for variable in self._variables() for name in _symbols_in(variable.initial)
        }
        for function in self._functions.values():
            for instruction in function.instructions:
                # The first two operands of a call, its results and its callee, take no address.
                skipped = 2 if instruction.operation.kind is OpKind.CALL else 0
                for operand in instruction.operands[skipped:]:
                    address_taken |= {
                        o.name for o in leaf_operands(operand) if isinstance(o, Symbol)
                    }
        return tuple(name for name in self._functions if name in address_taken)

    def declaration_of(self, call: Instruction, caller: Function) -> Function | Prototype:
        """Returns what declares the parameters and results of a call: the callee that it names,
        which must have a body; of an indirect call its prototype, or the first function of its list
        of targets."""
        callee = call.operands[1]
        if isinstance(callee, Symbol):
            return self._functions[callee.name]
        declaration = self._declared_operand(call, caller)
        if isinstance(declaration, Prototype):
            return declaration
        return self._functions[declaration.names[0]]

    def _declared_operand(self, call: Instruction, caller: Function) -> Targets | Prototype:
        """Returns the list of targets, or the prototype, that an indirect call names as its last
        operand and the caller declares."""
        declared = call.operands[3]
        assert isinstance(declared, Symbol)
        shapes = (
            statement
            for statement in caller.body or ()
            if isinstance(statement, Targets | Prototype)
        )
        return next(shape for shape in shapes if shape.name == declared.name)

    def candidates(self, call: Instruction, caller: Function) -> tuple[Function, ...]:
        """Returns the functions with a body that a call may call: the one that it names, else those
        in its list of targets, or those whose address is taken and that fit its prototype. Empty if
        there is none."""
        callee = call.operands[1]
        if isinstance(callee, Symbol):
            target = self._functions.get(callee.name)
            return (target,) if target else ()
        declaration = self._declared_operand(call, caller)
        if isinstance(declaration, Targets):
            return tuple(self._functions[n] for n in declaration.names if n in self._functions)
        wanted = signature(declaration)
        fitting = (self._functions[name] for name in self.address_taken)
        return tuple(f for f in fitting if not f.is_entry and signature(f) == wanted)

    def reachable(self, name: str) -> frozenset[str]:
        """Returns the functions that a function can call, directly or not; itself only if it is
        recursive."""
        if name not in self._reachable:
            callees: set[str] = set()
            # Begins with the callees, not with the function itself, which is in the result only if
            # a path of calls leads back to it.
            pending = list(self.callees(name))
            while pending:
                callee = pending.pop()
                if callee not in callees:
                    callees.add(callee)
                    pending += self.callees(callee)
            self._reachable[name] = frozenset(callees)
        return self._reachable[name]

    def is_recursive(self, name: str) -> bool:
        """Returns whether a function can call itself, directly or not."""
        return name in self.reachable(name)

    def may_exit(self, name: str) -> bool:
        """Returns whether a thread may `exit` in a function or in any that it can call, directly or
        not."""
        return any(
            instruction.operation.kind is OpKind.EXIT
            for function_name in {name, *self.reachable(name)}
            for instruction in self._functions[function_name].instructions
        )

    def function(self, name: str) -> Function:
        """Returns the function of a name, which must have a body."""
        return self._functions[name]

    def direct_callees(self, name: str) -> list[str]:
        """Returns the functions with a body that a function calls by name, once for each call;
        without those that the host provides."""
        return [
            callee.name
            for instruction in self._functions[name].instructions
            if instruction.operation.kind is OpKind.CALL
            and isinstance(callee := instruction.operands[1], Symbol)
            and callee.name in self._functions
            and service_function(self.module, instruction) is None
        ]

    def callees(self, name: str) -> list[str]:
        """Returns the functions with a body that a function may call, directly or through
        registers, for each of its calls; functions that the host provides are left out."""
        function = self._functions[name]
        calls = (i for i in function.instructions if i.operation.kind is OpKind.CALL)
        return [
            callee.name
            for call in calls
            if service_function(self.module, call) is None
            for callee in self.candidates(call, function)
        ]

    def _variables(self) -> Iterator[Variable]:
        """Yields the variables of the module and of all functions with a body."""
        yield from self.module.variables
        for function in self._functions.values():
            yield from (
                statement for statement in function.body or () if isinstance(statement, Variable)
            )


def signature(shape: Function | Prototype) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the sizes in bytes of a function's parameters, and of its results."""
    return tuple(p.size for p in shape.parameters), tuple(r.size for r in shape.returns)


def _symbols_in(initial: Initializer | None) -> Iterator[str]:
    """Yields the symbols whose addresses an initial value contains, also in nested lists and masked
    ones."""
    match initial:
        case tuple():
            for item in initial:
                yield from _symbols_in(item)
        case Symbol(name) | Masked(Symbol(name)):
            yield name
        case _:
            return
