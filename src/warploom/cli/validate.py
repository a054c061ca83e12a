"""`warploom validate`: modelled figures against published ones."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from warploom.cli.options import Json
from warploom.core.errors import WarploomError
from warploom.validation.benchmarks import CODES
from warploom.validation.counts import count_rows, counts, counts_as_markdown
from warploom.validation.figures import figures
from warploom.validation.rows import rows_of
from warploom.validation.table import Row, as_markdown, summaries


def validate(
    device: Annotated[
        list[str] | None,
        typer.Option(help="Compare only the figures published for this device; repeatable."),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(help="Compare only the figures published for this kernel; repeatable."),
    ] = None,
    machine: Annotated[
        bool,
        typer.Option(
            "--counts",
            help="Instead of times, compare counts of registers and executed machine instructions.",
        ),
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes to use.")] = 1,
    as_json: Json = False,
) -> None:
    """Compare published measurements with times that are modelled from PTX and from machine code.

    Modelled results are cached, so a new run continues where an interrupted one stopped. With
    `--counts`, compare the counts of executed machine instructions and of registers with published
    counts. Examples: `warploom validate`, `warploom validate --device a100 --kernel triad`.
    """
    if machine:
        _validate_counts(device, kernel, as_json)
        return
    chosen = [
        figure
        for figure in figures()
        if (not device or figure.device in device) and (not kernel or figure.kernel in kernel)
    ]
    if not chosen:
        raise WarploomError(
            f"no published figure matches: choose a device from {_known_values('device')},"
            f" and a kernel from {_known_values('kernel')}"
        )
    rows: list[Row] = []
    for number, row in enumerate(rows_of(chosen, workers), 1):
        rows.append(row)
        figure = row.figure
        errors = ", ".join(f"{100 * row.error(code):+.1f} % by {code}" for code in CODES)
        print(
            f"{number} of {len(chosen)}: {figure.device}, {figure.title}: {errors}", file=sys.stderr
        )
    if as_json:
        report = {
            "figures": [asdict(row) for row in rows],
            "summaries": {code: [asdict(s) for s in summaries(rows, code)] for code in CODES},
        }
        print(json.dumps(report, indent=2, allow_nan=False))
    else:
        print("\n".join(as_markdown(rows)))


def _validate_counts(device: list[str] | None, kernel: list[str] | None, as_json: bool) -> None:
    """Prints published counts of machine instructions beside those from machine code."""
    chosen = [
        count
        for count in counts()
        if (not device or count.device in device) and (not kernel or count.kernel in kernel)
    ]
    if not chosen:
        devices, kernels = (
            ", ".join(dict.fromkeys(getattr(count, field) for count in counts()))
            for field in ("device", "kernel")
        )
        raise WarploomError(
            f"no published count matches. Choose a device from {devices}, and a kernel from "
            f"{kernels}."
        )
    rows = list(count_rows(chosen))
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2, allow_nan=False))
    else:
        print("\n".join(counts_as_markdown(rows)))


def _known_values(field: str) -> str:
    """Returns the different values of a field of the published figures, separated by commas."""
    return ", ".join(dict.fromkeys(getattr(figure, field) for figure in figures()))
