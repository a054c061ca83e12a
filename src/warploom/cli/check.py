"""`warploom check`: a kernel, or a whole program, under the sanitizers."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from dataclasses import replace as replace_settings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from warploom.cli.launches.targets import CaptureOptions, LaunchSource, Target
from warploom.cli.options import (
    DeviceOptions,
    LaunchOptions,
    RuleOptions,
    grouped,
)
from warploom.cli.pages import Export, PageOptions, write_page
from warploom.cli.programs import Arguments, Program, ProgramOptions, start_program
from warploom.cli.tracing import TraceOptions, recorded_launch
from warploom.core.errors import WarploomError
from warploom.core.output_files import write_text
from warploom.host.launch_options import LaunchOptions as Options
from warploom.sanitize.findings import ERROR, LEAK, PROGRAM_TOOLS, TOOLS, Finding
from warploom.sanitize.leaks import alive_on_heap, leaks
from warploom.sanitize.summary import Summary, summarised
from warploom.ui.schema import LaunchRequest

if TYPE_CHECKING:
    from warploom.ui.record import Prepare

ORDERS = ("converge", "adversarial", "fair", "random")
"""The schedules under which a kernel is checked, as many as are asked for."""

ALL_TOOLS = ",".join(PROGRAM_TOOLS)

Tool = Annotated[
    str,
    typer.Option(
        "--tool",
        metavar="NAMES",
        help=f"Comma-separated list of tools to run, chosen from {ALL_TOOLS}.",
    ),
]
ErrorExitcode = Annotated[int, typer.Option(help="Exit status if errors are found.")]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of findings to show.")]
Suppress = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File that lists accepted findings, each with a reason."),
]
Sarif = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the findings to a file in SARIF format.")
]


@dataclass(frozen=True)
class FindingOptions:
    """Options that choose the tools, and the form of their report."""

    tool: Tool = ALL_TOOLS
    error_exitcode: ErrorExitcode = 1
    limit: Limit = 100
    suppress: Suppress = None
    sarif: Sarif = None

    @property
    def tools(self) -> tuple[str, ...]:
        """Returns the tools. Raises WarploomError for a name that is none."""
        names = tuple(name.strip() for name in self.tool.split(","))
        for name in names:
            if name not in PROGRAM_TOOLS:
                raise WarploomError(f"--tool: there is no tool {name!r}; choose from {ALL_TOOLS}")
        return names

    def summary(self, findings: list[Finding]) -> Summary:
        """Returns the summary of findings; writes the SARIF file, if one is wanted."""
        summary = summarised(findings, self.suppress, self.limit)
        if self.sarif:
            write_text(self.sarif, summary.sarif())
        return summary


@dataclass(frozen=True)
class ShownOptions:
    """Options that show the checked launch step by step, at the first finding's later access."""

    view: Annotated[
        bool,
        typer.Option(
            "--view",
            help="Open a page that shows the launch step by step, starting at the first finding.",
        ),
    ] = False
    export: Export = None


@grouped
def check(
    target: Target,
    launched: LaunchOptions,
    captured: CaptureOptions,
    device: DeviceOptions,
    rules: RuleOptions,
    found: FindingOptions,
    page: PageOptions,
    shown: ShownOptions,
    orders: Annotated[
        int, typer.Option(min=1, max=len(ORDERS), help="Number of legal execution orders to check.")
    ] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Launch a kernel under the sanitizers, and report races, out-of-bounds accesses, skipped
    barriers and reads of uninitialized memory. If the file is a program (`warploom check
    program.py`), check all launches of the program: see `warploom check-program --help`.

    Example: `warploom check sum.cu --kernel sum --block 64 --arg 'f32[64]=ones' --arg
    'total:f32[1]=zeros'`
    """
    tools = tuple(tool for tool in found.tools if tool in TOOLS)
    source = target.source(launched, captured, **device.given(rules))
    by_order: dict[str, list[Finding]] = {}
    leaked: list[Finding] = []
    for order in ORDERS[:orders]:
        by_order[order] = list(_findings(source, order, tools))
        if LEAK in found.tools and order == ORDERS[0]:
            leaked = leaks(alive_on_heap(source.memory))
    summary = found.summary([*(one for each in by_order.values() for one in each), *leaked])
    _print(summary, as_json=as_json)
    if shown.view or shown.export:
        order = next((order for order, findings in by_order.items() if findings), ORDERS[0])
        asked, prepare = recorded_launch(target.path, source, launched, rules, TraceOptions())
        asked = replace(asked, schedule=order, sanitize=tools)
        _show(asked, prepare, page, shown.export)
    _exit(summary, found.error_exitcode)


def _show(request: LaunchRequest, prepare: Prepare, page: PageOptions, export: Path | None) -> None:
    """Serves the page of a checked launch, or writes it to a file."""
    # The recorder and the lessons of the page, which a check without a page does without.
    from warploom.ui.record import record
    from warploom.ui.shows import exported_show, live_show

    title, data = Path(request.name).name, record(request, prepare=prepare).to_bytes()
    if export:
        write_page(export, exported_show(title, (title,)), [data])
    else:
        shown = request if request.source else None
        page.serve(live_show(title, 1, request=shown), [data])


def _findings(source: LaunchSource, schedule: str, tools: tuple[str, ...]) -> tuple[Finding, ...]:
    """Returns what the tools find in one launch."""
    ready = source.ready()
    options: Options = {**source.options, "schedule": schedule, "sanitize": tools}
    return ready.launcher(*ready.values, **options).findings


def _print(summary: Summary, *, as_json: bool) -> None:
    """Prints a summary as text or as JSON; in a terminal with colors."""
    if sys.stdout.isatty() and not as_json:
        from warploom.report.findings import render_findings

        render_findings(summary)
        return
    print(json.dumps(summary.data(), indent=2) if as_json else summary.text(), end="", flush=True)


def _exit(summary: Summary, exitcode: int) -> None:
    """Exit with the status for errors if there are some."""
    if summary.number(ERROR):
        sys.exit(exitcode)


@grouped
def check_program(
    file: Program, arguments: Arguments = None, *, options: ProgramOptions, found: FindingOptions
) -> None:
    """Run a program as `warploom run` does, with the sanitizers enabled, and print the findings on
    standard error at the end.

    Example: `warploom check --tool race train.py --epochs 1`
    """
    settings = replace_settings(
        options.settings("none"),
        sanitize=",".join(found.tools),
        sanitize_exitcode=found.error_exitcode,
        sanitize_limit=found.limit,
        sanitize_suppress=str(found.suppress.absolute()) if found.suppress else "",
        sanitize_sarif=str(found.sarif.absolute()) if found.sarif else "",
    )
    start_program(file, arguments or [], settings)
