"""Instructions in one list, while calls are being put into it."""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.program.program import Site
from warploom.ptx.ir import Instruction, Register, Variable

EXIT = "@exit"
"""The label of the end of everything."""


@dataclass
class Flat:
    """A kernel without calls that need anything more. `labels` say before which instruction each
    label stands; `variables` are those of the kernel and of what it calls, without the kernel's
    parameters.

    `hidden` and `private` instructions are those of `Program`. `inside` says, of a jump between
    functions, at which labels its own function goes on behind it.
    """

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    sites: list[Site] = field(default_factory=list[Site])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    registers: list[Register] = field(default_factory=list[Register])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    hidden: set[int] = field(default_factory=set[int])
    private: set[int] = field(default_factory=set[int])
    inside: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    depth: Register | None = None

    def add(
        self, instruction: Instruction, site: Site, *, hidden: bool = False, private: bool = False
    ) -> None:
        if hidden:
            self.hidden.add(len(self.instructions))
        if private:
            self.private.add(len(self.instructions))
        self.instructions.append(instruction)
        self.sites.append(site)

    def mark(self, label: str) -> None:
        """Put a label before the next instruction."""
        self.labels[label] = len(self.instructions)
