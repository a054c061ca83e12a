"""Gives the registers and symbols of a function other names, as inlining and linking need."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from warploom.isa.instruction import (
    Address,
    Element,
    Guard,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)


@dataclass
class Renaming:
    """Registers get `suffix`; symbols become what `names` says, others keep their names."""

    suffix: str = ""
    names: dict[str, str] = field(default_factory=dict[str, str])

    def name(self, name: str) -> str:
        return self.names.get(name, name)

    def change(self, name: str, new: str) -> None:
        """Let a symbol have another name from here on."""
        if new != name:
            self.names[name] = new

    def register(self, register: Register) -> Register:
        if not self.suffix:
            return register
        return Register(register.name + self.suffix, register.type, register.span)

    def instruction(self, instruction: Instruction) -> Instruction:
        if not self.suffix and not self.names:
            return instruction
        operands = tuple(self.operand(o) for o in instruction.operands)
        guard = instruction.guard
        if guard is not None:
            guard = Guard(self.register(guard.register), guard.negated)
        return replace(instruction, operands=operands, guard=guard)

    def operand(self, operand: Operand) -> Operand:
        match operand:
            case Register():
                return self.register(operand)
            case Symbol(name):
                return replace(operand, name=self.name(name))
            case Address(Register() as base):
                return replace(operand, base=self.register(base))
            case Address(Symbol(name) as base):
                return replace(operand, base=replace(base, name=self.name(name)))
            case Vector(elements):
                return replace(operand, elements=tuple(self.operand(e) for e in elements))
            case Pair(first, second):
                return replace(operand, first=self.operand(first), second=self.operand(second))
            case Negated(register):
                return replace(operand, operand=self.register(register))
            case Element(register):
                return replace(operand, register=self.register(register))
            case _:
                return operand
