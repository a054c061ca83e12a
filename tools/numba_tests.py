"""Runs the tests that ship inside the numba-cuda wheel on the software GPU, and writes down how it
went: docs/numba_tests.md.

    python tools/numba_tests.py [--only REGEX] [--missing] [--engine NAME] [--results FILE]
        [--document FILE]

Each module has a process of its own. A test that fails there runs once more alone, for an error
that CUDA calls sticky takes all tests after it along. Results are kept in a file, so that a run of
some modules (`--only`, or `--missing` for those that have none) leaves the others as they were;
several runs of different modules can go on at once.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as Xml
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from warploom.clients.environment import environment_for
from warploom.clients.settings import Settings

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent
PACKAGE = "numba.cuda.tests"
GROUPS = ("core", "cudadrv", "nocuda", "nrt", "doc_examples", "cudapy")
DEVICE = "a100"
SECONDS = 1200
"""What a module may take."""

MORE_SECONDS = {"cudapy.test_array_alignment": 3600, "cudapy.test_ufuncs": 4 * 3600}
"""What those may take that compile hundreds of kernels."""

BEYOND = {
    r"test_ipc": "inter-process memory",
    r"test_multigpu|test_p2p|select_device.*peer": "a second GPU",
    r"test_profiler": "the profiler",
}
"""What is not asked for: tests whose names fit, and what they need."""

REASONS = {
    r"test_dispatcher_cpointer_arguments": "a defect of the test: the kernel reads 16 elements of"
    " arrays of 10, and is stopped (`Invalid __global__ read`)",
    r"test_struct_model_type_arr": "a defect of the test: `np.array((10,))` has one element, but"
    " the kernel writes ten, and is stopped (`Invalid __global__ write`)",
    r"test_cpu_and_cuda_": "independent of the driver: Numba marks the index of cached functions"
    " with a hash of the source, numba-cuda with the source's time and size, so each discards the"
    " other's index",
    r"test_nrt_detect_linked_ptx_file": "PTX and LTO-IR that call each other are linked: when it"
    " generates PTX from the LTO-IR, NVIDIA's linker omits functions that only the PTX calls",
    r"test_dynshared_slice_gaps": "a defect of the test or of its compiler: a 16-byte vector is"
    " read at byte 16 of 28 bytes of shared memory (`Invalid __shared__ read`)",
}
"""Why a test fails, by name."""


def modules() -> list[str]:
    """The test modules of the wheel, as `group.module`."""
    found = importlib.metadata.files("numba-cuda") or []
    pattern = re.compile(rf".*/numba/cuda/tests/({'|'.join(GROUPS)})/(test_\w+)\.py")
    named = (pattern.fullmatch(str(file)) for file in found)
    return sorted(f"{match[1]}.{match[2]}" for match in named if match)


Outcomes = dict[str, dict[str, str]]
"""By test: its outcome and its message."""


def run(target: str, engine: str) -> Outcomes:
    """Run a module, or one test of it."""
    seconds = MORE_SECONDS.get(target, SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = environment_for(Settings(DEVICE, engine))
        environment["PYTHONPATH"] = f"{TOOLS}:{environment.get('PYTHONPATH', '')}"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "numba_pytest", "-p", "no:cacheprovider"),
            *("-o", "consider_namespace_packages=true", "-o", "addopts=", "-o", "testpaths="),
            *(f"--rootdir={folder}", f"--junitxml={report}", "--pyargs", f"{PACKAGE}.{target}"),
        ]
        try:
            ended = subprocess.run(
                command,
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
            output = f"the process ended with code {ended.returncode}"
        except subprocess.TimeoutExpired:
            output = f"it took more than {seconds} s"
        if not report.exists():
            return {"(module)": {"outcome": "failed", "message": output}}
        return dict(_outcomes(Xml.parse(report)))


def _outcomes(report: Xml.ElementTree[Xml.Element]) -> list[tuple[str, dict[str, str]]]:
    found: dict[str, dict[str, str]] = {}
    for case in report.iter("testcase"):
        name = f"{case.get('classname', '').split('.')[-1]}::{case.get('name', '')}"
        outcome, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, message = "failed", child.get("message", "")
            elif child.tag == "skipped":
                outcome, message = "skipped", child.get("message", "")
        if found.get(name, {}).get("outcome") != "failed":
            found[name] = {"outcome": outcome, "message": message.split("\n")[0][:200]}
    return list(found.items())


def run_module(module: str, engine: str) -> Outcomes:
    """Run a module; what fails runs once more alone."""
    outcomes = run(module, engine)
    for name, output in outcomes.items():
        if output["outcome"] == "failed" and "::" in name:
            again = run(f"{module}::{name.split('[')[0].split(' ')[0]}", engine)
            outcomes[name] = again.get(name, output)
    return outcomes


def _matching(table: dict[str, str], name: str) -> str:
    return next((why for pattern, why in table.items() if re.search(pattern, name)), "")


class Results(TypedDict):
    """What came of a module: the engine that ran it, and its tests."""

    engine: str
    tests: Outcomes


def _beyond(tests: Iterable[str]) -> list[str]:
    """What some tests need that is not there, and how many do."""
    return [
        f"{why} ({sum(bool(re.search(pattern, name)) for name in tests)})"
        for pattern, why in BEYOND.items()
    ]


def _engines(results: dict[str, Results]) -> str:
    """Which modules did not run on the default engine."""
    count = sum(result["engine"] == "reference" for result in results.values())
    return f"{count} of the {len(results)} modules ran on the reference engine." if count else ""


def document(results: dict[str, Results]) -> str:
    """docs/numba_tests.md."""
    tests = {
        f"{module}::{name}": output
        for module, result in sorted(results.items())
        for name, output in result["tests"].items()
    }
    beyond = {name for name in tests if _matching(BEYOND, name)}
    asked = {name: output for name, output in tests.items() if name not in beyond}
    count = Counter(output["outcome"] for output in asked.values())
    ran = count["passed"] + count["failed"]
    share = 100 * count["passed"] / max(1, ran)
    version = importlib.metadata.version("numba-cuda")
    left_out = [module for module in modules() if module not in results]
    lines = [
        "# numba-cuda's own tests",
        "",
        f"The tests in the wheel of numba-cuda {version} run unchanged on a software"
        f" {DEVICE.upper()}",
        f"(`make test-numba`, which writes this page). {_engines(results)}".rstrip(),
        "",
        "| | tests |",
        "| --- | --- |",
        f"| of {len(results)} modules of the wheel | {len(tests):,} |",
        f"| that need features beyond this driver | {len(beyond)} |",
        f"| that skip themselves | {count['skipped']} |",
        f"| run | {ran:,} |",
        f"| passed | {count['passed']:,} ({share:.1f} %) |",
        f"| failed | {count['failed']} |",
        "",
        f"Beyond this driver: {'; '.join(_beyond(tests))}.",
        *(["", f"Modules that were not run: {', '.join(left_out)}."] if left_out else []),
        "",
        "## What fails, and why",
        "",
        "| test | reason |",
        "| --- | --- |",
    ]
    for name, output in asked.items():
        if output["outcome"] == "failed":
            why = _matching(REASONS, name) or output["message"].replace("|", "\\|") or "no message"
            lines.append(f"| `{name}` | {why} |")
    return "\n".join(lines) + "\n"


def kept(file: Path) -> dict[str, Results]:
    """The results that a file has."""
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def keep(file: Path, module: str, made: Results) -> None:
    """Put the results of a module beside those that others may have written meanwhile."""
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps({**kept(file), module: made}, indent=1), "utf-8")
    written.replace(file)


def main() -> int:
    """Run, keep the results, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--engine", default="compiled")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "numba_tests.json")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "numba_tests.md")
    given = parser.parse_args()
    for module in modules():
        if not re.search(given.only, module):
            continue
        if given.missing and module in kept(given.results):
            continue
        started = time.monotonic()
        tests = run_module(module, given.engine)
        keep(given.results, module, {"engine": given.engine, "tests": tests})
        count = Counter(output["outcome"] for output in tests.values())
        print(f"{module}: {dict(count)}, {time.monotonic() - started:.0f} s", flush=True)
    given.document.write_text(document(kept(given.results)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
