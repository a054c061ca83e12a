"""Writes findings as files that tests run again (tests/regressions)."""

from __future__ import annotations

from pathlib import Path

import replays

from fuzzing.cases import Case, Finding

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "tests" / "regressions"
SUFFIX = ".case"


def write(case: Case, finding: Finding, folder: Path) -> Path:
    """Writes a PTX program with its launch line, or anything else as the content of a file whose
    name begins with its target's; returns the path."""
    name = f"{case.target}_{finding.seed}"
    if case.runner and isinstance(case.content, str):
        output = " ".join(finding.outcome.message.split())[:150]
        line = replays.launch_line(case.runner, case.options)
        text = f"// {finding.outcome.kind}: {output}\n{line}\n{case.content}"
        return _written(folder / f"{name}.ptx", text.encode())
    data = case.content.encode() if isinstance(case.content, str) else case.content
    return _written(folder / "files" / f"{name}{SUFFIX}", data)


def _written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def replay_file(path: Path) -> None:
    """Runs a file of the folder `files` again. Raises what its target's check raises."""
    from fuzzing.targets import TARGETS

    name = path.name.rsplit("_", 1)[0]
    data = path.read_bytes()
    content = data.decode() if name == "launches" else data
    TARGETS[name].check(Case(name, content))
