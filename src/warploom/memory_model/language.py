"""Litmus tests as text, in the notation of herd and Dartagnan for PTX.

    PTX SB
    { x = 0; y = 0; P0:r0 = 0; s @ surface aliases x; }
     P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
     st.weak x, 1   | st.weak y, 1   ;
     ld.weak r0, y  | ld.weak r1, x  ;
    exists (P0:r0 == 0 /\\ P1:r1 == 0)

Each column is a thread. Instructions are PTX's with names in place of addresses: `ld`, `st`,
`atom`, `red`, `fence`; `sust`, `suld`, `tld`, `cold` access memory through the surface, texture and
constant proxies; `bar.cta.sync i [, n [, count]]` arrives and waits at barrier n (i where it is
left out) of place i of the program; `add`, `sub`, `mul`, `and`, `or`, `xor`, `ld r, value` compute;
`beq|bne|blt|ble|bgt|bge a, b, label`, `goto label` and `label:` control. Values have 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from warploom.core.errors import WarploomError
from warploom.memory_model.columns import Cell, column
from warploom.memory_model.conditions import Question, parse_question
from warploom.memory_model.events import Coordinates, Place
from warploom.memory_model.search import Observed, Program, Thread

SHAPE = re.compile(
    r"\s*PTX\s+(?P<name>\S+)(?P<about>[^{]*)\{(?P<start>[^}]*)\}\s*(?P<rows>.*?)"
    r"(?P<question>(?:~\s*)?exists.*|forall.*)",
    re.DOTALL,
)
COMMENT = re.compile(r"\(\*.*?\*\)|//[^\n]*", re.DOTALL)
HEAD = re.compile(r"P(\d+)\s*@\s*cta\s+(\d+)\s*,(?:\s*cluster\s+(\d+)\s*,)?\s*gpu\s+(\d+)")
ALIAS = re.compile(r"(\w+)\s*@\s*(generic|constant|texture|surface)\s+aliases\s+(\w+)")
REGISTER = re.compile(r"P(\d+)\s*:\s*(\w+)\s*=\s*(-?\d+)")
LOCATION = re.compile(r"(\w+)\s*=\s*(-?\d+)")


@dataclass(frozen=True, slots=True)
class LitmusTest:
    """A program and what is asked of its final states."""

    program: Program
    question: Question


@dataclass
class _Start:
    """The contents of the braces: initial values, and the locations by the names that lead
    there."""

    memory: dict[str, int] = field(default_factory=dict[str, int])
    registers: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    places: dict[str, Place] = field(default_factory=dict[str, Place])


def parse_litmus(text: str) -> LitmusTest:
    """Returns the test of a text. Raises WarploomError where it is none."""
    found = SHAPE.fullmatch(COMMENT.sub("", text))
    if found is None:
        raise WarploomError(
            "not a litmus test: it must have `PTX name`, initial values in braces, a table of "
            "threads and a condition that begins with exists, ~exists or forall"
        )
    start, question = _start(found["start"]), parse_question(found["question"])
    heads, rows = _table(found["rows"])
    cells = [[Cell.of(row[i]) for row in rows if row[i]] for i in range(len(heads))]
    threads = tuple(
        Thread(f"P{number}", place, column(cells[i], start.places, _own(start, number)))
        for i, (number, place) in enumerate(heads)
    )
    numbers = {f"P{number}": i for i, (number, _) in enumerate(heads)}
    observed = tuple(_observed(label, numbers) for label in question.condition.labels())
    program = Program(found["name"], threads, start.memory, observed)
    return LitmusTest(program, question)


def _observed(label: str, numbers: Mapping[str, int]) -> Observed:
    thread, _, register = label.rpartition(":")
    if not thread:
        return Observed(label, label)
    if thread not in numbers:
        raise WarploomError(f"the condition uses {label}, but there is no thread {thread}")
    return Observed(label, register, numbers[thread])


def _own(start: _Start, thread: int) -> dict[str, int]:
    return {name: value for (of, name), value in start.registers.items() if of == thread}


def _start(text: str) -> _Start:
    """Returns the initial values of a test."""
    start = _Start()
    for part in filter(None, map(str.strip, text.split(";"))):
        if found := ALIAS.fullmatch(part):
            name, proxy, target = found.groups()
            other = start.places.get(target, Place(target, target))
            virtual = name if proxy == "generic" else other.virtual
            start.places[name] = Place(other.physical, virtual)
        elif found := REGISTER.fullmatch(part):
            start.registers[int(found[1]), found[2]] = int(found[3])
        elif found := LOCATION.fullmatch(part):
            start.memory[found[1]] = int(found[2])
        else:
            raise WarploomError(
                f"{part!r} is not an initial value: write, for example, `x = 0` or `P0:r0 = 1`"
            )
    return start


def _table(text: str) -> tuple[list[tuple[int, Coordinates]], list[list[str]]]:
    """Returns the heads of the columns and the rows below them."""
    lines = [line.strip() for line in text.split(";") if line.strip()]
    if not lines:
        raise WarploomError("the test has no threads")
    heads: list[tuple[int, Coordinates]] = []
    for cell in lines[0].split("|"):
        found = HEAD.fullmatch(cell.strip())
        if found is None:
            raise WarploomError(
                f"{cell.strip()!r} does not name a thread: write, for example, `P0@cta 0,gpu 0`"
            )
        number, cta, cluster, gpu = (int(part or 0) for part in found.groups())
        heads.append((number, Coordinates(cta, cluster if found[3] else cta, gpu)))
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[1:]]
    for row in rows:
        if len(row) != len(heads):
            raise WarploomError(
                f"{' | '.join(row)!r} has {len(row)} columns instead of {len(heads)}"
            )
    return heads, rows
