"""Launches take no more instructions of the processor than when they were last counted."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import callgrind
import instructions
import pytest


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="counted for x86-64")
@pytest.mark.heavy
@pytest.mark.usefixtures("full_optimisation")
@pytest.mark.parametrize("small", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_no_launch_takes_a_twentieth_more_instructions(small: bool) -> None:
    kept = json.loads(instructions.KEPT.read_text("utf-8"))
    if kept["made with"] != (here := instructions.made_with()):
        pytest.skip(f"counted with {kept['made with']}, here is {here}")
    counts = (instructions.counted(small=small) for _ in range(2))
    # Threads that wake after a time add instructions where other processes use the processors.
    assert not all(instructions.grown(one, kept["counts"]) for one in counts)


def test_growth_is_found_beyond_a_twentieth_and_on_the_host_beyond_a_tenth() -> None:
    before = {"SAXPY": {"kernel": 1000, "host": 5000}}
    assert not instructions.grown({"SAXPY": {"kernel": 1050, "host": 5500}}, before)
    [found] = instructions.grown({"SAXPY": {"kernel": 1051, "host": 5500}}, before)
    assert "kernel takes 1,051 instructions per launch, 1,000 before" in found
    [found] = instructions.grown({"SAXPY": {"kernel": 1000, "host": 5501}}, before)
    assert "host takes 5,501" in found


def test_costs_go_to_where_instructions_are_and_calls_are_not_counted_twice(tmp_path: Path) -> None:
    # By the format's specification: a line has the address of an instruction, its line and its
    # cost, none if that is zero; the line behind `calls=` has the inclusive cost of the callee.
    maps = (
        "1000-2000 r-xp 00000000 08:01 7 /usr/lib/lib python.so\n"
        "2000-3000 r-xp 00000000 00:00 0 \n3000-4000 rw-p 00000000 00:00 0 \n"
    )
    part = tmp_path / "counts.1"
    part.write_text(
        "ob=(1) /usr/lib/libffi.so\nfn=(1) call\n0x1000 0 70\ncob=(2) ???\ncfn=(2) run\n"
        "calls=1 0x2000 0\n0x1004 0 900\n0x1008 0 30\n0x2000 0 900\n0x2fff 0 5\n0x3000 0\n",
        "utf-8",
    )
    made = callgrind.made_at_run_time(maps)
    assert made == [range(0x2000, 0x3000)]
    assert callgrind.by_origin(part, made) == {"kernel": 905, "host": 100}
