"""Captures the launch of a program that a command shows, and lists the others."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warploom.cli.programs import program_command
from warploom.clients.environment import environment_for
from warploom.clients.settings import Settings
from warploom.core.errors import Dim3, WarploomError
from warploom.core.output_files import writing
from warploom.core.streams import report
from warploom.host.core_files import SUFFIX
from warploom.host.core_files.capturing import (
    Captured,
    LaunchEntry,
    kernel_pattern,
    read_captures,
)
from warploom.report.peaks import time_text

STANDARD_ERROR = 2

MOST_KERNELS = 20
"""The kernels, in one shape each, that a list of launches has."""

MOST_NUMBERS = 4
"""The launches of each that it names."""

MODELLED = """
Instructions Executed counts warp instructions, and Share is computed from these counts.
Duration is modelled: it is a lower bound on the total time of a row's launches. It assumes the
device's peak rates ("speed of light" in Nsight Compute).
To model the time of each launch: warploom run --timeline {}"""
"""How to read the columns of a list of launches, and the command for other times."""

_folders: list[tempfile.TemporaryDirectory[str]] = []
"""Folders of captured launches, which go with the process."""


@dataclass(frozen=True)
class CapturedLaunch:
    """The core file of a launch, and how a reader knows the launch."""

    file: Path
    title: str


@dataclass(frozen=True)
class ProgramRun:
    """A program with its arguments, and which of its launches is wanted: `launch` counts from 1
    among those of kernels that match `kernel`, None is the costliest."""

    file: str
    arguments: Sequence[str]
    kernel: str
    launch: int | None
    compiler_options: Sequence[str] = ()

    def capture(self, settings: Settings, to: Path | None) -> Path:
        """Runs the program, lists its launches if there are several and none is chosen, and returns
        the core file of the launch, `to` if that is given. What the program prints goes to standard
        error. Raises WarploomError where there is no such launch."""
        if to is not None:
            _check_target(to)
        folder, captured = self._captured(settings, 1)
        if self.launch is None and len(captured.launches) > 1:
            report(list_launches(self.file, captured))
        saved = folder / captured.files[captured.saved]
        if to is None:
            return saved
        with writing(to):
            shutil.move(saved, to)
        report(
            f"warploom: saved the launch to {to}; you can pass this file to a command instead of a "
            "kernel file"
        )
        return to

    def capture_several(self, settings: Settings, most: int) -> list[CapturedLaunch]:
        """Runs the program, lists its launches, and returns the costliest launch of each kernel in
        one shape, the costliest first, at most `most` of them. Raises WarploomError as `capture`
        does."""
        folder, captured = self._captured(settings, most)
        if len(captured.launches) > 1:
            report(list_launches(self.file, captured))
        entries = {each.number: each for each in captured.launches}
        return [
            CapturedLaunch(folder / file, _title(entries[number]))
            for number, file in captured.files.items()
        ]

    def _captured(self, settings: Settings, most: int) -> tuple[Path, Captured]:
        """Runs the program, and returns the folder and the list of what was captured of the process
        that has the launch."""
        kernel_pattern(self.kernel)
        settings = settings.capturing(self._folder(), self.kernel, self.launch or 0, most)
        command = [*program_command(self.file, self.compiler_options), *self.arguments]
        try:
            ended = subprocess.run(
                command, env=environment_for(settings), stdout=STANDARD_ERROR, check=False
            )
        except OSError as error:
            raise WarploomError(f"{command[0]} cannot be started: {error.strerror}") from None
        folder = Path(settings.capture)
        captured = self._chosen(read_captures(folder), ended.returncode)
        if ended.returncode:
            report(f"warploom: {self.file} ended with status {ended.returncode}")
        return folder, captured

    def _folder(self) -> str:
        """Returns a new folder for what is captured."""
        _folders.append(tempfile.TemporaryDirectory(prefix="warploom-"))
        return _folders[-1].name

    def _chosen(self, processes: Sequence[Captured], status: int) -> Captured:
        """Returns the process with the launch that is wanted."""
        saved = [each for each in processes if each.saved]
        if saved:
            return max(saved, key=_cost) if self.launch is None else saved[0]
        kernels = dict.fromkeys(name for each in processes for name in each.other_kernels)
        count = max((len(each.launches) for each in processes), default=0)
        if count:
            matching = f" of kernels that match {self.kernel}" if self.kernel else ""
            raise WarploomError(
                f"--launch {self.launch}: {self.file} makes only {count} launches{matching}."
            )
        if kernels:
            raise WarploomError(
                f"--kernel {self.kernel}: {self.file} launches no kernel with this name. It "
                f"launches {', '.join(kernels)}."
            )
        ended = f" and ended with status {status}" if status else ""
        raise WarploomError(
            f"{self.file} launched no kernel through CUDA{ended}. To see the program's output, "
            f"run `warploom run {self.file}`. Launches on a `warploom.Device` are not captured: "
            "for these, call report() and time() on the object that the launch returns."
        )


def _cost(captured: Captured) -> int:
    """Returns the warp instructions of the launch that a process saved."""
    return captured.launches[captured.saved - 1].instructions or 0


def _check_target(to: Path) -> None:
    """Raises WarploomError before the program runs for a file that cannot be written then."""
    if to.suffix != SUFFIX:
        raise WarploomError(f"--capture {to}: the file name must end in {SUFFIX}")
    if not to.absolute().parent.is_dir():
        raise WarploomError(
            f"--capture {to}: the folder {to.parent} does not exist. Create it first."
        )


def list_launches(program: str, captured: Captured) -> str:
    """Returns a list of a program's launches: each kernel in one shape, the costliest first, with
    its counted instructions and, if the device's peaks are known, its least modelled time."""
    groups: defaultdict[tuple[str, Dim3, Dim3], list[LaunchEntry]] = defaultdict(list)
    for each in captured.launches:
        groups[each.kernel, each.grid, each.block].append(each)
    costs = {key: sum(each.instructions or 0 for each in some) for key, some in groups.items()}
    total, shown = max(1, sum(costs.values())), sorted(groups, key=lambda key: -costs[key])
    is_timed = any(each.least_seconds for each in captured.launches)
    head = ("Launch", "Kernel", "Grid", "Block", "Instructions Executed", "Share")
    table: list[tuple[str, ...]] = [(*head, "Duration") if is_timed else head]
    for key in shown[:MOST_KERNELS]:
        kernel, *shape = key
        grid, block = ("x".join(map(str, dims)) for dims in shape)
        share = f"{100 * costs[key] / total:.1f} %"
        row = (_numbers(groups[key]), kernel, grid, block, f"{costs[key]:,}", share)
        table.append((*row, _least_time(groups[key])) if is_timed else row)
    name = Path(program).name
    lines = [f"{name} makes {len(captured.launches):,} launches:", "", *_aligned(table)]
    if len(shown) > MOST_KERNELS:
        lines.append(
            f"  ... and {len(shown) - MOST_KERNELS} more combinations of kernel and launch "
            "configuration"
        )
    chosen = captured.launches[captured.saved - 1]
    shown = f"Showing launch {chosen.number} ({chosen.kernel}), the most expensive launch."
    if len(captured.files) > 1:
        numbers = ", ".join(map(str, captured.files))
        shown = (
            f"The page shows launch {chosen.number}. On the page, you can switch to launches "
            f"{numbers}."
        )
    return "\n".join(
        [
            *lines,
            *(MODELLED.format(name).split("\n") if is_timed else ()),
            "",
            shown,
            f"To choose another launch, put --launch N or --kernel REGEX before {name}.",
            "",
        ]
    )


def _title(entry: LaunchEntry) -> str:
    """Returns the number, the kernel and the shape of a launch."""
    grid, block = (
        "x".join(map(str, dims)).removesuffix("x1").removesuffix("x1")
        for dims in (entry.grid, entry.block)
    )
    return f"{entry.number}: {entry.kernel}<<<{grid}, {block}>>>"


def _least_time(launches: Sequence[LaunchEntry]) -> str:
    """Returns the sum of the least times of some launches."""
    return "≥ " + time_text(sum(each.least_seconds or 0.0 for each in launches))


def _numbers(launches: Sequence[LaunchEntry]) -> str:
    """Returns the numbers of some launches, the first of many."""
    first = ", ".join(str(each.number) for each in launches[:MOST_NUMBERS])
    more = len(launches) - MOST_NUMBERS
    return f"{first} and {more:,} more" if more > 0 else first


def _aligned(table: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns the lines of a table, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    to_right = (False, False, False, False, True, True, True)[: len(widths)]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, to_right, strict=True)
        ).rstrip()
        for row in table
    ]
