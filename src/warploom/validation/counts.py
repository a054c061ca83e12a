"""Executed machine instructions and registers against published ones.

The published launches are those of counts.json: `blocks` blocks executed `executed` warp
instructions. The kernels are those of counted.cu. Blocks of a launch do alike, so that fewer are
launched here, and what they execute is taken times their share.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from warploom.host.buffer import Buffer
from warploom.host.device import Device
from warploom.host.module import Module

Argument = dict[str, int] | int | float
"""An array of so many elements, by the name of their type, or a number."""

LEAST_REGISTERS = 16
"""Nsight Compute never shows fewer registers of a thread, however few ptxas reports."""

_TYPES = {"i32": np.int32, "f32": np.float32}


@dataclass(frozen=True)
class Count:
    """A published count: a kernel of counted.cu with a launch of it, and the warp instructions that
    `blocks` blocks of it executed; `registers` are those of a thread, None where not published;
    `source` says where."""

    device: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    arguments: tuple[Argument, ...]
    blocks: int
    executed: int
    registers: int | None
    source: str


@dataclass(frozen=True)
class CountRow:
    """A published count, and what was counted from machine code."""

    count: Count
    executed: float
    registers: int

    @property
    def registers_agree(self) -> bool:
        """Returns whether Nsight Compute would show as many registers as were published."""
        return self.count.registers in (None, max(self.registers, LEAST_REGISTERS))

    @property
    def error(self) -> float:
        """Counted over published instructions, less 1."""
        return self.executed / self.count.executed - 1


@cache
def counts() -> tuple[Count, ...]:
    """Returns all published counts."""
    path = files("warploom.validation").joinpath("counts.json")
    tables: dict[str, Any] = json.loads(path.read_text("utf-8"))
    rows: list[list[Any]] = tables["rows"]
    found: list[Count] = []
    for device, kernel, grid, block, shared, arguments, blocks, executed, registers, source in rows:
        launch = tuple(grid), tuple(block), shared, tuple(arguments)
        citation: str = tables["sources"][source]
        found.append(Count(device, kernel, *launch, blocks, executed, registers, citation))
    return tuple(found)


def count_rows(chosen: Sequence[Count]) -> Iterator[CountRow]:
    """Yields the rows of published counts, in their order."""
    for count in chosen:
        gpu, module = _compiled(count.device)
        kernel = module[count.kernel]
        run = kernel[count.grid, count.block, None, count.shared_bytes](
            *(_argument(gpu, place, one) for place, one in enumerate(count.arguments))
        )
        share = count.blocks / math.prod(count.grid)
        registers = run.kernel.resources.registers
        yield CountRow(count, run.machine.instructions * share, registers)


def counts_as_markdown(rows: Sequence[CountRow]) -> Iterator[str]:
    """Yields the lines of a table of these rows, and of one with their errors in the whole."""
    yield "| device | kernel | executed | from machine code | registers | from ptxas |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        count = row.count
        modelled = f"{row.executed:,.0f} {100 * row.error:+.2f} %"
        registers = "" if count.registers is None else count.registers
        named = f"{count.kernel} {'x'.join(map(str, count.block))}"
        cells = (count.device, named, f"{count.executed:,}", modelled, registers, row.registers)
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield "| launches | median error | worst | registers exact |"
    yield "| --- | --- | --- | --- |"
    errors = np.abs([row.error for row in rows])
    stated = [row for row in rows if row.count.registers is not None]
    exact = sum(row.registers_agree for row in stated)
    summary = f"{100 * np.median(errors):.2f} % | {100 * errors.max():.2f} %"
    yield f"| {len(rows)} | {summary} | {exact} of {len(stated)} |"


@cache
def _compiled(device: str) -> tuple[Device, Module]:
    gpu = Device(device)
    source = files("warploom.validation").joinpath("counted.cu").read_text("utf-8")
    return gpu, gpu.compile(source)


def _argument(gpu: Device, place: int, one: Argument) -> Buffer | int | float:
    """Returns an argument; of an array of floats no value is in another one, for differences of 0
    are divided by a routine that random numbers do not call."""
    if not isinstance(one, dict):
        return one
    [(kind, count)] = one.items()
    type = np.dtype(_TYPES[kind])
    values = np.linspace(1, 1.5, count) + place if type.kind == "f" else np.ones(count)
    return gpu.to_device(values.astype(type))
