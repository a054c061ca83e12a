"""The environments of the nightly job: each differs from this one as its name states."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from environments import ENVIRONMENTS, find_environment

ROOT = Path(__file__).parents[2]

PROBE = """
import json, locale, os, pathlib, subprocess, sys

STATE = '''
import json, locale, os, sys
print(json.dumps([os.environ.get("HOME"), locale.getpreferredencoding(False), sys.stdout.encoding,
                  sys.flags.dev_mode, "error" in sys.warnoptions]))
'''

def test_state():
    child = json.loads(subprocess.run([sys.executable, "-c", STATE], capture_output=True).stdout)
    try:
        writable = not pathlib.Path.home().joinpath("probe").write_text("", "utf-8")
    except (OSError, RuntimeError) as error:
        writable = type(error).__name__
    print("STATE", json.dumps({
        "home": child[0], "encodings": child[1:3], "dev": child[3], "error": child[4],
        "writable": writable, "cache": os.environ.get("WARPLOOM_CACHE_DIR"),
        "hash": os.environ.get("PYTHONHASHSEED"), "locale": os.environ.get("LC_ALL"),
    }))
"""

State = dict[str, Any]

EXPECTED: dict[str, Callable[[State], bool]] = {
    "hash-seed": lambda state: state["hash"] == "random",
    "warnings": lambda state: state["dev"] and state["error"],
    "c-locale": lambda state: state["locale"] == "C",
    "cp1252": lambda state: [one.lower() for one in state["encodings"]] == ["cp1252", "cp1252"],
    "read-only-home": lambda state: state["home"] and state["writable"] == "PermissionError",
    "no-home": lambda state: state["home"] is None and state["writable"] == "RuntimeError",
    "two-runs": lambda state: state["cache"] is not None,
    "c-locale,read-only-home": lambda state: (
        state["locale"] == "C" and state["writable"] == "PermissionError"
    ),
}


def states(name: str, folder: Path) -> list[State]:
    """Returns the states that the runs of an environment show; skips where a user of no list cannot
    run this Python, and where glibc's locales are missing."""
    folder.chmod(0o755)
    probe = folder / "test_probe.py"
    probe.write_text(PROBE, "utf-8")
    tool = [sys.executable, str(ROOT / "tools" / "environments.py"), name]
    options = ["-s", "-p", "no:xdist", "-p", "no:warnings", "--rootdir", str(folder), str(probe)]
    ran = subprocess.run([*tool, *options], capture_output=True, encoding="utf-8", check=False)
    if ran.stderr.startswith("error:"):
        pytest.skip(ran.stderr.strip())
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = (line.partition("STATE ")[2] for line in ran.stdout.splitlines())
    return [json.loads(line) for line in lines if line]


@pytest.mark.skipif(sys.platform != "linux", reason="the nightly job runs on Linux")
@pytest.mark.parametrize("name", EXPECTED)
def test_an_environment_is_as_it_is_named(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to other users
        shown = states(name, Path(folder))
    assert len(shown) == find_environment(name).runs
    assert all(EXPECTED[name](state) for state in shown), shown


def test_every_environment_has_a_nightly_job_and_a_test() -> None:
    text = (ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8")
    job = yaml.safe_load(text)["jobs"]["environments"]
    names = [one.name for one in ENVIRONMENTS]
    assert job["strategy"]["matrix"]["environment"] == names
    assert set(names) <= EXPECTED.keys()


@pytest.mark.parametrize(
    ("names", "message"),
    [("d-locale", "no environment 'd-locale'"), ("c-locale,cp1252", "both set LC_ALL")],
)
def test_what_is_no_environment_is_refused(names: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        find_environment(names)
