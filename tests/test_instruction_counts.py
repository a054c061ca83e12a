"""Small launches take no more instructions of the processor than when they were last counted."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import instructions
import pytest


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="counted for x86-64")
def test_no_launch_takes_a_tenth_more_instructions() -> None:
    kept = json.loads(instructions.KEPT.read_text())
    if kept["made with"] != (here := instructions.made_with()):
        pytest.skip(f"counted with {kept['made with']}, here is {here}")
    assert not instructions.grown(instructions.counted(), kept["counts"])


def test_growth_is_found_beyond_a_tenth() -> None:
    before = {"SAXPY": {"kernel": 1000, "host": 5000}}
    assert not instructions.grown({"SAXPY": {"kernel": 1100, "host": 5500}}, before)
    [found] = instructions.grown({"SAXPY": {"kernel": 1101, "host": 5500}}, before)
    assert "kernel takes 1,101 instructions a launch, 1,000 before" in found


def test_costs_go_to_their_objects_and_calls_are_not_counted_twice(tmp_path: Path) -> None:
    # By the format's specification: the line behind `calls=` has the inclusive cost of the callee,
    # a name is written out once, and a cost that is missing is zero.
    part = tmp_path / "counts.1"
    part.write_text(
        "ob=(1) /usr/lib/libpython.so\nfn=(1) call\n0 70\ncob=(2) ???\ncfn=(2) run\n"
        "calls=1 0\n0 900\n+1 30\nob=(2)\nfn=(2)\n0 900\nob=(1)\nfn=(3) end\n* 5\n-4\n"
    )
    assert instructions.by_origin(part) == {"kernel": 900, "host": 105}
