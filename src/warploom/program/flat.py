"""Defines the flat list of instructions that a kernel becomes while its calls are inlined."""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.isa.instruction import Instruction, Register
from warploom.program.program import Site
from warploom.ptx.module import Variable

EXIT = "@exit"
"""The label at the end of the program."""


@dataclass
class Flat:
    """A kernel under construction, without calls that are still to be resolved.

    `labels` map a label to the index of the next instruction. `variables` are those of the kernel
    and of its callees, without the kernel's parameters. `hidden` and `private` are those of
    `Program`. `local_successors` maps a jump between functions to the labels that follow it in its
    own function.
    """

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    sites: list[Site] = field(default_factory=list[Site])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    registers: list[Register] = field(default_factory=list[Register])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    hidden: set[int] = field(default_factory=set[int])
    private: set[int] = field(default_factory=set[int])
    local_successors: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    depth: Register | None = None

    def add(
        self, instruction: Instruction, site: Site, *, hidden: bool = False, private: bool = False
    ) -> None:
        """Appends an instruction with its origin; `hidden` and `private` mark it as in
        `Program`."""
        if hidden:
            self.hidden.add(len(self.instructions))
        if private:
            self.private.add(len(self.instructions))
        self.instructions.append(instruction)
        self.sites.append(site)

    def mark(self, label: str) -> None:
        """Puts a label before the next instruction that is added."""
        self.labels[label] = len(self.instructions)
