"""Builds the `Program` of a kernel: inlines its calls, cuts basic blocks, and lays out
variables."""

from __future__ import annotations

from dataclasses import replace

from warploom.core.errors import LaunchError
from warploom.isa.instruction import Instruction
from warploom.isa.ops.floating import fused
from warploom.isa.ops.multimem import lowered
from warploom.program.cfg import cut_into_blocks
from warploom.program.inline import flatten
from warploom.program.layout import lay_out
from warploom.program.program import Program
from warploom.program.warp_groups import with_registers_in_flight
from warploom.ptx.module import Function, Module

STACK_BYTES = 4096
"""The default stack of a thread in bytes, for calls that cannot be inlined and for `alloca`. CUDA's
default is 1024 bytes, but its frames hold fewer registers than frames here."""


def build(
    module: Module, kernel_name: str, stack_bytes: int = STACK_BYTES, *, has_fma: bool = True
) -> Program:
    """Builds the program of a kernel: its instructions with calls inlined or lowered, their basic
    blocks, and the layout of its variables; a thread has a stack of `stack_bytes`. Operations on
    several devices become those on one, and waits for asynchronous products and loads read their
    registers. `has_fma`: the device fuses multiplication and addition of floats (compute capability
    2.0); else it truncates products of `mad.f32`.

    Raises LaunchError if the module has no such kernel, CompileError if it is too large
    (`inlining`), UnsupportedInstruction for a call that cannot be resolved (`inline`) or the
    address of something that has none (`layout`).
    """
    kernel = _kernel(module, kernel_name)
    flat = flatten(module, kernel, stack_bytes)
    blocks, targets = cut_into_blocks(flat.instructions, flat.labels)
    # Where calls are not inlined there are two graphs. Execution follows `blocks`. Post-dominators
    # are those of `local_successors`, in which a call is followed by its return point: otherwise a
    # branch in a callee would have none before the end of the program.
    by_function = blocks
    if flat.local_successors:
        by_function, _ = cut_into_blocks(flat.instructions, flat.labels, flat.local_successors)
    layout = lay_out(module, kernel, flat)
    return Program(
        name=kernel_name,
        module=module,
        instructions=with_registers_in_flight(
            tuple(_lowered(one, has_fma=has_fma) for one in flat.instructions)
        ),
        sites=tuple(flat.sites),
        blocks=blocks,
        targets=targets,
        local_successors=tuple(block.successors for block in by_function),
        registers=tuple(flat.registers),
        slots=layout.slots,
        globals=tuple(layout.globals),
        parameter_bytes=layout.parameter_bytes,
        frame_bytes=layout.frame_bytes,
        shared_bytes=layout.shared_bytes,
        dynamic_shared_offset=layout.dynamic_shared_offset,
        reserved_shared_bytes=layout.reserved_shared_bytes,
        local_bytes=layout.local_bytes,
        depth=flat.depth,
        hidden=frozenset(flat.hidden),
        private=frozenset(flat.private),
    )


def _lowered(instruction: Instruction, *, has_fma: bool) -> Instruction:
    """Returns an instruction as the device executes it: a `multimem` operation (on memory that
    several devices share) becomes the ordinary access (`isa.ops.multimem`), and a `mad.f32` of code
    for compute capability 1.x is fused where that is possible; others stay unchanged."""
    operation = lowered(instruction.operation)
    if has_fma:
        operation = fused(operation)
    return (
        instruction
        if operation is instruction.operation
        else replace(instruction, operation=operation)
    )


def _kernel(module: Module, name: str) -> Function:
    """Returns the kernel of a module with that name; raises LaunchError, which lists the kernels,
    if there is none or if the name is that of a function."""
    for kernel in module.entries:
        if kernel.name == name:
            return kernel
    names = ", ".join(kernel.name for kernel in module.entries) or "none"
    if module.function(name) is not None:
        raise LaunchError(
            f"{name} in {module.name} is not a kernel but a device function; declare it "
            f"__global__ to launch it. Kernels: {names}."
        )
    raise LaunchError(
        f"{module.name} has no kernel named {name}. Kernels: {names}. A C++ kernel keeps its name "
        'if it is declared extern "C".'
    )
