"""The GitHub Action: its steps of shell run here as a runner would run them, on this repository's
own examples; those of other actions are checked for their names alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from warploom.clients.environment import libraries_are_built

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
WORKFLOW: dict[str, Any] = yaml.safe_load(
    (ROOT / ".github/workflows/examples.yml").read_text("utf-8")
)
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
BY_NAME = {step["id"]: step for step in STEPS if "id" in step}


def used() -> dict[str, str]:
    """The inputs that the workflow gives, and the defaults of the others."""
    [step] = [s for s in WORKFLOW["jobs"]["examples"]["steps"] if s.get("uses") == "./"]
    defaults = {name: str(given["default"]) for name, given in ACTION["inputs"].items()}
    assert not set(step["with"]) - set(defaults)
    return {**defaults, **step["with"]}


class Runner:
    """Runs steps in one job: what they write to GITHUB_ENV and GITHUB_OUTPUT, later ones have."""

    def __init__(self, folder: Path, inputs: dict[str, str]) -> None:
        self.inputs, self.outputs = inputs, dict[str, str]()
        self.files = {name: folder / name for name in ("ENV", "OUTPUT", "STEP_SUMMARY")}
        for file in self.files.values():
            file.touch()
        self.environment = {
            **os.environ,
            **{f"GITHUB_{name}": str(file) for name, file in self.files.items()},
            "RUNNER_TEMP": str(folder),
            "GITHUB_ACTION_PATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def value(self, text: str) -> str:
        """A text with the expressions in it evaluated."""
        known = {f"inputs.{name}": value for name, value in self.inputs.items()}
        known |= {f"steps.prepare.outputs.{name}": value for name, value in self.outputs.items()}
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known[found[1]], text)

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        step = BY_NAME[name]
        given = {key: self.value(text) for key, text in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env={**self.environment, **given},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.outputs |= dict(line.split("=", 1) for line in _lines(self.files["OUTPUT"]))
        self.environment |= dict(line.split("=", 1) for line in _lines(self.files["ENV"]))
        return done


def _lines(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines()


@pytest.mark.nightly
def test_the_steps_of_the_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built (no C compiler?)")
    cache = os.environ.get("WARPLOOM_CACHE_DIR", "")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    inputs = used() | {"command": "python examples/programs/numba_saxpy.py\npython -c 'print(1)'"}
    runner = Runner(tmp_path, inputs)
    runner.run("prepare")
    assert runner.environment["WARPLOOM_CACHE_DIR"] == str(tmp_path / "warploom-cache")
    if cache:  # what the tests before have compiled
        runner.environment["WARPLOOM_CACHE_DIR"] = cache
    done = runner.run("command")
    assert done.stdout == "2 x + y: right\n1\n"
    assert "saxpy, 1 launch of 391x1x1 blocks of 256x1x1" in done.stderr
    assert "5 passed" in runner.run("pytest").stdout
    reports = list((tmp_path / "warploom-reports").glob("*.json"))
    assert any(file.name.startswith("command-") for file in reports)
    kernels = json.loads((tmp_path / "warploom-reports" / "pytest.json").read_text("utf-8"))[
        "kernels"
    ]
    assert {kernel["kernel"] for kernel in kernels} == {"saxpy"}
    runner.run("summary")
    table = runner.files["STEP_SUMMARY"].read_text("utf-8")
    assert table.startswith("| kernel | grid | block | launches |")
    assert "| `saxpy` | 4x1x1 | 256x1x1 | 4 |" in table


def test_the_installation_takes_extras_and_packages(tmp_path: Path) -> None:
    """With a `python` that only says what it was called with."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "$@"\n', "utf-8")
    python.chmod(0o755)
    for extras, source in (("numba,nvcc", f"{ROOT}[numba,nvcc]"), ("none", str(ROOT))):
        runner = Runner(tmp_path, {"extras": extras, "packages": "torch einops"})
        runner.environment["PATH"] = f"{python.parent}:/usr/bin:/bin"
        said = runner.run("install").stdout
        assert said == f"-m pip install --quiet {source} pytest torch einops\n"


def test_every_expression_and_step_is_known() -> None:
    texts = json.dumps(STEPS)
    for name in re.findall(r"inputs\.([\w-]+)", texts):
        assert name in ACTION["inputs"]
    for name in re.findall(r"steps\.(\w+)\.", texts):
        assert name in BY_NAME
    assert [step["uses"].partition("@")[0] for step in STEPS if "uses" in step] == [
        *("actions/setup-python", "actions/cache", "actions/upload-artifact")
    ]
    assert all(step.get("shell") == "bash" for step in STEPS if "run" in step)
