"""Checks that a module's `.version` and `.target` have what it uses, as ptxas does.

Source: PTX ISA, "PTX ISA Notes" and "Target ISA Notes" of instructions and special registers.
"""

from __future__ import annotations

import re

from warploom.core.errors import PtxSyntaxError
from warploom.core.source import Span
from warploom.isa.instruction import Instruction, Special
from warploom.isa.since import OLDEST, Release
from warploom.isa.special import brought
from warploom.isa.targets import has_letter, needed, only_targets
from warploom.isa.versions import needed_version
from warploom.ptx.module import Module


def target_of(module: Module) -> tuple[Release, str]:
    """Return the compute capability in a module's `.target`, and the letter of what runs there
    alone."""
    for name in module.target:
        if found := re.fullmatch(r"sm_(\d+)(\d)([a-z]?)", name):
            return (int(found[1]), int(found[2])), found[3]
    return OLDEST, ""


class Releases:
    """The releases that a module is written for."""

    def __init__(self, module: Module) -> None:
        self.version = module.version
        self.target, self.letter = target_of(module)

    def check(self, instruction: Instruction) -> None:
        """Raise PtxSyntaxError for an instruction that is newer than the module says."""
        operation = instruction.operation
        version, target = needed_version(operation), needed(operation)
        self._check(operation.opcode, version, target, instruction.span)
        only = only_targets(operation)
        fits = self.target in only and has_letter(self.target, self.letter)
        if only and not fits:
            names = " or ".join(f"sm_{major}{minor}a" for major, minor in only)
            message = (
                f"`{operation.opcode}` is for .target {names} alone: compile for that, as ptxas"
                f" asks as well"
            )
            raise PtxSyntaxError(message, instruction.span)
        for operand in instruction.operands:
            if isinstance(operand, Special):
                self._check(operand.name, *brought(operand.name), operand.span)

    def _check(self, what: str, version: Release, target: Release, span: Span) -> None:
        if version > self.version:
            has, wanted = (f"{major}.{minor}" for major, minor in (self.version, version))
            message = f"`{what}` needs PTX {wanted}, and this module says .version {has}: raise it"
            raise PtxSyntaxError(message, span)
        if target > self.target:
            has, wanted = (f"sm_{major}{minor}" for major, minor in (self.target, target))
            message = f"`{what}` needs {wanted}, and this module says .target {has}: raise it"
            raise PtxSyntaxError(message, span)
