"""`warploom check`: a kernel, or a whole program, under the sanitizers."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from warploom.cli.options import (
    DeviceOptions,
    File,
    LaunchOptions,
    RuleOptions,
    grouped,
)
from warploom.cli.programs import Arguments, Program, ProgramOptions, start_program
from warploom.core.errors import WarploomError
from warploom.host.device import Device
from warploom.host.requests import Request, prepared
from warploom.sanitize.findings import ERROR, LEAK, PROGRAM_TOOLS, TOOLS, Finding
from warploom.sanitize.leaks import alive_on_heap, leaks
from warploom.sanitize.summary import Summary, summarised

ORDERS = ("converge", "adversarial", "fair", "random")
"""The schedules under which a kernel is checked, as many as are asked for."""

ALL_TOOLS = ",".join(PROGRAM_TOOLS)

Tool = Annotated[
    str, typer.Option("--tool", metavar="NAMES", help=f"What checks: any of {ALL_TOOLS}.")
]
ErrorExitcode = Annotated[int, typer.Option(help="The exit status where there are errors.")]
Limit = Annotated[int, typer.Option(min=1, help="Show at most so many findings.")]
Suppress = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Findings that are accepted, with reasons.")
]
Sarif = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings as SARIF.")]


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
        """The tools. Raises WarploomError for a name that is none."""
        names = tuple(name.strip() for name in self.tool.split(","))
        for name in names:
            if name not in PROGRAM_TOOLS:
                raise WarploomError(f"--tool: there is no tool {name!r}; there are {ALL_TOOLS}")
        return names

    def summary(self, findings: list[Finding]) -> Summary:
        """Returns the summary of findings; writes the SARIF file, if one is wanted."""
        summary = summarised(findings, self.suppress, self.limit)
        if self.sarif:
            self.sarif.write_text(summary.sarif())
        return summary


@grouped
def check(
    file: File,
    launched: LaunchOptions,
    device: DeviceOptions,
    rules: RuleOptions,
    found: FindingOptions,
    orders: Annotated[
        int, typer.Option(min=1, max=len(ORDERS), help="Check under so many legal orders.")
    ] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Launch a kernel under the sanitizers and print what they find: races, accesses out of bounds,
    barriers that threads skip, memory that nobody wrote. Before a program (`warploom check
    program.py`), check all that it launches: see `warploom check-program --help`.

    Example: `warploom check sum.cu --kernel sum --block 64 --arg 'f32[64]=ones' --arg
    'total:f32[1]=zeros'`
    """
    tools = tuple(tool for tool in found.tools if tool in TOOLS)
    findings = list[Finding]()
    request = launched.request(file)
    gpu = device.make(launched.device, rules)
    for schedule in ORDERS[:orders]:
        findings += _findings(gpu, request, schedule, tools)
        if LEAK in found.tools and schedule == ORDERS[0]:
            findings += leaks(alive_on_heap(gpu.memory))
    _tell(found.summary(findings), found.error_exitcode, as_json=as_json)


def _findings(
    gpu: Device, request: Request, schedule: str, tools: tuple[str, ...]
) -> tuple[Finding, ...]:
    """Returns what the tools find in one launch."""
    ready = prepared(gpu, request)
    run = ready.launcher(
        *ready.values,
        max_instructions=request.max_instructions,
        cooperative=request.cooperative,
        schedule=schedule,
        sanitize=tools,
    )
    return run.findings


def _tell(summary: Summary, exitcode: int, *, as_json: bool) -> None:
    """Prints a summary; exits with the status for errors where there are some."""
    print(json.dumps(summary.data(), indent=2) if as_json else summary.text(), end="")
    if summary.number(ERROR):
        sys.exit(exitcode)


@grouped
def check_program(
    file: Program, arguments: Arguments = None, *, options: ProgramOptions, found: FindingOptions
) -> None:
    """Run a program as `warploom run` does, with the sanitizers at each launch; what they find is
    told on standard error at its end.

    Example: `warploom check --tool race train.py --epochs 1`
    """
    settings = replace(
        options.settings("none"),
        sanitize=",".join(found.tools),
        sanitize_exitcode=found.error_exitcode,
        sanitize_limit=found.limit,
        sanitize_suppress=str(found.suppress.absolute()) if found.suppress else "",
        sanitize_sarif=str(found.sarif.absolute()) if found.sarif else "",
    )
    start_program(file, arguments or [], settings)
