"""Inlines the functions that a kernel calls, so that one flat list of instructions remains.

The `call` stays before the inlined body: it is issued and counted, but does nothing. A `ret` of the
callee becomes a branch to the end of the body:

    call (p1), f, (p0);                ->    call f;
                                             ld.param.u32 %r1@3, [p0];
    f: ld.param.u32 %r1, [a]; ... ret;       ... bra return@3; return@3:

What the callee declares is renamed for each call ("%r1@3"), except for static variables, which all
calls share ("s@callee"). A `.param` variable that is passed replaces the callee's parameter; any
other argument is copied into it. Calls that cannot be inlined, or would make the kernel too large
(`program.inlining`), are left to `program.calls`. Source: PTX ISA, "Abstracting the ABI: Function
Declarations and Definitions".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from warploom.core.errors import UnsupportedInstruction
from warploom.core.types import TYPES
from warploom.isa.instruction import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Space,
    Symbol,
    Vector,
)
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import decode
from warploom.program import alloca, callees, calls, stack
from warploom.program.callgraph import CallGraph
from warploom.program.calls import FunctionCode
from warploom.program.flat import Flat
from warploom.program.inlining import retained_functions
from warploom.program.program import InlinedCopy, Site
from warploom.program.services import service_function
from warploom.program.warp_groups import (
    group_barrier_after,
    register_wait_after,
    requests_registers,
)
from warploom.ptx.module import Function, Label, Module, Targets, Variable
from warploom.ptx.rename import Renaming

STATIC = (Space.SHARED, Space.GLOBAL, Space.CONST)
DEVICE_LAUNCHES = ("__cudaCDP2", "cudaLaunchDevice", "cudaGetParameterBuffer")
"""How functions of the device runtime begin that launch kernels, in libcudadevrt."""


@dataclass(frozen=True)
class _Frame:
    """A function whose body is being added, with the new names of what it declares. `end` is the
    label after the body, to which its `ret` becomes a branch; the kernel has neither `end` nor
    `copy`."""

    function: Function
    renaming: Renaming
    end: str | None
    copy: InlinedCopy | None = None


def flatten(module: Module, kernel: Function, stack_bytes: int) -> Flat:
    """Returns the kernel with its calls inlined or lowered, as one list: the kernel's code alone if
    all calls are inlined and nothing uses the stack, else that of `callees.assemble`. `stack_bytes`
    is the size of a thread's stack, which calls that are not inlined and `alloca` use.

    Raises UnsupportedInstruction for a call of a name that is no function with a body, or with
    another number of arguments or results; CompileError if the kernel is too large.
    """
    inliner = _Inliner(module, kernel)
    whole_kernel = inliner.begin(kernel)
    inliner.body(_Frame(kernel, Renaming(), None))
    parts: dict[str, FunctionCode] = {}
    # Functions that are not inlined may call others that are not: until no new one is called. Each
    # stands once, however many calls it has.
    waiting = [*inliner.retained_callees()]
    while waiting:
        function = waiting.pop(0)
        if function.name not in parts:
            parts[function.name] = inliner.begin(function)
            suffix = f"@{function.name}"
            formals = (*function.parameters, *function.returns)
            renaming = Renaming(suffix, {f.name: f.name + suffix for f in formals})
            end = calls.end_label(function.name)
            inliner.body(_Frame(function, renaming, end, InlinedCopy(suffix)))
            waiting += inliner.retained_callees()
    if not whole_kernel.flat.instructions:
        _end_at_once(whole_kernel)
    if not (parts or whole_kernel.retained or inliner.has_stack):
        return whole_kernel.flat
    return callees.assemble(whole_kernel, parts.values(), stack_bytes, inliner.graph.reachable)


def _end_at_once(kernel: FunctionCode) -> None:
    """Adds to an empty kernel the `ret` that PTX implies at the end of a body, which is not
    counted."""
    function = kernel.function
    end = Instruction(decode("ret"), (), span=function.span)
    kernel.flat.add(end, Site(function.name, 0), hidden=True)


class _Inliner:
    """Emits the parts of a program in turn (`FunctionCode`): the kernel, then each function that is
    not inlined. `calls` counts calls, whose numbers make the names of copies unique; `has_stack` is
    true once an instruction that moves the stack's top was lowered."""

    def __init__(self, module: Module, kernel: Function) -> None:
        """Decides which functions are not inlined (`retained`), and begins to count calls; emits
        nothing. `module_names` are the names of module variables, from which a kernel's own static
        variables have to differ."""
        self.module = module
        self.graph = CallGraph(module)
        self.retained = retained_functions(self.graph, kernel)
        self.calls = 0
        self.has_stack = False
        self.module_names = {v.name for v in module.variables}

    def begin(self, function: Function) -> FunctionCode:
        """Begins a new part, the code of a function, which is the current one from now on; returns
        it."""
        self.function_code = FunctionCode(function)
        self.flat = self.function_code.flat
        return self.function_code

    def retained_callees(self) -> list[Function]:
        """Returns the functions that retained calls of the current part may call, which have to be
        emitted as parts of their own."""
        functions = (
            self.module.function(name)
            for retained in self.function_code.retained
            for name in retained.callees
        )
        return [function for function in functions if function is not None]

    def body(self, frame: _Frame) -> None:
        """Adds a function's declarations, labels and instructions to the current part, under the
        names of its frame; calls in it are inlined or retained."""
        self._declare(frame)
        index = 0
        for statement in frame.function.body or ():
            if isinstance(statement, Label):
                self.flat.mark(frame.renaming.name(statement.name))
            elif isinstance(statement, Instruction):
                instruction = frame.renaming.instruction(with_targets(statement, frame.function))
                site = Site(frame.function.name, index, frame.copy)
                self._instruction(instruction, site, frame)
                index += 1

    def _declare(self, frame: _Frame) -> None:
        """Adds a function's registers and variables to the current part under their new names, and
        enters the new names of variables and labels in the frame's renaming."""
        renaming = frame.renaming
        self.flat.registers.extend(renaming.register(r) for r in frame.function.registers)
        for statement in frame.function.body or ():
            if isinstance(statement, Label):
                renaming.change(statement.name, statement.name + renaming.suffix)
            elif isinstance(statement, Variable):
                name = self._variable_name(frame.function, statement, renaming.suffix)
                renaming.change(statement.name, name)
                self.flat.variables[name] = replace(statement, name=name)

    def _variable_name(self, function: Function, variable: Variable, suffix: str) -> str:
        """Returns the name of a variable in the program: of a static one, which exists once, with
        the function's name if that is a callee or a module variable has this name; of others with
        the copy's suffix."""
        if variable.space in STATIC and (suffix or variable.name in self.module_names):
            return f"{variable.name}@{function.name}"
        return variable.name + suffix

    def _instruction(self, instruction: Instruction, site: Site, frame: _Frame) -> None:
        """Adds an instruction of a function to the current part: A call is inlined or retained;
        `alloca` and its kin are lowered; the `ret` of a callee, inlined or not, becomes a branch to
        the end of its body; a wait for warp group products gets a barrier of the warp group after
        it, and a request of registers a wait for them. Others are added as they are, with addresses
        of functions as numbers."""
        if instruction.operation.kind is OpKind.CALL:
            self._call(instruction, site, frame)
        elif instruction.operation.has(Effect.MOVES_STACK):
            self.has_stack = True
            alloca.stack_instruction(self.flat, instruction, site)
        elif instruction.operation.kind is OpKind.RETURN and frame.end is not None:
            self.flat.add(_branch(instruction, frame.end), site)
        else:
            self.flat.add(self._with_addresses(instruction), site)
            if instruction.operation.kind is OpKind.GROUP_WAIT:
                # A wait of a warp group ends when all of its four warps have executed it.
                self.flat.add(group_barrier_after(instruction), site, hidden=True)
            if requests_registers(instruction):
                self.flat.add(register_wait_after(instruction), site, hidden=True)

    def _with_addresses(self, instruction: Instruction) -> Instruction:
        """Returns an instruction with operands that name functions replaced by the addresses of
        these, as numbers; branches, whose symbols are labels, stay unchanged."""
        # Most instructions name nothing: they are returned before anything is built.
        if Symbol not in map(type, instruction.operands) or instruction.operation.has(
            Effect.BRANCHES
        ):
            return instruction
        operands = tuple(
            Immediate(address)
            if isinstance(o, Symbol) and (address := self.graph.address(o.name)) is not None
            else o
            for o in instruction.operands
        )
        return replace(instruction, operands=operands)

    def _call(self, call: Instruction, site: Site, caller: _Frame) -> None:
        """Adds a call to the current part. It is a call of the host, with its guard, if the
        machines provide the function. It is retained if it is through a register, or of a function
        that is recursive or among the retained ones. Else it is inlined. The guard of a retained or
        inlined call becomes a branch around it."""
        service = service_function(self.module, call)
        if service is not None:
            self._service(call, service, site)
            return
        self.calls += 1
        end = f"return@{self.calls}"
        if call.guard is not None:
            # The guard becomes a branch around the call, for a body has no guard.
            around = Guard(call.guard.register, not call.guard.negated)
            self.flat.add(_branch(replace(call, guard=around), end), site)
        call = replace(call, guard=None)
        callee = self._callee(call)
        if callee is None or callee.name in self.retained or self.graph.is_recursive(callee.name):
            self._emit_retained(call, site, caller)
            self.flat.mark(end)
        else:
            self._inline(call, site, callee, end)

    def _emit_retained(self, call: Instruction, site: Site, caller: _Frame) -> None:
        """Adds a call that is not inlined, under the number of calls so far, with the functions
        that it may call and whether a thread may exit in any of them."""
        graph = self.graph
        reachable = {f.name: graph.number[f.name] for f in graph.candidates(call, caller.function)}
        to = calls.CallTargets(reachable, any(graph.may_exit(name) for name in reachable))
        shape = graph.declaration_of(call, caller.function)
        calls.emit_retained_call(self.function_code, call, site, self.calls, shape, to)

    def _inline(self, call: Instruction, site: Site, callee: Function, end: str) -> None:
        """Adds a call that is inlined: the call itself (counted, without operands), copies of
        arguments, the body of its callee, the label `end`, copies of results. The stack's top is
        saved before and restored after the body if the callee uses `alloca`."""
        suffix = f"@{self.calls}"
        renaming = Renaming(suffix)
        top = self._save_stack_top(call, site, callee, suffix)
        arguments = self._bind(call, callee.parameters, call.operands[2], renaming)
        results = self._bind(call, callee.returns, call.operands[0], renaming)
        # Without operands: arguments are read, and results written, by the copies around it.
        self.flat.add(replace(call, operands=(Vector(()), call.operands[1], Vector(()))), site)
        for formal, actual in arguments:
            self.flat.add(_copy_in(call, formal, actual), site)
        self.body(
            _Frame(callee, renaming, end, InlinedCopy(suffix, site, call.location, call.span.line))
        )
        self.flat.mark(end)
        if top is not None:
            stack.HiddenCode(self.flat, call, site).emit("mov.b64", stack.TOP, top)
        for formal, actual in results:
            if not isinstance(actual, Sink):
                self.flat.add(_copy_out(call, formal, actual), site)

    def _save_stack_top(
        self, call: Instruction, site: Site, callee: Function, suffix: str
    ) -> Register | None:
        """Saves the top of the stack before a callee that uses `alloca`, in a new register whose
        name ends in `suffix`, and returns that; None if the callee does not."""
        if not alloca.uses_stack(callee):
            return None
        top = Register(f"@top{suffix}", stack.TOP.type)
        self.flat.registers.append(top)
        stack.HiddenCode(self.flat, call, site).emit("mov.b64", top, stack.TOP)
        return top

    def _service(self, call: Instruction, service: Function, site: Site) -> None:
        """Adds a call that the host executes (printf, malloc) to the current part. The call itself
        has registers as operands: arguments in `.param` variables are loaded before it, results are
        stored to theirs after it."""
        self.calls += 1
        returns, target, actuals = call.operands[:3]
        assert isinstance(returns, Vector)
        assert isinstance(actuals, Vector)
        arguments: list[Operand] = []
        for formal, actual in zip(service.parameters, actuals.elements, strict=True):
            if isinstance(actual, Symbol):
                register = self._register(formal)
                load = decode(f"ld.param.{register.type.name}")
                self.flat.add(
                    replace(call, operation=load, operands=(register, Address(actual))), site
                )
                actual = register
            arguments.append(actual)
        results = [
            actual if isinstance(actual, Register) else self._register(formal)
            for formal, actual in zip(service.returns, returns.elements, strict=True)
        ]
        operands = (Vector(tuple(results)), target, Vector(tuple(arguments)))
        self.flat.add(replace(call, operands=operands), site)
        for register, actual in zip(results, returns.elements, strict=True):
            if isinstance(actual, Symbol):
                store = decode(f"st.param.{register.type.name}")
                self.flat.add(
                    replace(call, operation=store, operands=(Address(actual), register)), site
                )

    def _register(self, formal: Variable) -> Register:
        """Adds a new register to the current part for a parameter or result of a function that the
        host provides, and returns it."""
        register = Register(f"{formal.name}@{self.calls}", TYPES[f"b{formal.type.bits}"])
        self.flat.registers.append(register)
        return register

    def _callee(self, call: Instruction) -> Function | None:
        """Returns the function that a call names; None if the call is through a register. Raises
        UnsupportedInstruction if the name is no function, or a function without a body."""
        target = call.operands[1]
        if not isinstance(target, Symbol):
            return None
        callee = self.module.function(target.name)
        if callee is None:
            raise UnsupportedInstruction(f"`{target.name}` is not a function", target.span)
        if callee.body is None and target.name.startswith(DEVICE_LAUNCHES):
            message = (
                "kernels cannot launch kernels (dynamic parallelism is not supported): launch the "
                "second kernel from the host, or call its code as a __device__ function"
            )
            raise UnsupportedInstruction(message, target.span)
        if callee.body is None:
            message = (
                f"`{target.name}` has no body: {callee.span} only declares it. Link the source"
                f" that defines it: gpu.link([...])"
            )
            raise UnsupportedInstruction(message, target.span)
        return callee

    def _bind(
        self, call: Instruction, formals: Iterable[Variable], actuals: Operand, renaming: Renaming
    ) -> list[tuple[Variable, Operand]]:
        """Maps the parameters (or results) of a callee to new names, in `renaming`: a `.param`
        variable that is passed replaces the parameter; any other argument gets a variable or
        register of its own. Returns those pairs of parameter and argument, which have to be copied.
        Raises UnsupportedInstruction if the numbers differ."""
        assert isinstance(actuals, Vector)
        wanted = tuple(formals)
        if len(wanted) != len(actuals.elements):
            message = (
                f"the call has {len(actuals.elements)} values in this list, but the function "
                f"declares {len(wanted)}"
            )
            raise UnsupportedInstruction(message, call.span)
        copied: list[tuple[Variable, Operand]] = []
        for formal, actual in zip(wanted, actuals.elements, strict=True):
            if formal.space is Space.PARAM and isinstance(actual, Symbol):
                renaming.names[formal.name] = actual.name
                continue
            own = replace(formal, name=formal.name + renaming.suffix)
            renaming.names[formal.name] = own.name
            if formal.space is Space.PARAM:
                self.flat.variables[own.name] = own
            copied.append((own, actual))
        return copied


def _branch(origin: Instruction, label: str) -> Instruction:
    """Returns a branch to a label, with the guard and the location of `origin`."""
    return replace(origin, operation=decode("bra"), operands=(Symbol(label),))


def with_targets(instruction: Instruction, function: Function) -> Instruction:
    """Returns a `brx.idx` with the labels of its target list, which the function declares, instead
    of the list's name; other instructions unchanged."""
    if instruction.operation.kind is not OpKind.INDEXED_BRANCH:
        return instruction
    index, name = instruction.operands
    assert isinstance(name, Symbol)
    lists = (
        statement
        for statement in function.body or ()
        if isinstance(statement, Targets) and statement.name == name.name
    )
    labels = tuple(Symbol(label, span=name.span) for label in next(lists).names)
    return replace(instruction, operands=(index, Vector(labels, name.span)))


def _copy_in(call: Instruction, formal: Variable, actual: Operand) -> Instruction:
    """Returns the instruction that copies an argument into a callee's parameter: a store to a
    `.param` variable, or a move to a register parameter."""
    if formal.space is Space.PARAM:
        operation = decode(f"st.param.{formal.type.name}")
        return replace(call, operation=operation, operands=(Address(Symbol(formal.name)), actual))
    return _move(call, formal, Register(formal.name, formal.type), actual)


def _copy_out(call: Instruction, formal: Variable, actual: Operand) -> Instruction:
    """Returns the instruction that copies a callee's result to the call's operand: a load from a
    `.param` variable, or a move from the register that the callee returns its result in."""
    if formal.space is Space.PARAM:
        operation = decode(f"ld.param.{formal.type.name}")
        return replace(call, operation=operation, operands=(actual, Address(Symbol(formal.name))))
    return _move(call, formal, actual, Register(formal.name, formal.type))


def _move(
    call: Instruction, formal: Variable, destination: Operand, source: Operand
) -> Instruction:
    """Returns a `mov` of the width of register parameter `formal`, but at least 16 bits (a
    predicate move for one bit), at the location of the call."""
    kind = "pred" if formal.type.bits == 1 else f"b{max(16, formal.type.bits)}"
    return replace(call, operation=decode(f"mov.{kind}"), operands=(destination, source))
