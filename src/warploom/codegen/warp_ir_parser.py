"""Reads the text of the Warp IR (`codegen.warp_ir_text`) back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields

import msgspec

from warploom.analysis.idle import IdleWay
from warploom.analysis.leavings import Region as ExitRegion
from warploom.analysis.regions import Region, RegionKind
from warploom.analysis.strides import LANES, UNIFORM, VECTOR, Shape
from warploom.analysis.sweeps import Kind, SweepPath
from warploom.codegen import access
from warploom.codegen.access_groups import AccessGroup
from warploom.codegen.access_table import AccessPlan, Cost, Exit, Facts, Guard, Move, Pattern
from warploom.codegen.variant import KernelVariant
from warploom.codegen.warp_ir import (
    BasicBlock,
    BlockAccesses,
    BranchKind,
    Reconvergence,
    WarpIR,
)
from warploom.codegen.warp_ir_text import END, INDENT
from warploom.core.errors import WarploomError
from warploom.core.types import TYPES
from warploom.ptx.ir import Register, Space


@dataclass
class Line:
    """A line of the text: its words, its attributes, and the lines that are indented behind it."""

    number: int
    text: str
    inner: list[Line] = field(default_factory=list["Line"])
    words: list[str] = field(default_factory=list[str])
    values: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        for word in self.text.split():
            name, equals, value = word.partition("=")
            if equals:
                self.values[name] = value
            else:
                self.words.append(word)

    def list(self, name: str) -> list[str]:
        """Returns the parts of an attribute; none of one that is not there."""
        value = self.values.get(name, "")
        return value.split(",") if value else []

    def numbers(self, name: str) -> tuple[int, ...]:
        """Returns the numbers of an attribute."""
        return tuple(map(int, self.list(name)))


def parse_warp_ir(text: str) -> WarpIR:
    """Returns the IR of a text. Raises WarploomError, with the number of the line, for what is
    none."""
    lines = _tree(text)
    try:
        return _Parser(lines).ir()
    except (KeyError, ValueError, IndexError, StopIteration, msgspec.MsgspecError) as error:
        raise WarploomError(f"this is no Warp IR: {error!r}") from error


def _tree(text: str) -> list[Line]:
    """Returns the lines of a text that are not indented, with those behind them."""
    roots: list[Line] = []
    open_lines: list[Line] = []
    for number, written in enumerate(text.splitlines(), 1):
        if not written.strip() or written.startswith("#"):
            continue
        depth = (len(written) - len(written.lstrip())) // len(INDENT)
        if depth > len(open_lines):
            raise WarploomError(f"line {number} of the Warp IR is indented too far")
        line = Line(number, written.strip())
        (open_lines[depth - 1].inner if depth else roots).append(line)
        del open_lines[depth:]
        open_lines.append(line)
    return roots


class _Parser:
    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self._registers: dict[str, Register] = {}
        for line in self._one("registers").inner:
            name, type = line.words[:2]
            self._registers[name] = Register(name, TYPES[type.removeprefix(".")])
        labels = [line.words[1] for line in self._all("block")]
        self._blocks = {label: index for index, label in enumerate((*labels, END))}

    def _all(self, word: str) -> Iterator[Line]:
        return (line for line in self._lines if line.words[0] == word)

    def _one(self, word: str) -> Line:
        found = next(self._all(word), None)
        if found is None:
            raise ValueError(f"there is no line `{word}`")
        return found

    def ir(self) -> WarpIR:
        """Returns the IR."""
        registers, regions = self._one("registers").inner, next(self._all("regions"), None)
        facts = {one.name: one.name in self._one("facts").words for one in fields(Facts)}
        variant = self._one("variant").text.partition(" ")[2]
        return WarpIR(
            name=self._one("kernel").words[1],
            variant=msgspec.json.decode(variant, type=KernelVariant),
            facts=Facts(**facts),
            registers=tuple(self._registers.values()),
            blocks=tuple(map(self._block, self._all("block"))),
            regions=None if regions is None else self._region(regions.inner[0]),
            exits=tuple(map(self._exits, self._all("exits"))),
            shapes=self._shapes((line.words[0], line.words[2:3]) for line in registers),
            memory=self._marked("memory"),
            steady=self._marked("steady"),
            reconvergence=self._reconvergence(self._one("reconvergence")),
            idle=tuple(map(self._idle, self._all("idle"))),
            block_shapes=self._shapes((line.words[0], line.list("block")) for line in registers),
            sweeps=tuple(map(self._sweep, self._all("sweep"))),
            course=tuple(map(self._sweep, self._all("course"))),
        )

    # ---- names ----------------------------------------------------------------------------------

    def _shapes(self, words: Iterable[tuple[str, list[str]]]) -> dict[Register, Shape]:
        return {
            self._registers[name]: shape
            for name, found in words
            if found and (shape := _shape(found[0])) is not None
        }

    def _marked(self, mark: str) -> frozenset[Register]:
        lines = self._one("registers").inner
        return frozenset(self._registers[line.words[0]] for line in lines if mark in line.words[2:])

    def _named(self, line: Line, name: str) -> frozenset[Register]:
        return frozenset(self._registers[one] for one in line.list(name))

    def _at(self, line: Line, name: str) -> tuple[int, ...]:
        return tuple(self._blocks[one] for one in line.list(name))

    # ---- what passes find -----------------------------------------------------------------------

    def _region(self, line: Line) -> Region:
        kind, *labels = line.words
        blocks = tuple(self._blocks[label] for label in labels)
        return Region(RegionKind(kind), blocks, tuple(map(self._region, line.inner)))

    def _reconvergence(self, line: Line) -> Reconvergence:
        return Reconvergence(
            suspends="suspends" in line.values,
            points={self._blocks[one.words[1]]: self._at(one, "waiting") for one in line.inner},
            diverged=frozenset(self._at(line, "diverged")),
            resumable=frozenset(self._at(line, "resumable")),
        )

    def _exits(self, line: Line) -> ExitRegion:
        [header], [point] = self._at(line, "header"), self._at(line, "to")
        blocks, leaving = (frozenset(self._at(line, name)) for name in ("blocks", "leaving"))
        written, kept = (self._named(line, name) for name in ("written", "kept"))
        return ExitRegion(header, blocks, leaving, point, written, kept)

    def _idle(self, line: Line) -> IdleWay:
        [site], [branch], [past] = (self._at(line, name) for name in ("site", "branch", "past"))
        taken, changed = line.numbers("taken"), self._named(line, "changed")
        ends = "ends" in line.values
        return IdleWay(site, branch, past, self._at(line, "blocks"), taken, changed, ends)

    def _sweep(self, line: Line) -> SweepPath:
        kinds = {i: kind for kind in Kind for i in line.numbers(kind.name.lower())}
        choices = dict.fromkeys(line.numbers("taken"), True)
        choices |= dict.fromkeys(line.numbers("passed"), False)
        return SweepPath(
            next(iter(self._at(line, "site")), None),
            self._at(line, "before"),
            next(iter(self._at(line, "body")), None),
            "partly" in line.values,
            self._at(line, "after"),
            choices,
            kinds,
        )

    # ---- blocks ---------------------------------------------------------------------------------

    def _block(self, line: Line) -> BasicBlock:
        listed = [one for one in line.inner if one.words[0].endswith(":")]
        beside = {one.words[0]: one for one in line.inner if one not in listed}
        branch = line.values.get("branch")
        [reconvergence] = self._at(line, "reconvergence")
        return BasicBlock(
            label=line.words[1],
            first=int(listed[0].words[0].removesuffix(":")),
            instructions=tuple(one.text.partition(": ")[2] for one in listed),
            successors=self._at(line, "to"),
            reconvergence=reconvergence,
            live=self._named(line, "live"),
            loose=self._named(line, "loose"),
            branch=None if branch is None else BranchKind(branch),
            aside=next(iter(self._at(line, "aside")), None),
            in_rounds="rounds" in line.values,
            accesses=self._accesses(beside.get("accesses")),
            masked=self._accesses(beside.get("masked")),
        )

    def _accesses(self, line: Line | None) -> BlockAccesses:
        if line is None:
            return BlockAccesses()
        groups = tuple(map(self._group, line.inner))
        return BlockAccesses(groups, has_fast_version="fast_version" in line.values)

    def _group(self, line: Line) -> AccessGroup:
        op, space, type = line.words
        parts, base = int(line.values.get("parts", 1)), _shape(line.values["lanes"])
        route = line.values.get("route", "")
        moved = access.Shape(op, Space(space), TYPES[type.removeprefix(".")], parts, route)
        multiples: dict[int, dict[Register, int]] = {}
        for one in line.list("strides"):
            index, number, name = _groups(r"(\d+):(-?\d+)\*(.+)", one)
            multiples.setdefault(int(index), {})[self._registers[name]] = int(number)
        members = (_groups(r"(\d+)([+-]\d+)", one) for one in line.list("members"))
        return AccessGroup(
            moved,
            _plan(line.values["plan"]),
            VECTOR if base is None else base,
            tuple((int(index), int(offset)) for index, offset in members),
            multiples,
            line.numbers("crossed"),
        )


def _shape(text: str) -> Shape | None:
    """Returns the shape that a word names; None of one that names none."""
    if text in ("uniform", "varying"):
        return UNIFORM if text == "uniform" else VECTOR
    found = re.fullmatch(r"affine<(-?\d+)>(?:x(\d+))?", text)
    if found is None:
        return None
    stride, run = found.groups(default=str(LANES))
    return Shape(LANES // int(run), int(stride))


def _plan(text: str) -> AccessPlan:
    pattern, guard, move, cost, end = text.upper().split("/")
    return AccessPlan(Pattern[pattern], Guard[guard], Move[move], Cost[cost], Exit[end])


def _groups(pattern: str, text: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise ValueError(f"{text} is not as expected")
    return found.groups()
