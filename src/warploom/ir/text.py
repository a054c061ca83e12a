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

from warploom.cost.device_rules import AccessRules
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import AccessPlan
from warploom.ir.lines import INDENT, attributes
from warploom.ir.loops import BatchedLoop, StepKind, WarpLoopPath
from warploom.ir.program_text import label_lines, memory_lines, operation_lines
from warploom.ir.warp_ir import BasicBlock, BlockAccesses, WarpIR
from warploom.isa.instruction import Register
from warploom.program.masked_loops import MaskedRegion
from warploom.program.regions import Region, regions
from warploom.shapes.vector_shape import VARYING, VectorShape

END = "exit"
"""The label that follows those of all blocks: the end of the program."""


def print_warp_ir(ir: WarpIR) -> str:
    """Returns the text of an IR, which ends with a line break."""
    return "\n".join(_Printer(ir).lines()) + "\n"


def shape_text(shape: VectorShape) -> str:
    """Returns the text of a vector shape: `uniform`, `varying`, `affine<STRIDE>`, or
    `affine<STRIDE>xLANES` for runs of fewer than 32 lanes, `rREPEATS` if REPEATS runs are equal;
    with `&ONES` if not all bits may be 1 in the first value of a run."""
    if shape == VARYING:
        return "varying"
    ones_text = "" if shape.ones == -1 else f"&{shape.ones:#x}"
    if shape == VectorShape(1):
        return f"uniform{ones_text}"
    runs = "" if shape.runs == 1 else f"x{shape.length}"
    repeats = "" if shape.repeats == 1 else f"r{shape.repeats}"
    return f"affine<{shape.stride}>{runs}{repeats}{ones_text}"


def plan_text(plan: AccessPlan) -> str:
    """Returns the text of a plan: pattern/guard/move/cost/exit."""
    chosen = (plan.pattern, plan.guard, plan.move, plan.cost, plan.exit)
    return "/".join(choice.name.lower() for choice in chosen)


def _plain(value: Any) -> Any:
    """Returns options as JSON values: a dataclass as its fields but those with their default value,
    an enumeration by its value, a set as a sorted list, a tuple as a list; other values as they
    are."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset | tuple):
        parts = [_plain(part) for part in cast("Iterable[object]", value)]
        return sorted(parts) if isinstance(value, frozenset) else parts
    if not is_dataclass(value):
        return value
    options = ((field, getattr(value, field.name)) for field in fields(value))
    return {field.name: _plain(option) for field, option in options if option != field.default}


class _Printer:
    """Prints one IR: each method returns the line, or yields the lines, of one part."""

    def __init__(self, ir: WarpIR) -> None:
        """Prepares the texts of plans at any addresses, by operation."""
        self.ir = ir
        self._plans: dict[int, list[str]] = {}
        for (index, space), plan in ir.plans.items():
            self._plans.setdefault(index, []).append(f"{space.value}:{plan_text(plan)}")

    def lines(self) -> Iterator[str]:
        """Yields the lines of the text: name, variant, access rules, memory, registers, labels,
        regions, reconvergence, masked regions, blocks with their operations, and loops."""
        ir = self.ir
        yield f"kernel {ir.program.name}"
        yield f"variant {msgspec.json.encode(_plain(ir.variant)).decode()}"
        yield from _rules(ir.layout.rules)
        yield from memory_lines(ir.program)
        yield "registers"
        yield from map(self._register, ir.program.registers)
        yield from label_lines(ir.program, self._label)
        yield "regions"
        yield from self._region(regions(ir.program), INDENT)
        reconvergence = ir.reconvergence
        yield "reconvergence" + attributes(
            suspends=reconvergence.suspends,
            diverged=self._labels(sorted(reconvergence.diverged)),
            resumable=self._labels(sorted(reconvergence.resumable)),
        )
        for point, waiting in reconvergence.points.items():
            yield f"{INDENT}at {self._label(point)}{attributes(waiting=self._labels(waiting))}"
        yield from (f"exits{self._exits(region)}" for region in ir.exits)
        for index, block in enumerate(ir.blocks):
            yield from self._block(index, block)
        for batched in ir.strided_loops:
            yield f"strided{self._strided(batched)}"
            yield from (f"{INDENT}{_group(group)}" for group in batched.groups)
        for path in ir.warp_loops:
            yield from self._warp_loop("warp_loop", path)
        for path in ir.static_schedule:
            yield from self._warp_loop("scheduled_loop", path)

    def _label(self, index: int) -> str:
        """Returns the label of a block; that of the program's end for the number after the last
        block."""
        return f"b{index}" if index < self.ir.program.exit else END

    def _labels(self, indices: Iterable[int]) -> list[str]:
        """Returns the labels of blocks, in the order of `indices`."""
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
        for inner in region.inner:
            yield from self._region(inner, indent + INDENT)

    def _exits(self, region: MaskedRegion) -> str:
        """Returns the text of a masked region's attributes."""
        return attributes(
            header=self._label(region.header),
            blocks=self._labels(sorted(region.blocks)),
            exits=self._labels(sorted(region.exits)),
            to=self._label(region.point),
            written=_names(region.written),
            retained=_names(region.merged),
        )

    def _strided(self, batched: BatchedLoop) -> str:
        """Returns the text of a batched loop's attributes, but for its access groups."""
        loop = batched.loop
        return attributes(
            shapes=sorted(f"{r.name}:{shape_text(shape)}" for r, shape in batched.shapes.items()),
            blocks=self._labels(loop.blocks),
            advances=map(str, loop.advances),
            widened=(f"{index}:{source}" for index, source in loop.widened),
            compared=(f"{index}:{relation}" for index, relation in loop.compared),
            accesses=map(str, loop.accesses),
        )

    def _warp_loop(self, word: str, path: WarpLoopPath) -> Iterator[str]:
        """Yields the lines of the path of a warp loop: its blocks, uniform branches by whether they
        are taken, and operations by their kinds; then the accesses of full and of partial warps."""
        kinds = {
            kind.name.lower(): [
                str(i) for i, path_kind in sorted(path.kinds.items()) if path_kind is kind
            ]
            for kind in StepKind
        }
        yield word + attributes(
            site=None if path.site is None else self._label(path.site),
            before=self._labels(path.before),
            body=None if path.body is None else self._label(path.body),
            allows_partial_warp=path.allows_partial_warp,
            after=self._labels(path.after),
            condition=path.condition,
            taken=(str(i) for i, taken in path.choices.items() if taken),
            passed=(str(i) for i, taken in path.choices.items() if not taken),
            **kinds,
        )
        for name, groups in (("full", path.groups), ("partial", path.partial)):
            yield from (f"{INDENT}{name} {_group(group)}" for group in groups)

    # ---- blocks ---------------------------------------------------------------------------------

    def _block(self, index: int, block: BasicBlock) -> Iterator[str]:
        """Yields the lines of a basic block: its attributes, operations, and access groups. `local`
        are its successors in its own function, if it ends with a call."""
        program = self.ir.program
        code, local = program.blocks[index], program.local_successors[index]
        predicated = block.predicated_block
        yield f"block {self._label(index)}" + attributes(
            to=self._labels(code.successors),
            local=self._labels(local if local != code.successors else ()),
            reconvergence=self._label(program.reconvergence[index]),
            branch=block.branch and block.branch.value,
            predicated=None if predicated is None else self._label(predicated),
            region_version=block.in_region_version,
            live=_names(program.live_in[index]),
            varying=_names(block.varying),
        )
        yield from operation_lines(program, code, self._plans)
        yield from self._accesses("accesses", block.accesses)
        yield from self._accesses("masked", block.masked)

    def _accesses(self, word: str, accesses: BlockAccesses) -> Iterator[str]:
        """Yields a heading with the keyword `word`, then a line for each access group of a block;
        nothing for a block without groups and fast version."""
        if accesses != BlockAccesses():
            yield INDENT + word + attributes(fast_version=accesses.has_fast_version)
            yield from (f"{INDENT * 2}{_group(group)}" for group in accesses.groups)


def _group(group: AccessGroup) -> str:
    """Returns the text of an access group, without indentation and keyword: operation, space, type,
    and attributes with its members and plan."""
    shape = group.shape
    return f"{shape.op} {shape.space.value} {shape.type}" + attributes(
        parts=shape.parts if shape.parts > 1 else None,
        route=shape.route.replace(" ", "_") or None,
        lanes=shape_text(group.base),
        members=(f"{index}{offset:+}" for index, offset in group.members),
        plan=plan_text(group.plan),
        crossed=map(str, group.crossed),
    )


def _rules(rules: AccessRules) -> Iterator[str]:
    """Yields the lines of the device's rules that count accesses: the rule of each kind of access,
    and the paths through simulated caches by space, operation and route."""
    names = {
        field.name: getattr(rules, field.name) for field in fields(rules) if field.name != "paths"
    }
    yield "rules" + attributes(**names)
    for key, path in rules.paths.items():
        yield f"{INDENT}{'/'.join(key).replace(' ', '_')} {path}"


def _names(registers: Iterable[Register]) -> list[str]:
    """Returns the names of registers, sorted."""
    return sorted(register.name for register in registers)
