"""Builds NVIDIA's cuda-samples by their own CMake files, runs them on the software GPU, and writes
down how it went: docs/cuda_samples.md.

    git clone https://github.com/NVIDIA/cuda-samples
    pip install 'warploom[nvcc]' nvidia-curand cmake ninja
    python tools/cuda_samples.py cuda-samples [--only REGEX] [--missing] [--build FOLDER]
        [--results FILE] [--document FILE]

The compiler is the nvcc of the wheels behind Warploom's, which adds PTX where a sample asks for
machine code alone. The one thing that is asked of CMake is the shared runtime
(CMAKE_CUDA_RUNTIME_LIBRARY); architectures, -rdc=true and all else are the samples' own. Each runs
with the arguments of their own list of tests (test_args.json); its exit status is the verdict.
Samples that want graphics, MPI or libraries of NVIDIA's beyond the runtime are left out. Results
are kept in a file, so that a run of some samples leaves the others as they were.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warploom.clients.environment import environment_for
from warploom.clients.settings import Settings
from warploom.clients.toolkit import front_toolkit, missing_wheels, wheel_toolkit

ROOT = Path(__file__).resolve().parent.parent
DEVICE = "h100"
BUILD_SECONDS, RUN_SECONDS = 600, 240
WAIVED = 2
"""The exit status of a sample that finds that it cannot run on the device."""

HAS_RUN = re.compile(r"Warploom ran|by thread \(")
"""Words on standard error of a program whose kernels have run, or failed while they ran."""

BEYOND = re.compile(
    r"find_package\((?!CUDAToolkit|OpenMP|Threads)|CUDA::(cublas|cufft|cusolver|cusparse|npp|nvjpeg)"
    r"|d3d1|DirectX",
    re.IGNORECASE,
)
"""Words of a CMake file that asks for more than a CUDA toolkit of the wheels."""

REASONS = {
    r"cdp": "kernels that launch kernels",
    r"MC_EstimatePi[PQ]": "the kernels of cuRAND's library are machine code without PTX",
    r"IPC": "inter-process memory",
    r"MMAP": "virtual memory management",
    r"simpleCooperativeGroups": "cluster barriers in its PTX for sm_90",
    r"segmentationTreeThrust": "does not compile with the Thrust of the wheels",
    r"matrixMulDynlinkJIT": "PTX for sm_10, with a `mad.f32` that newer devices do not have",
    r"P2P|MultiGPU|p2p": "a second GPU",
    r"simpleAttributes": "persisting L2 accesses",
}
"""Why a sample does not pass, by name."""

FOLDERS = (
    "0_Introduction",
    "2_Concepts_and_Techniques",
    "3_CUDA_Features",
    "5_Domain_Specific",
    "6_Performance",
)


@dataclass(frozen=True)
class Result:
    """How a sample went: `verdict` is "passed", "waived", or says what went wrong."""

    sample: str
    separate: bool
    verdict: str
    build_seconds: float
    run_seconds: float


def samples(checkout: Path) -> list[Path]:
    """The samples that need a CUDA toolkit and one GPU, and no more."""
    found = (
        path for folder in FOLDERS for path in sorted((checkout / "Samples" / folder).iterdir())
    )
    return [
        path
        for path in found
        if (path / "CMakeLists.txt").exists()
        and not BEYOND.search((path / "CMakeLists.txt").read_text("utf-8"))
    ]


def built(sample: Path, build: Path) -> Path | str:
    """The program of a sample, or the last words of what failed to build it."""
    toolkit = front_toolkit()
    path = f"{wheel_toolkit()}/bin:{os.environ['PATH']}"
    environment = {**os.environ, "WARPLOOM_PYTHON": sys.executable, "PATH": path}
    configure = [
        *("cmake", "-S", str(sample), "-B", str(build), "-G", "Ninja"),
        *(f"-DCMAKE_CUDA_COMPILER={toolkit}/bin/nvcc", "-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared"),
    ]
    for command in (configure, ["cmake", "--build", str(build), "-j", "1"]):
        try:
            ended = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=BUILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not built within {BUILD_SECONDS} s"
        if ended.returncode:
            (build / "failure.txt").write_text(ended.stdout + ended.stderr, "utf-8")
            return "not built"
    return build / sample.name


def run(program: Path, sample: Path, arguments: list[str]) -> str:
    """The verdict of a program, started where its files are."""
    try:
        ended = subprocess.run(
            [str(program), *arguments],
            cwd=program.parent,
            env=environment_for(Settings(DEVICE, report="short")),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not finished within {RUN_SECONDS} s"
    (program.parent / "output.txt").write_text(f"{ended.stdout}\n{ended.stderr}", "utf-8")
    if ended.returncode == 0 and not HAS_RUN.search(ended.stderr):
        return "exit status 0, but no kernel ran"
    verdicts = {0: "passed", WAIVED: "waived"}
    return verdicts.get(ended.returncode, f"exit status {ended.returncode}")


def tried(sample: Path, build: Path, arguments: list[str]) -> Result:
    """Build and run a sample."""
    separate = "CUDA_SEPARABLE_COMPILATION ON" in (sample / "CMakeLists.txt").read_text("utf-8")
    begun = time.perf_counter()
    program = built(sample, build)
    ready = time.perf_counter()
    if isinstance(program, str):
        return Result(sample.name, separate, program, ready - begun, 0.0)
    verdict = run(program, sample, arguments)
    return Result(sample.name, separate, verdict, ready - begun, time.perf_counter() - ready)


def arguments_of(checkout: Path) -> dict[str, list[str]]:
    """The arguments of each sample's (first) test, by its name."""
    entries: dict[str, Any] = json.loads((checkout / "test_args.json").read_text("utf-8"))
    return {
        name: test.get("args") or test.get("runs", [{}])[0].get("args", [])
        for name, test in entries.items()
    }


def reason(result: Result) -> str:
    """Returns the reason why a sample does not pass, behind a colon, where it is known."""
    if result.verdict == "passed":
        return ""
    known = [text for pattern, text in REASONS.items() if re.search(pattern, result.sample)]
    return f": {known[0]}" if known else ""


PREFACE = """\
The programs of [cuda-samples](https://github.com/NVIDIA/cuda-samples) that need neither graphics
nor libraries beyond the runtime are built by their own CMake files with the nvcc of NVIDIA's wheels
and run on a software H100 (`python tools/cuda_samples.py CHECKOUT`, which writes this page). If a
kernel has run, the verdict is the sample's own: it compares with a result from the CPU and exits
with 0 if they are equal. A sample waives a test that the device cannot run, such as one for two
GPUs. Times are from one core that was also doing other work."""


def document(results: list[Result]) -> str:
    """The page."""
    passed = [result for result in results if result.verdict == "passed"]
    separate = sum(result.separate for result in passed)
    lines = [
        "# NVIDIA's cuda-samples",
        "",
        *PREFACE.splitlines(),
        "",
        f"**{len(passed)} of {len(results)} passed**, {separate} of them with separate compilation"
        " (`-rdc=true`).",
        "",
        "| sample | verdict | to build, s | to run, s |",
        "| --- | --- | --- | --- |",
        *(
            f"| {r.sample} | {r.verdict}{reason(r)} | {r.build_seconds:.0f} | {r.run_seconds:.1f} |"
            for r in sorted(results, key=lambda r: (r.verdict != "passed", r.sample.lower()))
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what the command line asks for, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="samples whose names fit this expression")
    parser.add_argument("--missing", action="store_true", help="those that have no result yet")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "cuda-samples")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "cuda_samples.json")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "cuda_samples.md")
    given = parser.parse_args()
    if missing := missing_wheels():
        sys.exit(f"these wheels are missing: {', '.join(missing)}")
    results: dict[str, dict[str, Any]] = {}
    if given.results.exists():
        results = json.loads(given.results.read_text("utf-8"))
    arguments = arguments_of(given.checkout)
    given.results.parent.mkdir(parents=True, exist_ok=True)
    for sample in samples(given.checkout):
        if not re.search(given.only, sample.name) or (given.missing and sample.name in results):
            continue
        result = tried(sample, given.build / sample.name, arguments.get(sample.name, []))
        print(f"{sample.name}: {result.verdict}", flush=True)
        results[sample.name] = asdict(result)
        given.results.write_text(json.dumps(results, indent=1), "utf-8")
    given.document.write_text(document([Result(**result) for result in results.values()]), "utf-8")


if __name__ == "__main__":
    main()
