"""Runs programs on which something went wrong once: both machines have to agree on each.

Every `.ptx` file here is one; its first line is a comment that says what is special about it. A
file with a `// launch:` line (see `replays`), such as `tools/fuzz.py` writes, runs as that says;
others have a kernel `k(.param .u64 buffer)`, which runs in two shapes under several schedules.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from agreement import check_agreement
from replays import LAUNCH, replay

from warploom.machine.launch import Schedule

PROGRAMS = {
    path.stem: path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("*.ptx"))
}
WITH_LAUNCH = [name for name, text in PROGRAMS.items() if LAUNCH.search(text)]
SCHEDULES = [
    Schedule(),
    Schedule(independent=False),
    Schedule("random", 1, resident_blocks=2),
    Schedule("adversarial", 1),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda one: one.policy)
@pytest.mark.parametrize("program", [name for name in PROGRAMS if name not in WITH_LAUNCH])
def test_machines_agree_on(program: str, schedule: Schedule) -> None:
    for shape in ((1, 32), (2, 40)):
        check_agreement(PROGRAMS[program], shape, 0, schedule)


@pytest.mark.parametrize("program", WITH_LAUNCH)
def test_launch_of(program: str) -> None:
    replay(PROGRAMS[program])


def test_there_are_programs() -> None:
    assert PROGRAMS
    assert all(text.startswith("// ") for text in PROGRAMS.values())
