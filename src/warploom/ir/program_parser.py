"""Parses the program of a Warp IR from its lines, which `ir.program_text` prints.

What was printed and parsed is equal to the original program. Of source positions it stores file and
line; it has no PTX module, and the instructions that it was inlined from are not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, cast
from urllib.parse import unquote

from warploom.core.errors import PtxSyntaxError
from warploom.core.source import Location
from warploom.ir.lines import Line
from warploom.ir.program_text import MEMORY
from warploom.isa.instruction import Guard, Instruction, Operand, Register, Space
from warploom.isa.spec import UnknownOpcode, decode
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program, Site, VariableSlot
from warploom.ptx.cursor import Cursor
from warploom.ptx.lexer import tokenize
from warploom.ptx.module import Module
from warploom.ptx.names import Names, Outside
from warploom.ptx.operands import operands_until

NO_MODULE = Module((0, 0), (), 64)
"""The PTX module of a program that was parsed from an IR."""

_OPERATION = re.compile(r"(\d+): (?:@(!?)(\S+) )?(\S+?)(?: (.*?))?;(?: .*)?")
"""Number, guard, opcode and operands of an operation."""


class ProgramParser:
    """Builds a program. `registers` are the declared ones by name; `blocks` the numbers of basic
    blocks by label."""

    def __init__(self, registers: Mapping[str, Register], blocks: Mapping[str, int]) -> None:
        """Stores the registers and the numbers of blocks."""
        self._registers, self._blocks = registers, blocks

    def program(self, name: str, lines: Mapping[str, Sequence[Line]]) -> Program:
        """Returns the program of a kernel from the lines of its text by their keywords. Operations
        are numbered in the order of their lines, whatever numbers these have; a block without
        `local` has its successors as local ones."""
        [memory], [variables], [labels] = (
            lines[word] for word in ("memory", "variables", "labels")
        )
        slots = dict(line.read(_variable) for line in variables.inner)
        targets = dict(line.read(self._label) for line in labels.inner)
        global_names, functions = (
            tuple(symbol for line in lines[word] for symbol in line.words[1:])
            for word in ("globals", "functions")
        )
        names = {declared: declared for declared in (*slots, *targets, *functions)}
        by_name = {**names, **self._registers}
        outside = Outside({_as_ptx(declared): value for declared, value in by_name.items()})
        self._names = Names(Cursor(tokenize("", name)), outside)
        numbered = [operation for line in lines["block"] for operation in _operation_lines(line)]
        instructions = tuple(line.read(self._operation) for line in numbered)
        blocks = self._program_blocks(lines["block"])
        depth = memory.values.get("depth")
        return Program(
            name=name,
            module=NO_MODULE,
            instructions=instructions,
            sites=tuple(Site(name, index) for index in range(len(instructions))),
            blocks=blocks,
            targets=targets,
            local_successors=tuple(
                line.read(
                    lambda line: self._numbers(line, "local" if "local" in line.values else "to")
                )
                for line in lines["block"]
            ),
            registers=tuple(self._registers.values()),
            slots=slots,
            globals=global_names,
            **_sizes(memory),
            depth=None if depth is None else memory.read(lambda _: self._registers[depth]),
            hidden=_marked(numbered, "hidden"),
            private=_marked(numbered, "private"),
            all_live="all_live" in memory.values,
        )

    def _program_blocks(self, lines: Sequence[Line]) -> tuple[ProgramBlock, ...]:
        """Returns the basic blocks, with the successors that their lines name; the numbers of their
        operations are consecutive from block to block."""
        blocks: list[ProgramBlock] = []
        for index, line in enumerate(lines):
            start = blocks[-1].stop if blocks else 0
            stop = start + len(_operation_lines(line))
            blocks.append(
                ProgramBlock(
                    index, start, stop, line.read(lambda inner: self._numbers(inner, "to"))
                )
            )
        return tuple(blocks)

    def _numbers(self, line: Line, name: str) -> tuple[int, ...]:
        """Returns the numbers of the basic blocks whose labels an attribute lists."""
        return tuple(self._blocks[label] for label in line.list(name))

    def _label(self, line: Line) -> tuple[str, int]:
        """Returns a label that operations name, and the number of its basic block."""
        name, block = line.words
        return name, self._blocks[block]

    def _operation(self, line: Line) -> Instruction:
        """Returns the operation that a line describes. Raises ValueError for another text or
        opcode, KeyError for a guard that is not declared."""
        match = _OPERATION.fullmatch(line.text)
        if match is None:
            raise ValueError(f"{line.text} is not an operation")
        _, negated, guard, opcode, operands = match.groups()
        try:
            instruction = Instruction(decode(opcode), self._operands(operands or ""))
        except (UnknownOpcode, PtxSyntaxError) as error:
            raise ValueError(str(error)) from error
        held = None if guard is None else Guard(self._registers[guard], bool(negated))
        return replace(instruction, guard=held, location=_location(line))

    def _operands(self, text: str) -> tuple[Operand, ...]:
        """Returns the operands of a text, which commas separate."""
        return operands_until(";", Cursor(tokenize(f"{_as_ptx(text)};", "Warp IR")), self._names)


class _Sizes(TypedDict):
    """The sizes of a program's memory, in bytes (`Program`)."""

    parameter_bytes: int
    frame_bytes: int
    shared_bytes: int
    dynamic_shared_offset: int
    local_bytes: int
    reserved_shared_bytes: int


def _sizes(line: Line) -> _Sizes:
    """Returns the sizes that the line `memory` gives; 0 for those that it leaves out."""
    sizes = {field: int(line.values.get(word, 0)) for word, field in MEMORY.items()}
    return cast(_Sizes, sizes)


def _as_ptx(text: str) -> str:
    """Returns a name, or a text with names, as the lexer of PTX reads it as one word: names of what
    calls that are not inlined need have an `@`, so that they are no name of the user's."""
    return text.replace("@", "$at$")


def _operation_lines(block: Line) -> list[Line]:
    """Returns the lines of a block's operations, which begin with a number."""
    return [line for line in block.inner if line.words[0].endswith(":")]


def _marked(lines: Sequence[Line], mark: str) -> frozenset[int]:
    """Returns the numbers of the operations, in the order of their lines, that have the attribute
    `mark`."""
    return frozenset(index for index, line in enumerate(lines) if mark in line.values)


def _variable(line: Line) -> tuple[str, VariableSlot]:
    """Returns a variable's name and its memory: space, offset and size in bytes, and whether it is
    in the frame."""
    name, space, offset, size = line.words
    frame = "frame" in line.values
    return name, VariableSlot(Space(space), int(offset), int(size), frame)


def _location(line: Line) -> Location | None:
    """Returns the source position of an operation, None if it has none."""
    file, separator, number = line.values.get("at", "").rpartition(":")
    return Location(unquote(file), int(number)) if separator else None
