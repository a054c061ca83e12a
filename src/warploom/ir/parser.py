"""Reads the text of the Warp IR (`ir.text`) back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields

import msgspec

from warploom.abi import access_type
from warploom.analysis.masked_loops import MaskedRegion as ExitRegion
from warploom.analysis.regions import Region, RegionKind
from warploom.analysis.strided_loops import StridedLoop
from warploom.analysis.vector_shape import LANES, UNIFORM, VARYING, VectorShape
from warploom.analysis.warp_loops import StepKind, WarpLoopPath
from warploom.core.errors import WarploomError
from warploom.core.types import TYPES
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import AccessPlan, Cost, Exit, Facts, Guard, Move, Pattern
from warploom.ir.lines import Line, Read, tree_of
from warploom.ir.text import END
from warploom.ir.variant import KernelVariant
from warploom.ir.warp_ir import (
    BasicBlock,
    BatchedLoop,
    BlockAccesses,
    BranchKind,
    Reconvergence,
    WarpIR,
)
from warploom.ptx.ir import Register, Space


def parse_warp_ir(text: str) -> WarpIR:
    """Returns the IR of a text. Raises WarploomError, with the number of the line, for what is
    none."""
    return _Parser(tree_of(text)).ir()


KEYWORDS = (
    *("kernel", "variant", "facts", "registers", "regions", "reconvergence", "exits", "block"),
    *("strided", "warp_loop", "scheduled_loop"),
)
"""What a line that is not indented begins with."""


class _Parser:
    def __init__(self, lines: list[Line]) -> None:
        self._lines: dict[str, list[Line]] = {word: [] for word in KEYWORDS}
        for line in lines:
            line.read(lambda line: self._lines[line.words[0]]).append(line)
        self._declared = self._one("registers").inner
        registers = (line.read(_register) for line in self._declared)
        self._registers = {register.name: register for register in registers}
        labels = [line.read(lambda line: line.words[1]) for line in self._lines["block"]]
        self._blocks = {label: index for index, label in enumerate((*labels, END))}

    def _one(self, word: str) -> Line:
        if len(self._lines[word]) != 1:
            raise WarploomError(f"the Warp IR has {len(self._lines[word])} lines `{word}`, not one")
        return self._lines[word][0]

    def _each(self, word: str, reader: Callable[[Line], Read]) -> tuple[Read, ...]:
        return tuple(line.read(reader) for line in self._lines[word])

    def ir(self) -> WarpIR:
        """Returns the IR."""
        return WarpIR(
            name=self._one("kernel").read(lambda line: line.words[1]),
            variant=self._one("variant").read(_variant),
            access_facts=self._one("facts").read(_facts),
            registers=tuple(self._registers.values()),
            blocks=self._each("block", self._block),
            regions=next(iter(self._each("regions", lambda one: self._region(one.inner[0]))), None),
            exits=self._each("exits", self._exits),
            shapes=self._shapes((line.words[0], line.words[2:3]) for line in self._declared),
            spilled=self._marked("spilled"),
            scattered=self._marked("scattered"),
            reconvergence=self._one("reconvergence").read(self._reconvergence),
            block_shapes=self._shapes((one.words[0], one.list("block")) for one in self._declared),
            strided_loops=self._each("strided", self._strided),
            warp_loops=self._each("warp_loop", self._warp_loop),
            static_schedule=self._each("scheduled_loop", self._warp_loop),
        )

    # ---- names ----------------------------------------------------------------------------------

    def _shapes(self, words: Iterable[tuple[str, list[str]]]) -> dict[Register, VectorShape]:
        return {
            self._registers[name]: shape
            for name, found in words
            if found and (shape := _shape(found[0])) is not None
        }

    def _marked(self, mark: str) -> frozenset[Register]:
        lines = (line for line in self._declared if mark in line.words[2:])
        return frozenset(self._registers[line.words[0]] for line in lines)

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
        blocks, exits = (frozenset(self._at(line, name)) for name in ("blocks", "exits"))
        written, kept = (self._named(line, name) for name in ("written", "kept"))
        return ExitRegion(header, blocks, exits, point, written, kept)

    def _strided(self, line: Line) -> BatchedLoop:
        words = (one.rpartition(":") for one in line.list("shapes"))
        shapes = self._shapes((name, [shape]) for name, _, shape in words)
        groups = tuple(one.read(self._group) for one in line.inner)
        return BatchedLoop(self._strided_loop(line), shapes, groups)

    def _strided_loop(self, line: Line) -> StridedLoop:
        widened = (_groups(r"(\d+):(\d+)", one) for one in line.list("widened"))
        return StridedLoop(
            self._at(line, "blocks"),
            line.numbers("advances"),
            tuple((int(index), int(source)) for index, source in widened),
            line.numbers("compared"),
            line.numbers("accesses"),
        )

    def _warp_loop(self, line: Line) -> WarpLoopPath:
        kinds = {i: kind for kind in StepKind for i in line.numbers(kind.name.lower())}
        choices = dict.fromkeys(line.numbers("taken"), True)
        choices |= dict.fromkeys(line.numbers("passed"), False)
        return WarpLoopPath(
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
        instruction_lines = [one for one in line.inner if one.words[0].endswith(":")]
        beside = {one.words[0]: one for one in line.inner if one not in instruction_lines}
        branch = line.values.get("branch")
        [reconvergence] = self._at(line, "reconvergence")
        return BasicBlock(
            label=line.words[1],
            first=int(instruction_lines[0].words[0].removesuffix(":")),
            instructions=tuple(one.text.partition(": ")[2] for one in instruction_lines),
            successors=self._at(line, "to"),
            reconvergence=reconvergence,
            live=self._named(line, "live"),
            loose=self._named(line, "loose"),
            branch=None if branch is None else BranchKind(branch),
            predicated_block=next(iter(self._at(line, "predicated")), None),
            in_region_version="region_version" in line.values,
            accesses=self._accesses(beside.get("accesses")),
            masked=self._accesses(beside.get("masked")),
        )

    def _accesses(self, line: Line | None) -> BlockAccesses:
        if line is None:
            return BlockAccesses()
        groups = tuple(one.read(self._group) for one in line.inner)
        return BlockAccesses(groups, has_fast_version="fast_version" in line.values)

    def _group(self, line: Line) -> AccessGroup:
        op, space, type = line.words
        parts, base = int(line.values.get("parts", 1)), _shape(line.values["lanes"])
        route = line.values.get("route", "").replace("_", " ")
        moved = access_type.AccessType(
            op, Space(space), TYPES[type.removeprefix(".")], parts, route
        )
        members = (_groups(r"(\d+)([+-]\d+)", one) for one in line.list("members"))
        return AccessGroup(
            moved,
            _plan(line.values["plan"]),
            VARYING if base is None else base,
            tuple((int(index), int(offset)) for index, offset in members),
            line.numbers("crossed"),
        )


def _register(line: Line) -> Register:
    return Register(line.words[0], TYPES[line.words[1].removeprefix(".")])


def _variant(line: Line) -> KernelVariant:
    return msgspec.json.decode(line.text.partition(" ")[2], type=KernelVariant)


def _facts(line: Line) -> Facts:
    return Facts(**{one.name: one.name in line.words for one in fields(Facts)})


def _shape(text: str) -> VectorShape | None:
    """Returns the shape that a word names; None of one that names none."""
    if text in ("uniform", "varying"):
        return UNIFORM if text == "uniform" else VARYING
    found = re.fullmatch(r"affine<(-?\d+)>(?:x(\d+))?", text)
    if found is None:
        return None
    stride, run = found.groups(default=str(LANES))
    return VectorShape(LANES // int(run), int(stride))


def _plan(text: str) -> AccessPlan:
    pattern, guard, move, cost, end = text.upper().split("/")
    return AccessPlan(Pattern[pattern], Guard[guard], Move[move], Cost[cost], Exit[end])


def _groups(pattern: str, text: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise ValueError(f"{text} is not as expected")
    return found.groups()
