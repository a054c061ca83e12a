"""Assigns memory to the variables of a kernel before any launch: an offset in its state space, or
an index of a global.

Parameters are laid out in order, each at its own alignment, as the CUDA driver does. Source: PTX
ISA, "State Spaces".

    .param .u8 a, .param .u64 b, .param .u32 c     offsets 0, 8, 16; 20 bytes of parameters
    .shared .f64 x; .shared .b8 y[6];              offsets 0, 8; 14 bytes of shared memory
    .extern .shared .align 64 .b8 z[];             offset 64, where dynamic shared memory begins
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from warploom.core.errors import UnsupportedInstruction
from warploom.isa.instruction import Instruction, Space, Special, Symbol
from warploom.isa.kinds import Effect, OpKind
from warploom.program.flat import Flat
from warploom.program.program import PARAMETERS, VariableSlot
from warploom.program.stack import aligned
from warploom.program.uses import symbols
from warploom.ptx.module import Function, Module, Variable

DYNAMIC_SHARED_ALIGNMENT = 16
"""The alignment of dynamic shared memory in bytes, unless its declaration has a greater one.

Its offset is undocumented; this value suits every scalar and vector type.
"""

RESERVED_BYTES = 1024
"""Bytes of a thread block's shared memory that the system reserves from 8.0 on (CUDA C++
Programming Guide, "Compute Capability 8.x: Shared Memory"). NVIDIA's headers store barriers of
thread groups there. Only kernels that read its address have it, after their own shared memory."""

RESERVED_REGISTERS = ("%reserved_smem", "%aggr_smem")


@dataclass
class Layout:
    """The slots of variables by name, the globals that a launch must locate, and sizes in bytes;
    becomes part of the `Program`."""

    slots: dict[str, VariableSlot] = field(default_factory=dict[str, VariableSlot])
    globals: list[str] = field(default_factory=list[str])
    parameter_bytes: int = 0
    frame_bytes: int = 0
    shared_bytes: int = 0
    dynamic_shared_offset: int = 0
    reserved_shared_bytes: int = 0
    local_bytes: int = 0


def lay_out(module: Module, kernel: Function, flat: Flat) -> Layout:
    """Returns the layout of a kernel: offsets of its parameters and of every variable that its
    instructions name, in each state space, indices of the globals that they name, and sizes,
    reserved shared memory included if they read it. If they use generic addresses of parameters,
    the slot PARAMETERS has the index after the other globals.

    Raises UnsupportedInstruction if an instruction uses the address of something without storage,
    or of a parameter of a call.
    """
    layout = Layout()
    layout.parameter_bytes = _lay_out(layout, kernel.parameters)
    layout.reserved_shared_bytes = reserved_bytes(flat.instructions)
    used = _used_variables(module, kernel, flat)
    by_space: dict[Space, list[Variable]] = {}
    for variable in used:
        by_space.setdefault(variable.space, []).append(variable)
    layout.frame_bytes = _lay_out(layout, by_space.get(Space.PARAM, ()), frame=True)
    layout.local_bytes = _lay_out(layout, by_space.get(Space.LOCAL, ()))
    _lay_out_shared(layout, by_space.get(Space.SHARED, ()))
    for variable in (*by_space.get(Space.GLOBAL, ()), *by_space.get(Space.CONST, ())):
        index = len(layout.globals)
        layout.slots[variable.name] = VariableSlot(variable.space, index, variable.size)
        layout.globals.append(variable.name)
    _check_pointers(module, flat)
    # By operation, of which a program has far fewer than instructions: operands do not matter here.
    distinct_operations = {
        instruction.operation: instruction for instruction in flat.instructions
    }.values()
    if any(map(points_to_parameters, distinct_operations)):
        layout.slots[PARAMETERS] = VariableSlot(
            Space.GLOBAL, len(layout.globals), layout.parameter_bytes
        )
    return layout


def _check_pointers(module: Module, flat: Flat) -> None:
    """Raises UnsupportedInstruction if an operand is the address of a `.param` variable of a
    function, or of a parameter or result of one that is no kernel: they have none, as they are
    registers, or in stack frames outside of the generic address space."""
    for name in {site.function for site in flat.sites}:
        function = module.function(name) or next(
            entry for entry in module.entries if entry.name == name
        )
        variables = [
            statement for statement in function.body or () if isinstance(statement, Variable)
        ]
        passed = {variable.name for variable in variables if variable.space is Space.PARAM}
        if function not in module.entries:
            passed |= {formal.name for formal in (*function.parameters, *function.returns)}
        for instruction in function.instructions if passed else ():
            for operand in instruction.operands:
                if isinstance(operand, Symbol) and operand.name in passed:
                    message = (
                        f"`{operand.name}` is a parameter of a call and has no address here: copy "
                        "it into a .local variable, and use the address of that variable"
                    )
                    raise UnsupportedInstruction(message, operand.span)


def points_to_parameters(instruction: Instruction) -> bool:
    """Returns whether an instruction converts or tests generic addresses of the kernel's
    parameters. These are global addresses (PTX ISA, "Generic Addressing": the window of parameters
    lies in global memory)."""
    operation = instruction.operation
    space = operation.modifiers.text("space", "")
    converts = operation.kind is OpKind.CONVERT_ADDRESS and space.startswith("param")
    return converts or operation.kind is OpKind.TEST_PARAMETER


def reserved_bytes(instructions: Iterable[Instruction]) -> int:
    """Returns the bytes of reserved shared memory: RESERVED_BYTES if an instruction reads a special
    register with their addresses, else 0."""
    special = (
        o for instruction in instructions for o in instruction.operands if type(o) is Special
    )
    return RESERVED_BYTES if any(o.name.startswith(RESERVED_REGISTERS) for o in special) else 0


def _used_variables(module: Module, kernel: Function, flat: Flat) -> list[Variable]:
    """Returns the variables of the module and of the functions that instructions name, without the
    kernel's parameters, in order of declaration. Raises UnsupportedInstruction for the name of a
    function or label, which has no storage."""
    declared = _definitions(module.variables) | flat.variables
    parameters = {p.name for p in kernel.parameters}
    named: set[str] = set()
    for instruction in flat.instructions:
        if instruction.operation.has(Effect.BRANCHES | Effect.CALLS):  # of labels, functions
            continue
        for symbol in symbols(instruction):
            if symbol.name not in parameters and symbol.name not in declared:
                raise _no_storage(module, symbol)
            named.add(symbol.name)
    return [variable for name, variable in declared.items() if name in named]


def _definitions(variables: Iterable[Variable]) -> dict[str, Variable]:
    """Returns variables by name. Of a variable that is declared several times, the definition wins
    over `.extern` declarations."""
    definitions: dict[str, Variable] = {}
    for variable in variables:
        if variable.name not in definitions or variable.linkage != "extern":
            definitions[variable.name] = variable
    return definitions


def _no_storage(module: Module, symbol: Symbol) -> UnsupportedInstruction:
    """Returns the error for an instruction that uses the address of a function or label."""
    kind = "a function" if module.function(symbol.name) else "a label"
    message = f"`{symbol.name}` is {kind}: its address cannot be taken here"
    return UnsupportedInstruction(message, symbol.span)


def _lay_out(layout: Layout, variables: Iterable[Variable], *, frame: bool = False) -> int:
    """Lays out variables one after another from offset 0, each aligned, and records their slots in
    `layout`; `frame` marks `.param` variables of calls. Returns the end of the last one."""
    end = 0
    for variable in variables:
        start = aligned(end, variable.alignment)
        layout.slots[variable.name] = VariableSlot(variable.space, start, variable.size, frame)
        end = start + variable.size
    return end


def _lay_out_shared(layout: Layout, variables: Iterable[Variable]) -> None:
    """Assigns offsets to static shared variables, then, aligned to DYNAMIC_SHARED_ALIGNMENT or more
    if they need it, to dynamic shared memory, where all open arrays (`extern`, without a size)
    begin; sets `shared_bytes`, of static ones, and `dynamic_shared_offset` in `layout`."""
    open_arrays = [v for v in variables if v.linkage == "extern" and None in v.shape]
    layout.shared_bytes = _lay_out(layout, (v for v in variables if v not in open_arrays))
    alignment = max((DYNAMIC_SHARED_ALIGNMENT, *(v.alignment for v in open_arrays)))
    layout.dynamic_shared_offset = aligned(layout.shared_bytes, alignment)
    # All begin at one address: their sizes are known at the launch only.
    for variable in open_arrays:
        layout.slots[variable.name] = VariableSlot(Space.SHARED, layout.dynamic_shared_offset, 0)
