"""Prints the Warp IR as text that `ir.parser` reads back.

A line is a keyword, words, then attributes `name=value`, whose values may be lists separated by
commas; lines that belong to a line follow it with deeper indentation. Attributes that are empty or
false are omitted. Lines that begin with `#` are comments.

    block b5 to=b6 reconvergence=b6 region_version=yes live=%r14,%r2,%rd2
      25: ld.shared.f32 %f1, [%r2];
      accesses
        load shared .f32 lanes=affine<4> members=25+0 plan=consecutive/cache/vector/cache/general
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, cast

import msgspec

from warploom.analysis.masked_loops import MaskedRegion
from warploom.analysis.regions import Region
from warploom.analysis.vector_shape import LANES, VARYING, VectorShape
from warploom.analysis.warp_loops import StepKind, WarpLoopPath
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import AccessPlan
from warploom.ir.warp_ir import BasicBlock, BatchedLoop, BlockAccesses, WarpIR
from warploom.ptx.ir import Register

INDENT = "  "
END = "exit"
"""The label that follows those of all blocks: the end of the program."""

Attribute = str | int | bool | Iterable[str] | None


def print_warp_ir(ir: WarpIR) -> str:
    """Returns the text of an IR, which ends with a line break."""
    return "\n".join(_Printer(ir).lines()) + "\n"


def attributes(**values: Attribute) -> str:
    """Returns attributes as text ` name=value ...`; those that are None, False or empty are
    omitted, True is `yes`, and several values are joined by commas."""
    words: list[str] = []
    for name, value in values.items():
        if isinstance(value, bool):
            words += [f"{name}=yes"] if value else []
        elif isinstance(value, str | int):
            words.append(f"{name}={value}")
        elif value is not None and (joined := ",".join(value)):
            words.append(f"{name}={joined}")
    return "".join(f" {word}" for word in words)


def shape_text(shape: VectorShape) -> str:
    """Returns the text of a vector shape: `uniform`, `varying`, `affine<STRIDE>`, or
    `affine<STRIDE>xLANES` for runs of fewer than 32 lanes; with `&ONES` if not all bits may be 1 in
    the first value of a run."""
    if shape == VARYING:
        return "varying"
    ones = "" if shape.ones == -1 else f"&{shape.ones:#x}"
    if shape == VectorShape(1):
        return f"uniform{ones}"
    runs = "" if shape.width == 1 else f"x{LANES // shape.width}"
    return f"affine<{shape.stride}>{runs}{ones}"


def plan_text(plan: AccessPlan) -> str:
    """Returns the text of a plan: pattern/guard/move/cost/exit."""
    chosen = (plan.pattern, plan.guard, plan.move, plan.cost, plan.exit)
    return "/".join(one.name.lower() for one in chosen)


def _plain(value: Any) -> Any:
    """Returns a dataclass of options as JSON values: enumerations by value, sets sorted, fields
    with their default value omitted."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset | tuple):
        parts = [_plain(one) for one in cast("Iterable[object]", value)]
        return sorted(parts) if isinstance(value, frozenset) else parts
    if not is_dataclass(value):
        return value
    options = ((one, getattr(value, one.name)) for one in fields(value))
    return {one.name: _plain(option) for one, option in options if option != one.default}


class _Printer:
    """Prints one IR: each method returns the line, or yields the lines, of one part."""

    def __init__(self, ir: WarpIR) -> None:
        self.ir = ir

    def lines(self) -> Iterator[str]:
        """Yields the lines of the text: name, variant, facts, registers, regions, reconvergence,
        masked regions, blocks, and loops."""
        ir = self.ir
        yield f"kernel {ir.name}"
        yield f"variant {msgspec.json.encode(_plain(ir.variant)).decode()}"
        facts = (one.name for one in fields(ir.access_facts) if getattr(ir.access_facts, one.name))
        yield "facts" + "".join(f" {name}" for name in facts)
        yield "registers"
        yield from map(self._register, ir.registers)
        if ir.regions is not None:
            yield "regions"
            yield from self._region(ir.regions, INDENT)
        reconvergence = ir.reconvergence
        yield "reconvergence" + attributes(
            suspends=reconvergence.suspends,
            diverged=self._labels(sorted(reconvergence.diverged)),
            resumable=self._labels(sorted(reconvergence.resumable)),
        )
        for point, waiting in reconvergence.points.items():
            yield f"{INDENT}at {self._label(point)}{attributes(waiting=self._labels(waiting))}"
        yield from (f"exits{self._exits(region)}" for region in ir.exits)
        for block in ir.blocks:
            yield from self._block(block)
        for batched in ir.strided_loops:
            yield f"strided{self._strided(batched)}"
            yield from (f"{INDENT}{_group(group)}" for group in batched.groups)
        yield from (f"warp_loop{self._warp_loop(path)}" for path in ir.warp_loops)
        yield from (f"scheduled_loop{self._warp_loop(path)}" for path in ir.static_schedule)

    def _label(self, index: int) -> str:
        """Returns the label of a block; that of the program's end for the number after the last
        block."""
        return self.ir.blocks[index].label if index < len(self.ir.blocks) else END

    def _labels(self, indices: Iterable[int]) -> list[str]:
        return [self._label(index) for index in indices]

    def _register(self, register: Register) -> str:
        """Returns a register's line: its name, type, shape if it is uniform or affine, `spilled`,
        `scattered`, and its shape across the thread block."""
        ir, words = self.ir, [register.name, str(register.type)]
        words += [shape_text(ir.shapes[register])] if register in ir.shapes else []
        words += ["spilled"] if register in ir.spilled else []
        words += ["scattered"] if register in ir.scattered else []
        block_shape = ir.block_shapes.get(register)
        return INDENT + " ".join(words) + attributes(block=block_shape and shape_text(block_shape))

    def _region(self, region: Region, indent: str) -> Iterator[str]:
        """Yields the lines of a region and, indented, of its inner regions."""
        words = [region.kind.value, *self._labels(region.blocks)]
        yield indent + " ".join(words)
        for one in region.inner:
            yield from self._region(one, indent + INDENT)

    def _exits(self, region: MaskedRegion) -> str:
        """Returns the text of a masked region's attributes."""
        return attributes(
            header=self._label(region.header),
            blocks=self._labels(sorted(region.blocks)),
            exits=self._labels(sorted(region.exits)),
            to=self._label(region.point),
            written=_names(region.written),
            kept=_names(region.merged),
        )

    def _strided(self, batched: BatchedLoop) -> str:
        """Returns the text of a batched loop's attributes, but for its access groups."""
        loop = batched.loop
        return attributes(
            shapes=sorted(f"{r.name}:{shape_text(s)}" for r, s in batched.shapes.items()),
            blocks=self._labels(loop.blocks),
            advances=map(str, loop.advances),
            widened=(f"{index}:{source}" for index, source in loop.widened),
            compared=map(str, loop.compared),
            accesses=map(str, loop.accesses),
        )

    def _warp_loop(self, path: WarpLoopPath) -> str:
        """Returns the attributes of the path of a warp loop: its blocks, uniform branches by
        whether they are taken, and instructions by their kinds."""
        kinds = {
            kind.name.lower(): [str(i) for i, one in sorted(path.kinds.items()) if one is kind]
            for kind in StepKind
        }
        return attributes(
            site=None if path.site is None else self._label(path.site),
            before=self._labels(path.before),
            body=None if path.body is None else self._label(path.body),
            partly=path.partly,
            after=self._labels(path.after),
            taken=(str(i) for i, taken in path.choices.items() if taken),
            passed=(str(i) for i, taken in path.choices.items() if not taken),
            **kinds,
        )

    # ---- blocks ---------------------------------------------------------------------------------

    def _block(self, block: BasicBlock) -> Iterator[str]:
        """Yields the lines of a basic block: its attributes, instructions, and access groups."""
        yield f"block {block.label}" + attributes(
            to=self._labels(block.successors),
            reconvergence=self._label(block.reconvergence),
            branch=block.branch and block.branch.value,
            predicated=None
            if block.predicated_block is None
            else self._label(block.predicated_block),
            region_version=block.in_region_version,
            live=_names(block.live),
            loose=_names(block.loose),
        )
        for number, text in enumerate(block.instructions, block.first):
            yield f"{INDENT}{number}: {text}"
        yield from self._accesses("accesses", block.accesses)
        yield from self._accesses("masked", block.masked)

    def _accesses(self, word: str, accesses: BlockAccesses) -> Iterator[str]:
        """Yields the lines of a block's access groups under a heading; none if there are no
        groups."""
        if accesses != BlockAccesses():
            yield INDENT + word + attributes(fast_version=accesses.has_fast_version)
            yield from (f"{INDENT * 2}{_group(group)}" for group in accesses.groups)


def _group(group: AccessGroup) -> str:
    """Returns the line of an access group: operation, space, type, and attributes with its members
    and plan."""
    shape = group.shape
    return f"{shape.op} {shape.space.value} {shape.type}" + attributes(
        parts=shape.parts if shape.parts > 1 else None,
        route=shape.route.replace(" ", "_") or None,
        lanes=shape_text(group.base),
        members=(f"{index}{offset:+}" for index, offset in group.members),
        plan=plan_text(group.plan),
        crossed=map(str, group.crossed),
    )


def _names(registers: Iterable[Register]) -> list[str]:
    return sorted(register.name for register in registers)
