"""Runs programs on which something went wrong once: both machines have to agree on each.

Every `.ptx` file here is one, with a kernel `k(.param .u64 buffer)` and a first line that says what
is special about it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from agreement import check_agreement

from warploom.machine.launch import Schedule

PROGRAMS = sorted(Path(__file__).parent.glob("*.ptx"))
SCHEDULES = [
    Schedule(),
    Schedule(independent=False),
    Schedule("random", 1, resident_blocks=2),
    Schedule("adversarial", 1),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda one: one.policy)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_machines_agree_on(program: Path, schedule: Schedule) -> None:
    for shape in ((1, 32), (2, 40)):
        check_agreement(program.read_text(), shape, 0, schedule)


def test_there_are_programs() -> None:
    assert PROGRAMS
