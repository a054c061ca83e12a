"""`warploom litmus`: all outcomes that the memory model allows for a small program."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from warploom.cli.options import Json, LaunchOptions, grouped
from warploom.core.input_files import read_text
from warploom.core.output_files import write_text, writing
from warploom.host.device import Device
from warploom.host.exploration.litmus import WeakOutcome, WeakOutcomes, litmus_test
from warploom.host.exploration.litmus import litmus as litmus_of
from warploom.host.requests import prepared
from warploom.memory_model.search import ROUNDS

HOLDS_NOT = 1
"""The exit code where the question of a litmus test has the answer no."""

File = Annotated[
    Path,
    typer.Argument(
        help="A litmus test (.litmus), or a kernel (.cu, .ptx) launched with only a few threads."
    ),
]


@grouped
def litmus(
    file: File,
    launched: LaunchOptions,
    model: Annotated[
        str,
        typer.Option(help="Memory model: ptx, sc (sequential consistency) or a .cat file."),
    ] = "ptx",
    rounds: Annotated[
        int,
        typer.Option(
            min=1,
            help="Maximum number of times that a thread executes the same instruction.",
        ),
    ] = ROUNDS,
    graphs: Annotated[
        bool, typer.Option("--graphs", help="Show an execution for every outcome.")
    ] = False,
    dot: Annotated[
        Path | None, typer.Option(help="Write the executions to this folder as Graphviz files.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List all outcomes that PTX's memory model allows for a small program.

    Outcomes that no interleaving of the threads produces are marked as weak and shown with an
    execution. If the condition of a litmus test does not hold, the exit status is 1. Example:
    `warploom litmus sb.cu --grid 2 --block 1 --arg 'x:i32[1]=zeros' --arg 'y:i32[1]=zeros'`
    """
    if file.suffix == ".litmus":
        found = litmus_test(read_text(file), model, rounds)
    else:
        ready = prepared(Device(launched.device), launched.request(file))
        found = litmus_of(ready.launcher, *ready.values, model=model, rounds=rounds)
    if dot is not None:
        with writing(dot):
            dot.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(found.outcomes):
            write_text(dot / f"{number}.dot", one.dot)
    print(json.dumps(_as_json(found), indent=2) if as_json else _as_text(found, graphs=graphs))
    if found.answer is False:
        sys.exit(HOLDS_NOT)


def _as_text(found: WeakOutcomes, *, graphs: bool) -> str:
    weak = len(found.weak)
    count = len(found.outcomes)
    lines = [f"{found.name}: {count} {'outcome' if count == 1 else 'outcomes'}, {weak} weak."]
    for one in found.outcomes:
        lines += _outcome_lines(one, graph=graphs or not one.interleaved)
    if found.answer is not None:
        lines.append(f"The condition holds: {'yes' if found.answer else 'no'}.")
    if found.longer:
        lines.append("Loops may run for more iterations than were explored: increase --rounds.")
    if found.stuck:
        lines.append("In some executions, threads wait at a barrier forever.")
    return "\n".join(lines)


def _outcome_lines(one: WeakOutcome, *, graph: bool) -> list[str]:
    values = ", ".join(f"{label} = {value}" for label, value in one.values.items())
    kind = "" if one.interleaved else "   weak: impossible under any interleaving"
    return [f"  {values or 'nothing is written'}{kind}"] + [f"      {e}" for e in one.graph] * graph


def _as_json(found: WeakOutcomes) -> dict[str, Any]:
    return {
        "name": found.name,
        "outcomes": [{**asdict(one), "values": dict(one.values)} for one in found.outcomes],
        "answer": found.answer,
        "longer": found.longer,
        "stuck": found.stuck,
    }
