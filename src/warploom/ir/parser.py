"""Parses the text of the Warp IR, which `ir.text` prints, back to data.

What is printed and parsed is equal to the original IR: passes can be run on it, and code can be
emitted from it. An IR that no passes could have made is an error (`passes.verifier`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from itertools import chain

import msgspec

from warploom.abi import access_type
from warploom.abi.environment import CountLayout
from warploom.core.errors import WarploomError
from warploom.core.types import TYPES
from warploom.cost.device_rules import AccessRules
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import AccessPlan, Cost, Exit, Guard, Move, Pattern
from warploom.ir.lines import Line, Read, tree_of
from warploom.ir.loops import BatchedLoop, StepKind, StridedLoop, WarpLoopPath
from warploom.ir.program_parser import ProgramParser
from warploom.ir.text import END
from warploom.ir.variant import KernelVariant
from warploom.ir.warp_ir import BasicBlock, BlockAccesses, BranchKind, Reconvergence, WarpIR
from warploom.isa.instruction import Register, Space
from warploom.program.masked_loops import MaskedRegion
from warploom.program.regions import Region, RegionKind, regions
from warploom.shapes.vector_shape import LANES, VARYING, VectorShape


def parse_warp_ir(text: str) -> WarpIR:
    """Parses the text of a Warp IR. Raises WarploomError for text that is not in the form of
    `ir.text`, with the number of the line. Does not check that the data are consistent:
    `passes.verifier` does."""
    return _Parser(tree_of(text)).ir()


KEYWORDS = (
    *("kernel", "variant", "rules", "memory", "variables", "globals", "functions", "registers"),
    *("labels", "regions", "reconvergence", "exits", "block", "strided", "warp_loop"),
    "scheduled_loop",
)
"""The first words of lines that are not indented."""


class _Parser:
    """Builds the data from the tree of lines; registers and labels of blocks are looked up by name.
    Its methods read one line each and return the data that `ir.text` printed as that line."""

    def __init__(self, lines: list[Line]) -> None:
        """Sorts the lines by their keywords, and reads the names of registers and blocks, which
        other lines refer to. Raises WarploomError for an unknown keyword, or unless there is one
        line `registers`."""
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
            raise WarploomError(f"the Warp IR has {len(self._lines[word])} `{word}` lines, not one")
        return self._lines[word][0]

    def _each(self, word: str, reader: Callable[[Line], Read]) -> tuple[Read, ...]:
        """Returns the results of a reader for each line that begins with a keyword."""
        return tuple(line.read(reader) for line in self._lines[word])

    def ir(self) -> WarpIR:
        """Returns the whole IR: first its program, by whose registers and blocks the other lines
        are read. Raises WarploomError for a missing or repeated section, and for regions, live
        registers or reconvergence points that are not those of the program."""
        for word in ("memory", "variables", "labels"):
            self._one(word)
        name = self._one("kernel").read(lambda line: line.words[1])
        self._program = ProgramParser(self._registers, self._blocks).program(name, self._lines)
        self._one("regions").read(self._check_regions)
        rules, variant = self._one("rules").read(_rules), self._one("variant").read(_variant)
        return WarpIR(
            layout=CountLayout(self._program, rules, variant.warp_layout),
            variant=variant,
            blocks=self._each("block", self._block),
            plans=dict(chain(*self._each("block", self._plans))),
            exits=self._each("exits", self._exits),
            shapes=self._shapes((line.words[0], line.words[2:3]) for line in self._declared),
            spilled=self._registers_with("spilled"),
            scattered=self._registers_with("scattered"),
            reconvergence=self._one("reconvergence").read(self._reconvergence),
            block_shapes=self._shapes(
                (block_line.words[0], block_line.list("block")) for block_line in self._declared
            ),
            strided_loops=self._each("strided", self._strided),
            warp_loops=self._each("warp_loop", self._warp_loop),
            static_schedule=self._each("scheduled_loop", self._warp_loop),
        )

    # ---- names ----------------------------------------------------------------------------------

    def _shapes(self, words: Iterable[tuple[str, list[str]]]) -> dict[Register, VectorShape]:
        """Returns the vector shapes of registers, from pairs of a register's name and a list of
        words that begins with its shape. A register has none if the list is empty or begins with
        another word."""
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
        """Returns the registers that an attribute lists. Raises KeyError for a name that is not
        declared."""
        return frozenset(self._registers[register] for register in line.list(name))

    def _block_numbers(self, line: Line, name: str) -> tuple[int, ...]:
        """Returns the numbers of the basic blocks whose labels an attribute lists."""
        return tuple(self._blocks[label] for label in line.list(name))

    # ---- what passes find -----------------------------------------------------------------------

    def _check_regions(self, line: Line) -> None:
        """Raises ValueError if the region tree of a text is not that of its program."""
        if self._region(line.inner[0]) != regions(self._program):
            raise ValueError("the regions differ from those of the program")

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
                self._blocks[inner.words[1]]: self._block_numbers(inner, "waiting")
                for inner in line.inner
            },
            diverged=frozenset(self._block_numbers(line, "diverged")),
            resumable=frozenset(self._block_numbers(line, "resumable")),
        )

    def _exits(self, line: Line) -> MaskedRegion:
        """Returns the masked region that a line describes."""
        [header], [point] = self._block_numbers(line, "header"), self._block_numbers(line, "to")
        blocks, exits = (frozenset(self._block_numbers(line, name)) for name in ("blocks", "exits"))
        written, retained = (self._registers_of(line, name) for name in ("written", "retained"))
        return MaskedRegion(header, blocks, exits, point, written, retained)

    def _strided(self, line: Line) -> BatchedLoop:
        """Returns a batched loop, with its assumed shapes and access groups."""
        words = (entry.rpartition(":") for entry in line.list("shapes"))
        shapes = self._shapes((name, [shape]) for name, _, shape in words)
        groups = tuple(inner.read(self._group) for inner in line.inner)
        return BatchedLoop(self._strided_loop(line), shapes, groups)

    def _strided_loop(self, line: Line) -> StridedLoop:
        """Returns the strided loop that the line of a batched loop describes."""
        widened = (_match_groups(r"(\d+):(\d+)", entry) for entry in line.list("widened"))
        compared = (_match_groups(r"(\d+):(\w+)", entry) for entry in line.list("compared"))
        return StridedLoop(
            self._block_numbers(line, "blocks"),
            line.numbers("advances"),
            tuple((int(index), int(source)) for index, source in widened),
            tuple((int(index), relation) for index, relation in compared),
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
            "allows_partial_warp" in line.values,
            self._block_numbers(line, "after"),
            choices,
            kinds,
            next(iter(line.numbers("condition")), None),
            *(self._groups_with(line, word) for word in ("full", "partial")),
        )

    def _groups_with(self, line: Line, word: str) -> tuple[AccessGroup, ...]:
        """Returns the access groups of the inner lines that begin with a word."""
        lines = (inner for inner in line.inner if inner.words[0] == word)
        return tuple(inner.read(self._group) for inner in lines)

    # ---- blocks ---------------------------------------------------------------------------------

    def _block(self, line: Line) -> BasicBlock:
        """Reads the line of a basic block: its varying registers, its branch, its predicated block,
        whether it is in a region version, and, from inner lines, its access groups. Live registers
        and reconvergence point are only compared with those of the program: raises ValueError if
        they differ. Inner lines of other kinds are not read here."""
        index, program = self._blocks[line.words[1]], self._program
        if self._registers_of(line, "live") != program.live_in[index]:
            raise ValueError(f"the live registers of {line.words[1]} differ from the program's")
        if self._block_numbers(line, "reconvergence") != (program.reconvergence[index],):
            raise ValueError(
                f"the reconvergence point of {line.words[1]} differs from the program's"
            )
        beside = {inner.words[0]: inner for inner in line.inner}
        branch = line.values.get("branch")
        return BasicBlock(
            varying=self._registers_of(line, "varying"),
            branch=None if branch is None else BranchKind(branch),
            predicated_block=next(iter(self._block_numbers(line, "predicated")), None),
            in_region_version="region_version" in line.values,
            accesses=self._accesses(beside.get("accesses")),
            masked=self._accesses(beside.get("masked")),
        )

    def _plans(self, line: Line) -> list[tuple[tuple[int, Space], AccessPlan]]:
        """Returns the plans for any addresses of a block's operations, by operation and space.
        `line` is the block's; the lines inside it that begin with an operation's number have its
        plans, each as `space:plan`, in their list `plan`."""
        named = (
            (int(inner.words[0].removesuffix(":")), plan.partition(":"))
            for inner in line.inner
            for plan in inner.list("plan")
            if inner.words[0].endswith(":")
        )
        return [((index, Space(space)), _plan(plan)) for index, (space, _, plan) in named]

    def _accesses(self, line: Line | None) -> BlockAccesses:
        """Returns the access groups of a block and whether it has a fast version; no groups, and
        none, if the line is missing."""
        if line is None:
            return BlockAccesses()
        groups = tuple(inner.read(self._group) for inner in line.inner)
        return BlockAccesses(groups, has_fast_version="fast_version" in line.values)

    def _group(self, line: Line) -> AccessGroup:
        """Returns an access group, whose words are operation, space and type."""
        op, space, type = line.words[-3:]
        parts, base = int(line.values.get("parts", 1)), _shape(line.values["lanes"])
        route = line.values.get("route", "").replace("_", " ")
        moved = access_type.AccessType(
            op, Space(space), TYPES[type.removeprefix(".")], parts, route
        )
        members = (_match_groups(r"(\d+)([+-]\d+)", member) for member in line.list("members"))
        return AccessGroup(
            moved,
            _plan(line.values["plan"]),
            VARYING if base is None else base,
            tuple((int(index), int(offset)) for index, offset in members),
            line.numbers("crossed"),
        )


def _register(line: Line) -> Register:
    """Returns the register that a line declares by its name and type. Raises KeyError for an
    unknown type."""
    return Register(line.words[0], TYPES[line.words[1].removeprefix(".")])


def _variant(line: Line) -> KernelVariant:
    """Returns the kernel variant that a line describes by a JSON object after its keyword."""
    return msgspec.json.decode(line.text.partition(" ")[2], type=KernelVariant)


def _rules(line: Line) -> AccessRules:
    """Returns the rules that count accesses; each inner line is a path through simulated caches."""
    paths: dict[tuple[str, str, str], int] = {}
    for inner in line.inner:
        space, op, route = inner.words[0].replace("_", " ").split("/")
        paths[space, op, route] = int(inner.words[1])
    names = {
        field.name: line.values[field.name]
        for field in fields(AccessRules)
        if field.name != "paths"
    }
    return AccessRules(**names, paths=paths)


def _shape(text: str) -> VectorShape | None:
    """Returns the vector shape that a word names (`ir.text.shape_text`), or None for another
    word."""
    if text == "varying":
        return VARYING
    runs = r"(?:x(\d+))?(?:r(\d+))?"
    match = re.fullmatch(rf"(?:uniform|affine<(-?\d+)>){runs}(?:&(-?0x[\da-f]+))?", text)
    if match is None:
        return None
    stride, length, repeats, ones_mask = match.groups()
    repeated = int(repeats or 1)
    width = LANES // int(length or LANES) // repeated
    return VectorShape(width, int(stride or 0), int(ones_mask or "-1", 16), repeated)


def _plan(text: str) -> AccessPlan:
    """Returns the access plan of a text `pattern/guard/move/cost/exit`."""
    pattern, guard, move, cost, end = text.upper().split("/")
    return AccessPlan(Pattern[pattern], Guard[guard], Move[move], Cost[cost], Exit[end])


def _match_groups(pattern: str, text: str) -> tuple[str, ...]:
    """Returns the groups of a regular expression that a whole text matches. Raises ValueError if it
    does not."""
    match = re.fullmatch(pattern, text)
    if match is None:
        raise ValueError(f"{text} does not have the expected form")
    return match.groups()
