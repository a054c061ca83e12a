"""Checks that a module's `.version` and `.target` have what it uses, as ptxas does.

Source: PTX ISA, "PTX ISA Notes" and "Target ISA Notes" of instructions and special registers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warploom.core.errors import PtxSyntaxError
from warploom.core.source import Span
from warploom.isa.instruction import Instruction, Special
from warploom.isa.since import OLDEST, Release
from warploom.isa.spec import Operation
from warploom.isa.special import brought
from warploom.isa.targets import has_letter, needed, only_targets
from warploom.isa.versions import needed_version
from warploom.ptx.module import Module


def target_of(module: Module) -> tuple[Release, str]:
    """Return the compute capability in a module's `.target`, and the letter of what runs there
    alone."""
    return capability(module.target)


def capability(target: Sequence[str]) -> tuple[Release, str]:
    """Return the compute capability in the names of a `.target`, and its letter."""
    for name in target:
        if found := re.fullmatch(r"sm_(\d+)(\d)([a-z]?)", name):
            return (int(found[1]), int(found[2])), found[3]
    return OLDEST, ""


TARGETS: dict[Release, str] = {
    (1, 2): "12 13",
    (2, 0): "20 21",
    (3, 0): "30",
    (3, 1): "35",
    (4, 0): "32 50",
    (4, 1): "37 52",
    (4, 2): "53",
    (5, 0): "60 61 62",
    (5, 1): "70",
    (6, 1): "72",
    (6, 3): "75",
    (7, 0): "80",
    (7, 1): "86",
    (7, 4): "87",
    (7, 8): "89 90",
    (8, 0): "90a",
    (8, 6): "100 100a 101 101a",
    (8, 7): "120 120a",
    (8, 8): "100f 101f 103 103a 103f 120f 121 121a 121f",
    (9, 0): "88 110 110a 110f",
    (9, 4): "107 107a 107f",
}
"""The targets that each version of PTX brought (PTX ISA, "Release Notes"; ptxas 13.5)."""

_SINCE = {f"sm_{name}": version for version, names in TARGETS.items() for name in names.split()}
_KNOWN = {"sm_10", "sm_11", *_SINCE}

NO_32_BITS = (9, 0)
"""The first compute capability without 32-bit addresses (ptxas: "32-Bit ABI is not supported on
sm_90 or higher architectures")."""

NO_DEMOTION = (1, 3)
"""The first compute capability that does not compute `.f64` in single precision."""


def wrong_target(names: Sequence[str], version: Release) -> str:
    """Return what is wrong with a `.target` in a module of a version of PTX; nothing where it is
    right."""
    for name in names:
        if name.startswith("sm_") and name not in _KNOWN:
            return f"there is no target {name}"
        since = _SINCE.get(name, OLDEST)
        if since > version:
            (major, minor), (has_major, has_minor) = since, version
            return (
                f"{name} requires PTX {major}.{minor}, but this module has .version "
                f"{has_major}.{has_minor}: raise the version"
            )
    if "map_f64_to_f32" in names and capability(names)[0] >= NO_DEMOTION:
        return "`map_f64_to_f32` is only for targets below sm_13, which do not have .f64"
    return ""


SYNC_VERSION, SYNC_TARGET = (6, 4), (7, 0)
"""From where on `vote` and `shfl` name their lanes (PTX ISA, "vote (deprecated)")."""


class Releases:
    """The releases that a module is written for."""

    def __init__(self, module: Module) -> None:
        self.version = module.version
        self.target, self.letter = target_of(module)

    def check(self, instruction: Instruction) -> None:
        """Raise PtxSyntaxError for an instruction that is newer than the module says."""
        operation = instruction.operation
        self._check_not_ended(operation, instruction.span)
        version, target = needed_version(operation), needed(operation)
        self._check(operation.opcode, version, target, instruction.span)
        only = only_targets(operation)
        fits = self.target in only and has_letter(self.target, self.letter)
        if only and not fits:
            names = " or ".join(f"sm_{major}{minor}a" for major, minor in only)
            message = (
                f"`{operation.opcode}` is only for .target {names}: compile for one of these "
                "targets (ptxas requires this, too)"
            )
            raise PtxSyntaxError(message, instruction.span)
        for operand in instruction.operands:
            if isinstance(operand, Special):
                self._check(operand.name, *brought(operand.name), operand.span)

    def _check_not_ended(self, operation: Operation, span: Span) -> None:
        """Raise PtxSyntaxError for a `vote` or `shfl` without `.sync` where there are none."""
        lanes_named = self.version >= SYNC_VERSION and self.target >= SYNC_TARGET
        if lanes_named and operation.name in ("vote", "shfl") and "sync" not in operation.modifiers:
            message = (
                f"`{operation.text}` was removed in PTX 6.4 for sm_70 and later: write "
                f"`{operation.name}.sync`, with a member mask"
            )
            raise PtxSyntaxError(message, span)

    def _check(self, what: str, version: Release, target: Release, span: Span) -> None:
        if version > self.version:
            has, wanted = (f"{major}.{minor}" for major, minor in (self.version, version))
            message = (
                f"`{what}` requires PTX {wanted}, but this module has .version {has}: raise the "
                "version"
            )
            raise PtxSyntaxError(message, span)
        if target > self.target:
            has, wanted = (f"sm_{major}{minor}" for major, minor in (self.target, target))
            message = (
                f"`{what}` requires {wanted}, but this module has .target {has}: raise the target"
            )
            raise PtxSyntaxError(message, span)
