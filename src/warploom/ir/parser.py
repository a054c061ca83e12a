"""Parses the text of the Warp IR, which `ir.text` prints, back to data.

What is printed and parsed is equal to the original IR, but for `origin`, the kernel that it was
made from: an IR that was parsed can be emitted beside that kernel, and passes cannot be run on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields

import msgspec

from warploom.abi import access_type
from warploom.analysis.masked_loops import MaskedRegion
from warploom.analysis.regions import Region, RegionKind
from warploom.analysis.strided_loops import StridedLoop
from warploom.analysis.vector_shape import LANES, VARYING, VectorShape
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
    """Parses the text of a Warp IR. Raises WarploomError, with the number of the line, for text
    that is not in the form of `ir.text`."""
    return _Parser(tree_of(text)).ir()


KEYWORDS = (
    *("kernel", "variant", "facts", "registers", "regions", "reconvergence", "exits", "block"),
    *("strided", "warp_loop", "scheduled_loop"),
)
"""The first words of lines that are not indented."""


class _Parser:
    """Builds the data from the tree of lines; registers and labels of blocks are looked up by name.
    Its methods take one line each and return the data that `ir.text` printed as that line."""

    def __init__(self, lines: list[Line]) -> None:
        """Sorts the lines by their keywords, and reads the names of registers and blocks, which
        other lines refer to."""
        self._lines: dict[str, list[Line]] = {word: [] for word in KEYWORDS}
        for line in lines:
            line.read(lambda line: self._lines[line.words[0]]).append(line)
        self._declared = self._one("registers").inner
        registers = (line.read(_register) for line in self._declared)
        self._registers = {register.name: register for register in registers}
        labels = [line.read(lambda line: line.words[1]) for line in self._lines["block"]]
        self._blocks = {label: index for index, label in enumerate((*labels, END))}

    def _one(self, word: str) -> Line:
        """Returns the only line that begins with a keyword. Raises WarploomError if there are none
        or several."""
        if len(self._lines[word]) != 1:
            raise WarploomError(f"the Warp IR has {len(self._lines[word])} lines `{word}`, not one")
        return self._lines[word][0]

    def _each(self, word: str, reader: Callable[[Line], Read]) -> tuple[Read, ...]:
        """Applies a reader to each line that begins with a keyword."""
        return tuple(line.read(reader) for line in self._lines[word])

    def ir(self) -> WarpIR:
        """Returns the whole IR, without `origin`."""
        return WarpIR(
            name=self._one("kernel").read(lambda line: line.words[1]),
            variant=self._one("variant").read(_variant),
            access_facts=self._one("facts").read(_facts),
            registers=tuple(self._registers.values()),
            blocks=self._each("block", self._block),
            regions=next(
                iter(self._each("regions", lambda each: self._region(each.inner[0]))), None
            ),
            exits=self._each("exits", self._exits),
            shapes=self._shapes((line.words[0], line.words[2:3]) for line in self._declared),
            spilled=self._registers_with("spilled"),
            scattered=self._registers_with("scattered"),
            reconvergence=self._one("reconvergence").read(self._reconvergence),
            block_shapes=self._shapes(
                (each.words[0], each.list("block")) for each in self._declared
            ),
            strided_loops=self._each("strided", self._strided),
            warp_loops=self._each("warp_loop", self._warp_loop),
            static_schedule=self._each("scheduled_loop", self._warp_loop),
        )

    # ---- names ----------------------------------------------------------------------------------

    def _shapes(self, words: Iterable[tuple[str, list[str]]]) -> dict[Register, VectorShape]:
        """Returns the vector shapes of registers, from pairs of a name and a list of texts, of
        which the first is read if it is a shape."""
        return {
            self._registers[name]: shape
            for name, texts in words
            if texts and (shape := _shape(texts[0])) is not None
        }

    def _registers_with(self, mark: str) -> frozenset[Register]:
        """Returns the declared registers whose line has the word `mark`, such as `spilled`."""
        lines = (line for line in self._declared if mark in line.words[2:])
        return frozenset(self._registers[line.words[0]] for line in lines)

    def _registers_of(self, line: Line, name: str) -> frozenset[Register]:
        """Returns the registers that an attribute lists."""
        return frozenset(self._registers[each] for each in line.list(name))

    def _block_numbers(self, line: Line, name: str) -> tuple[int, ...]:
        """Returns the numbers of the basic blocks whose labels an attribute lists."""
        return tuple(self._blocks[each] for each in line.list(name))

    # ---- what passes find -----------------------------------------------------------------------

    def _region(self, line: Line) -> Region:
        """Returns the region that a line describes, with the inner regions that its inner lines
        describe."""
        kind, *labels = line.words
        blocks = tuple(self._blocks[label] for label in labels)
        return Region(RegionKind(kind), blocks, tuple(map(self._region, line.inner)))

    def _reconvergence(self, line: Line) -> Reconvergence:
        """Returns where lanes reconverge, wait and resume; each inner line describes a
        reconvergence point."""
        return Reconvergence(
            suspends="suspends" in line.values,
            points={
                self._blocks[each.words[1]]: self._block_numbers(each, "waiting")
                for each in line.inner
            },
            diverged=frozenset(self._block_numbers(line, "diverged")),
            resumable=frozenset(self._block_numbers(line, "resumable")),
        )

    def _exits(self, line: Line) -> MaskedRegion:
        """Returns the masked region that a line describes."""
        [header], [point] = self._block_numbers(line, "header"), self._block_numbers(line, "to")
        blocks, exits = (frozenset(self._block_numbers(line, name)) for name in ("blocks", "exits"))
        written, kept = (self._registers_of(line, name) for name in ("written", "kept"))
        return MaskedRegion(header, blocks, exits, point, written, kept)

    def _strided(self, line: Line) -> BatchedLoop:
        """Returns a batched loop, with its assumed shapes and access groups."""
        words = (each.rpartition(":") for each in line.list("shapes"))
        shapes = self._shapes((name, [shape]) for name, _, shape in words)
        groups = tuple(each.read(self._group) for each in line.inner)
        return BatchedLoop(self._strided_loop(line), shapes, groups)

    def _strided_loop(self, line: Line) -> StridedLoop:
        """Returns the strided loop that the line of a batched loop describes."""
        widened = (_match_groups(r"(\d+):(\d+)", each) for each in line.list("widened"))
        return StridedLoop(
            self._block_numbers(line, "blocks"),
            line.numbers("advances"),
            tuple((int(index), int(source)) for index, source in widened),
            line.numbers("compared"),
            line.numbers("accesses"),
        )

    def _warp_loop(self, line: Line) -> WarpLoopPath:
        """Returns the path of a warp loop, also of one in the static schedule."""
        kinds = {i: kind for kind in StepKind for i in line.numbers(kind.name.lower())}
        choices = dict.fromkeys(line.numbers("taken"), True)
        choices |= dict.fromkeys(line.numbers("passed"), False)
        return WarpLoopPath(
            next(iter(self._block_numbers(line, "site")), None),
            self._block_numbers(line, "before"),
            next(iter(self._block_numbers(line, "body")), None),
            "partly" in line.values,
            self._block_numbers(line, "after"),
            choices,
            kinds,
        )

    # ---- blocks ---------------------------------------------------------------------------------

    def _block(self, line: Line) -> BasicBlock:
        """Returns a basic block. Its inner lines are instructions, which begin with a number, and
        access groups."""
        instruction_lines = [each for each in line.inner if each.words[0].endswith(":")]
        beside = {each.words[0]: each for each in line.inner if each not in instruction_lines}
        branch = line.values.get("branch")
        [reconvergence] = self._block_numbers(line, "reconvergence")
        return BasicBlock(
            label=line.words[1],
            first=int(instruction_lines[0].words[0].removesuffix(":")),
            instructions=tuple(each.text.partition(": ")[2] for each in instruction_lines),
            successors=self._block_numbers(line, "to"),
            reconvergence=reconvergence,
            live=self._registers_of(line, "live"),
            loose=self._registers_of(line, "loose"),
            branch=None if branch is None else BranchKind(branch),
            predicated_block=next(iter(self._block_numbers(line, "predicated")), None),
            in_region_version="region_version" in line.values,
            accesses=self._accesses(beside.get("accesses")),
            masked=self._accesses(beside.get("masked")),
        )

    def _accesses(self, line: Line | None) -> BlockAccesses:
        """Returns the access groups of a block; no groups if the line is missing."""
        if line is None:
            return BlockAccesses()
        groups = tuple(each.read(self._group) for each in line.inner)
        return BlockAccesses(groups, has_fast_version="fast_version" in line.values)

    def _group(self, line: Line) -> AccessGroup:
        """Returns an access group, whose words are operation, space and type."""
        op, space, type = line.words
        parts, base = int(line.values.get("parts", 1)), _shape(line.values["lanes"])
        route = line.values.get("route", "").replace("_", " ")
        moved = access_type.AccessType(
            op, Space(space), TYPES[type.removeprefix(".")], parts, route
        )
        members = (_match_groups(r"(\d+)([+-]\d+)", each) for each in line.list("members"))
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
    return Facts(**{each.name: each.name in line.words for each in fields(Facts)})


def _shape(text: str) -> VectorShape | None:
    """Returns the vector shape that a word names (`ir.text.shape_text`), or None."""
    if text == "varying":
        return VARYING
    match = re.fullmatch(r"(?:uniform|affine<(-?\d+)>)(?:x(\d+))?(?:&(-?0x[\da-f]+))?", text)
    if match is None:
        return None
    stride, run, ones = match.groups()
    return VectorShape(LANES // int(run or LANES), int(stride or 0), int(ones or "-1", 16))


def _plan(text: str) -> AccessPlan:
    """Returns the access plan of a text `pattern/guard/move/cost/exit`."""
    pattern, guard, move, cost, end = text.upper().split("/")
    return AccessPlan(Pattern[pattern], Guard[guard], Move[move], Cost[cost], Exit[end])


def _match_groups(pattern: str, text: str) -> tuple[str, ...]:
    """Returns the groups of a regular expression that a whole text matches. Raises ValueError if it
    does not."""
    match = re.fullmatch(pattern, text)
    if match is None:
        raise ValueError(f"{text} is not as expected")
    return match.groups()
