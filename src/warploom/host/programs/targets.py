"""Checks that a device can run a program: its instructions one by one, and its `.target`.

A driver refuses a module whose `.target` is newer than the device. Here only instructions count
unless strictness is asked for, for no compiler is left that makes PTX for the older devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from warploom.core.errors import CompileError, UnsupportedInstruction
from warploom.devices.spec import DeviceSpec
from warploom.isa.instruction import Instruction, Operand, Special
from warploom.isa.spec import Unit
from warploom.isa.targets import needed, only_targets
from warploom.machine.launch import WARP_SIZE
from warploom.program.program import Program
from warploom.program.uses import leaf_operands
from warploom.ptx.module import Module
from warploom.ptx.release import target_of

PRODUCTS = {(9, 0): "h100", (10, 0): "b200", (12, 0): "rtx-5090"}
"""Devices that have instructions of some architectures alone."""


def is_newer(module: Module, spec: DeviceSpec) -> bool:
    """Returns whether the module was made for a newer device than this one, or for exactly
    another."""
    target, letter = target_of(module)
    wrong = letter == "a" and target != spec.compute_capability
    other_family = letter == "f" and target[0] != spec.compute_capability[0]
    return wrong or other_family or target > spec.compute_capability


def check_strictly(module: Module, spec: DeviceSpec) -> None:
    """Raises CompileError where a driver would refuse the module."""
    if is_newer(module, spec):
        raise CompileError(
            f"{module.name} targets {', '.join(module.target)}, which {spec.title} (compute "
            f"capability {spec.cc}) does not support: the device's driver would reject the module. "
            f"Compile for sm_{spec.compute_capability[0]}{spec.compute_capability[1]}, or turn off "
            "the strict check (strict_target, --strict-target): the module may still run."
        )


def check_instructions(program: Program, spec: DeviceSpec) -> None:
    """Raises UnsupportedInstruction for the first instruction that the device does not have."""
    for instruction in _written(program):
        if spec.warp_size != WARP_SIZE:
            _check_warps(instruction, spec)
        brought = needed(instruction.operation)
        if brought > spec.compute_capability:
            major, minor = brought
            raise UnsupportedInstruction(
                f"{spec.title} (compute capability {spec.cc}) does not support "
                f"{instruction.operation.text}, which requires compute capability "
                f"{major}.{minor}. Use a newer device, or other instructions.",
                instruction.span,
            )
        only = only_targets(instruction.operation)
        if only and spec.compute_capability not in only:
            has = " and ".join(f"{major}.{minor}" for major, minor in only)
            device = next(name for release, name in PRODUCTS.items() if release in only)
            raise UnsupportedInstruction(
                f"{spec.title} (compute capability {spec.cc}) does not support "
                f"{instruction.operation.text}, which requires exactly compute capability {has}. "
                f"Use a device with this compute capability, for example {device}.",
                instruction.span,
            )


def _written(program: Program) -> Iterator[Instruction]:
    """Yields the instructions that a program is made of, as they stand in the source: a call or
    `alloca`, not what does it."""
    bodies: dict[str, tuple[Instruction, ...]] = {}
    for site in dict.fromkeys(program.sites):
        if site.function not in bodies:
            function = program.module.function(site.function)
            bodies[site.function] = function.instructions if function else ()
        yield from bodies[site.function][site.index : site.index + 1]


OF_WARPS = (Unit.WARP, Unit.MATRIX)
"""Units whose instructions are defined for warps of 32 lanes: member masks have 32 bits, and 32
lanes hold the parts of a matrix (PTX ISA, "shfl.sync", "Warp Level Matrix Instructions")."""


def _check_warps(instruction: Instruction, spec: DeviceSpec) -> None:
    """Raises UnsupportedInstruction for what there is only where a warp has 32 lanes."""
    named = (
        o.name for operand in instruction.operands for o in leaf_operands(operand) if _is_mask(o)
    )
    what = next(named, None)
    if instruction.operation.spec.unit in OF_WARPS:
        what = instruction.operation.text
    if what is not None:
        raise UnsupportedInstruction(
            f"{what} is defined for warps of {WARP_SIZE} lanes, but this device was created with "
            f"warps of {spec.warp_size} lanes (warp_size). Exchange data through shared memory "
            "and __syncthreads() instead, or omit warp_size.",
            instruction.span,
        )


def _is_mask(operand: Operand) -> TypeGuard[Special]:
    return isinstance(operand, Special) and operand.name.startswith("%lanemask_")
