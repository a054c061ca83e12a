"""`warploom tune`: what a kernel costs in many configurations, which is best, and why."""

from __future__ import annotations

import operator
import re
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.progress import Progress

from warploom.cli.launches.targets import CaptureOptions, Target
from warploom.cli.options import (
    Json,
    LaunchOptions,
    Scheduler,
    SpreadOptions,
    grouped,
)
from warploom.core.errors import WarploomError
from warploom.core.input_files import decode_json, read_limited, reading
from warploom.host.core_files import SUFFIX
from warploom.host.core_files.replaying import saved_launch
from warploom.host.programs.sources import source_of
from warploom.host.requests import dims
from warploom.host.tuning.tune import tune as tune_kernel
from warploom.host.values import BufferArgument, parse_arguments
from warploom.report.console import terminal
from warploom.report.tune import render_tuned, render_tuned_text, tuned_as_json
from warploom.tuning.files import FORMATS
from warploom.tuning.result import OBJECTIVES, Tuned
from warploom.tuning.space import AXES, LAUNCH, parse_space

SPACE_HELP = (
    "The search space, such as block=64:1024:32,regs=32,64. Write each parameter as "
    "NAME=FIRST:LAST:STEP or NAME=VALUE,VALUE. NAME is block, grid (values such as 16 or 16x8), "
    "block_size_x, _y, _z, shared, regs, device or a macro in the source. Alternatively, give a "
    ".json file that contains a dictionary of lists."
)


@dataclass(frozen=True)
class SearchOptions:
    """Options for the configurations that are tried, and their objectives."""

    restrict: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPRESSION",
            help="Try only configurations that satisfy this condition, such as 'block_size_x * "
            "TILE <= 1024'.",
        ),
    ] = None
    problem_size: Annotated[
        str | None,
        typer.Option(
            "--problem-size",
            "--elements",
            metavar="X[xY[xZ]]",
            help="Total number of threads, from which the grid size is computed.",
        ),
    ] = None
    objective: Annotated[
        str,
        typer.Option(
            help="Comma-separated list of objectives to minimize, chosen from "
            f"{', '.join(OBJECTIVES)}."
        ),
    ] = "seconds,dram_bytes"
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Save results to this file, and reuse the results that it contains.",
        ),
    ] = None
    scheduler: Scheduler = None
    sample: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Simulate only this many waves of blocks, starting with the first, and execute "
            "only the blocks that this simulation needs.",
        ),
    ] = None
    stop_early: Annotated[
        bool,
        typer.Option(
            "--stop-early",
            help="Do not simulate a configuration that cannot beat the best one found so far.",
        ),
    ] = False


@dataclass(frozen=True)
class HardwareOptions:
    """Options for what was measured, and what is to be."""

    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Correct modelled times with measured times from a Kernel Tuner cache file or "
            "from results in the T4 format.",
        ),
    ] = None
    measure: Annotated[
        int,
        typer.Option(
            min=0, help="Number of configurations to suggest for measurement on the real device."
        ),
    ] = 0
    write: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the times to this file.")
    ] = None
    format: Annotated[
        str, typer.Option(help=f"Format of the file written by --write: {' or '.join(FORMATS)}.")
    ] = FORMATS[0]


@dataclass(frozen=True)
class DivisionOptions:
    """Options for the grid, as Kernel Tuner has them."""

    grid_div_x: Annotated[
        str,
        typer.Option(
            metavar="EXPRESSION,...",
            help="Compute the grid size in x by dividing the problem size by the product of these "
            "parameters. Default: the block size.",
        ),
    ] = ""
    grid_div_y: Annotated[
        str,
        typer.Option(
            metavar="EXPRESSION,...", help="Like --grid-div-x, but for the grid size in y."
        ),
    ] = ""
    grid_div_z: Annotated[
        str,
        typer.Option(
            metavar="EXPRESSION,...", help="Like --grid-div-x, but for the grid size in z."
        ),
    ] = ""
    block_size_names: Annotated[
        str, typer.Option(metavar="NAME,...", help="The parameters that set the block size.")
    ] = ",".join(AXES)


@grouped
def tune(
    target: Target,
    launched: LaunchOptions,
    captured: CaptureOptions,
    space: Annotated[str, typer.Option(metavar="NAME=VALUES,...", help=SPACE_HELP)],
    search: SearchOptions,
    division: DivisionOptions,
    hardware: HardwareOptions,
    spread: SpreadOptions,
    top: Annotated[int, typer.Option(min=1, help="Number of configurations to show.")] = 20,
    as_json: Json = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print one CSV row for each configuration.")
    ] = False,
) -> None:
    """Launch a kernel in many configurations. Print the best configuration, the reason why it is
    the best, and the Pareto set. For a launch of a program, only the block, grid, shared memory and
    device can vary.

    Example: `warploom tune saxpy.cu --space block=64:1024:64,device=v100,a100 --elements 1048576
    --arg 1048576 --arg 2.0 --arg 'f32[1048576]=arange' --arg 'f32[1048576]=ones' --cache s.jsonl`
    """
    wanted = space_of(space)
    saved = target.saved(launched, captured, {})
    file = target.path if saved is None else saved
    if saved is None:
        _check_names(file, wanted)
    else:
        _check_shapes(target.path, wanted)
    if hardware.format not in FORMATS:
        raise WarploomError(
            f"--format: there is no format {hardware.format!r}; choose from {', '.join(FORMATS)}"
        )
    tuned = _tuned(file, launched, wanted, (search, division, hardware), spread)
    if hardware.write:
        tuned.write(hardware.write, hardware.format)
    if as_json:
        print(tuned_as_json(tuned, hardware.measure))
    elif as_csv:
        print(tuned.to_csv(), end="")
    elif sys.stdout.isatty():
        render_tuned(tuned, terminal(), top, hardware.measure)
    else:
        print(render_tuned_text(tuned, top, hardware.measure), end="")


def _tuned(
    file: Path,
    launched: LaunchOptions,
    space: dict[str, list[Any]],
    options: tuple[SearchOptions, DivisionOptions, HardwareOptions],
    spread: SpreadOptions,
) -> Tuned:
    """Runs all trials, with a bar that shows how many have ended."""
    search, division, hardware = options
    if launched.cluster_dims:
        raise WarploomError(
            "tune does not support --cluster-dims: write __cluster_dims__(x, y, z) in the "
            "kernel, with macros from --space as arguments."
        )
    if launched.constant:
        raise WarploomError(
            "tune does not support --constant: initialize the variable in the source."
        )
    arguments = parse_arguments(launched.arg or ())
    values = [one.content if isinstance(one, BufferArgument) else one for one in arguments]
    size = search.problem_size
    problem = dims("--problem-size", size) if size else ()
    grid, block = dims("--grid", launched.grid), dims("--block", launched.block)
    shared, cooperative, device = launched.shared, launched.cooperative, launched.device
    if file.suffix == SUFFIX:
        opened = saved_launch(file)
        launch, device = opened.launch, device or opened.core.device.name
        grid, block, shared = launch.grid, launch.block, launch.dynamic_shared_bytes
        cooperative = launch.cooperative
        # As many threads as the launch has, unless something else is asked for.
        problem = problem or tuple(map(operator.mul, grid, block))
    with Progress(console=terminal(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("configurations", total=None)
        return tune_kernel(
            file,
            launched.kernel,
            space,
            *values,
            restrictions=search.restrict or (),
            problem_size=problem,
            grid_div_x=_split_at_commas(division.grid_div_x),
            grid_div_y=_split_at_commas(division.grid_div_y),
            grid_div_z=_split_at_commas(division.grid_div_z),
            block_size_names=_split_at_commas(division.block_size_names),
            measured=hardware.measured,
            grid=grid,
            block=block,
            shared=shared,
            device=device,
            options=launched.option or (),
            objectives=search.objective.split(","),
            scheduler=search.scheduler,
            sample=search.sample,
            stop_early=search.stop_early,
            max_instructions=launched.max_instructions,
            cooperative=cooperative,
            workers=spread.processes,
            cluster=spread.cluster,
            cache=search.cache,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _split_at_commas(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _check_names(file: Path, space: dict[str, list[Any]]) -> None:
    """Raises WarploomError for a name that neither shapes the launch nor stands in the source."""
    source, _ = source_of(file)
    for name in space:
        if name in (*LAUNCH, *AXES) or re.search(rf"\b{re.escape(name)}\b", source):
            continue
        near = get_close_matches(name, (*LAUNCH, *AXES), 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise WarploomError(
            f"--space: {name} is not one of {', '.join((*LAUNCH, *AXES))}, and {file.name} has no "
            f"macro of that name.{meant}"
        )


def _check_shapes(file: Path, space: dict[str, list[Any]]) -> None:
    """Raises WarploomError for a name that takes compiling the kernel of a program again."""
    shapes = [name for name in (*LAUNCH, *AXES) if name != "regs"]
    for name in space:
        if name not in shapes:
            raise WarploomError(
                f"--space: the kernels in {file} are already compiled, so {name} cannot vary; "
                f"choose from {', '.join(shapes)}. To tune macros and registers, pass a .cu "
                "file that contains the kernel."
            )


def space_of(text: str) -> dict[str, list[Any]]:
    """Returns the space of the option: its own text, or a file with a dictionary of lists."""
    if not text.endswith(".json"):
        return cast(dict[str, list[Any]], parse_space(text))
    with reading(f"--space {text}", "is not valid JSON"):
        content = decode_json(read_limited(Path(text)).decode())
    if not isinstance(content, dict) or not all(
        isinstance(values, list) for values in cast(dict[str, Any], content).values()
    ):
        raise WarploomError(
            f'--space {text} is not a dictionary of lists, such as {{"block_size_x": [64, 128]}}'
        )
    return cast(dict[str, list[Any]], content)
