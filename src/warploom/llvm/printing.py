"""Prints an llvmlite module as the text of LLVM IR, in half the time of `str(module)`.

A kernel has some ten thousand LLVM instructions, and llvmlite's own printing used a quarter of the
time of emission. The classes of instructions that make up nearly all of a module have a format
here, and the text of each type is computed once; llvmlite prints everything else. The text is that
of `str(module)` but for spaces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from llvmlite.ir import instructions

from warploom.llvm.lanes import Value


class ModulePrinter:
    """Prints the functions of one module. Stores the texts of types and of references to values by
    the identity of the objects, which is unique while the module, which refers to them, is alive.
    """

    def __init__(self, module: ir.Module) -> None:
        """Prepares the printing of `module`."""
        self.module = module
        self._types: dict[int, str] = {}
        self._references: dict[int, str] = {}

    def text(self) -> str:
        """Returns the text of the whole module. Named types, which other modules of the process
        may define, are left out: the compiler uses none."""
        module: Any = self.module
        lines = [
            f'; ModuleID = "{module.name}"',
            f'target triple = "{module.triple}"',
            f'target datalayout = "{module.data_layout}"',
            "",
        ]
        for value in module.globals.values():
            if isinstance(value, ir.Function) and value.blocks:
                self._print_function(value, lines)
            else:
                lines.append(str(value))
        return "\n".join(lines + [str(node) for node in module.metadata])

    def _print_function(self, function: Any, lines: list[str]) -> None:
        """Appends the lines of a function that has a body."""
        prototype: list[str] = []
        function.descr_prototype(prototype)
        lines += ["".join(prototype), "{"]
        for block in function.blocks:
            lines.append(f"{block._format_name()}:")
            lines += [self._instruction(instruction) for instruction in block.instructions]
        lines.append("}")

    def _instruction(self, instruction: Any) -> str:
        """Returns the line of an instruction: by the format of its class in FORMATS, with its
        result in front if it has one; by llvmlite's own printing for other classes and with
        metadata."""
        kind: object = instruction.__class__
        form = FORMATS.get(kind)
        if form is None or instruction.metadata:
            return f"  {instruction}"
        text = form(self, instruction)
        if kind in WITHOUT_RESULT:
            return f"  {text}"
        return f"  {self.reference(instruction)} = {text}"

    def type_text(self, type: Any) -> str:
        """Returns the text of a type."""
        text = self._types.get(id(type))
        if text is None:
            text = self._types[id(type)] = str(type)
        return text

    def reference(self, value: Value) -> str:
        """Returns the text of an operand without its type."""
        text = self._references.get(id(value))
        if text is None:
            # `get_reference` keeps the text in the value, which it first looks for by an exception.
            text = self._references[id(value)] = value._get_reference()
        return text

    def typed(self, value: Value) -> str:
        """Returns the text of an operand with its type before it."""
        return f"{self.type_text(value.type)} {self.reference(value)}"

    def all_typed(self, instruction: Any) -> str:
        """Returns the text, without its result, of an instruction whose operands all have their
        types before them: `br label %x`."""
        operands = ", ".join([self.typed(operand) for operand in instruction.operands])
        return f"{instruction.opname} {operands}"


def _arithmetic(printer: ModulePrinter, instruction: Any) -> str:
    """Returns the text, without its result (`ModulePrinter._instruction` adds it), of an
    instruction whose operands are of one type, printed once, that of its result: `add nsw i32 %a,
    %b`."""
    opcode = " ".join([instruction.opname, *instruction.flags])
    operands = ", ".join([printer.reference(operand) for operand in instruction.operands])
    return f"{opcode} {printer.type_text(instruction.type)} {operands}"


def _comparison(printer: ModulePrinter, instruction: Any) -> str:
    """Returns the text, without its result, of an `icmp` or `fcmp`, which has a type before its
    first operand only."""
    left, right = instruction.operands
    opcode = " ".join([instruction.opname, *instruction.flags, instruction.op])
    return f"{opcode} {printer.typed(left)}, {printer.reference(right)}"


def _conversion(printer: ModulePrinter, instruction: Any) -> str:
    """Returns the text, without its result, of a cast: `zext i32 %a to i64`."""
    source = printer.typed(instruction.operands[0])
    return f"{instruction.opname} {source} to {printer.type_text(instruction.type)}"


def _load(printer: ModulePrinter, instruction: Any) -> str:
    """Returns the text, without its result, of a load: `load i32, ptr %p, align 4`."""
    source = printer.typed(instruction.operands[0])
    return f"load {printer.type_text(instruction.type)}, {source}{_alignment(instruction)}"


def _store(printer: ModulePrinter, instruction: Any) -> str:
    """Returns the text of a store: `store i32 %a, ptr %p, align 4`."""
    return f"{printer.all_typed(instruction)}{_alignment(instruction)}"


def _alignment(instruction: Any) -> str:
    """Returns the alignment of a load or store as its text ends, `, align 4`; empty if it has
    none."""
    return "" if instruction.align is None else f", align {instruction.align}"


def _address(printer: ModulePrinter, instruction: Any) -> str:
    """Returns the text of a `getelementptr`, without its result."""
    opcode = "getelementptr inbounds" if instruction.inbounds else "getelementptr"
    operands = ", ".join([printer.typed(operand) for operand in instruction.operands])
    return f"{opcode} {printer.type_text(instruction.source_etype)}, {operands}"


FORMATS: dict[object, Callable[[ModulePrinter, Any], str]] = {
    instructions.Instruction: _arithmetic,
    instructions.ICMPInstr: _comparison,
    instructions.FCMPInstr: _comparison,
    instructions.CastInstr: _conversion,
    instructions.LoadInstr: _load,
    instructions.StoreInstr: _store,
    instructions.GEPInstr: _address,
    instructions.Branch: ModulePrinter.all_typed,
    instructions.ConditionalBranch: ModulePrinter.all_typed,
    instructions.ExtractElement: ModulePrinter.all_typed,
    instructions.InsertElement: ModulePrinter.all_typed,
    instructions.ShuffleVector: ModulePrinter.all_typed,
    instructions.SelectInstr: ModulePrinter.all_typed,
}
"""Functions that print an instruction without metadata, by its class, as LLVM IR without its result
(`%x = `)."""

WITHOUT_RESULT: frozenset[object] = frozenset(
    {instructions.StoreInstr, instructions.Branch, instructions.ConditionalBranch}
)
