"""Every case of `cases/`: what is wrong is found at its lines, and nothing is found in its twin."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from cases import FOLDER, Case, N, read_cases

import warploom as wl
from warploom.sanitize.findings import TOOLS, Finding

CC = {"lockstep": "6.1"}
CASES = [case for path in sorted(FOLDER.glob("*.cu")) for case in read_cases(path.stem).cases]


@cache
def module(file: str, engine: str) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device(cc=CC.get(file, "9.0"), engine=engine)
    return gpu, gpu.compile(read_cases(file).text, name=f"{file}.cu")


def findings(case: Case, engine: str, schedule: str = "converge") -> tuple[Finding, ...]:
    """Returns what the tools find in a case."""
    gpu, loaded = module(case.file, engine)
    run = loaded[case.name][case.grid, case.block](
        *(gpu.zeros(N, np.int32, name) for name in ("out", "flag")),
        gpu.to_device(np.arange(N, dtype=np.int32), "data"),
        gpu.empty(N, np.int32, "fresh"),
        cooperative=case.cooperative,
        max_instructions=1_000_000,
        schedule=schedule,
        sanitize=TOOLS,
    )
    return run.findings


def lines_of(found: Finding) -> set[int]:
    """Returns the numbers of a finding's lines."""
    return {int(place.rpartition(":")[2]) for place in (found.line, found.other_line) if place}


def check(case: Case, found: tuple[Finding, ...]) -> None:
    """Holds findings against what a case must have."""
    if "race" in case.kinds:  # what is read too early may not be written yet
        found = tuple(each for each in found if each.kind != "uninitialized read")
    shown = "\n".join(map(str, found))
    lines = set[int]().union(*(lines_of(each) for each in found if each.kind != "deadlock"))
    assert {each.kind for each in found} == case.kinds, shown
    assert not (case.kinds and case.lines) or lines == case.lines, shown


def some_now(engine: str) -> list[Any]:
    """Returns the cases, of which the compiled engine runs those with findings in each change and
    the reference machine the others; the nightly job runs all on both."""
    return [
        pytest.param(
            case,
            id=str(case),
            marks=[] if bool(case.kinds) == (engine == "compiled") else [pytest.mark.nightly],
        )
        for case in CASES
    ]


@pytest.mark.parametrize("case", some_now("compiled"))
def test_compiled(case: Case) -> None:
    check(case, findings(case, "compiled"))


@pytest.mark.parametrize("case", some_now("reference"))
def test_reference(case: Case) -> None:
    check(case, findings(case, "reference"))
