"""Builds NVIDIA's cuda-samples by their own CMake files, or HeCBench's programs by their Makefiles,
runs them on the software GPU, and writes down how it went: docs/cuda_samples.md, docs/hecbench.md.

    git clone https://github.com/NVIDIA/cuda-samples
    pip install 'warploom[nvcc]' nvidia-curand cmake ninja
    python tools/cuda_samples.py cuda-samples [--only REGEX] [--missing] [--build FOLDER]
        [--results FILE] [--document FILE]
    git clone https://github.com/zjin-lcf/HeCBench
    python tools/cuda_samples.py HeCBench [--most 60] [--seed 1] ...

The compiler is the nvcc of the wheels behind Warploom's, which adds PTX where a sample asks for
machine code alone. The one thing that is asked of CMake is the shared runtime
(CMAKE_CUDA_RUNTIME_LIBRARY); architectures, -rdc=true and all else are the samples' own. Each runs
with the arguments of their own list of tests (test_args.json); its exit status is the verdict.
Samples that want graphics, MPI or libraries of NVIDIA's beyond the runtime are left out. Results
are kept in a file, so that a run of some samples leaves the others as they were. What differs for
HeCBench is in tools/hecbench.py.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import hecbench

from warploom.clients.environment import environment_for
from warploom.clients.settings import Settings
from warploom.clients.toolkit import front_toolkit, missing_wheels, wheel_toolkit

ROOT = Path(__file__).resolve().parent.parent
DEVICE = "h100"
BUILD_SECONDS, RUN_SECONDS = 600, 240
PROCESSOR_SECONDS = 60
"""What a program of HeCBench may take; those of NVIDIA's samples are bounded by RUN_SECONDS."""

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
    r"cdp": "needs dynamic parallelism",
    r"MC_EstimatePi[PQ]": "cuRAND's kernels are machine code without PTX",
    r"IPC": "needs inter-process memory",
    r"MMAP": "needs virtual memory management",
    r"simpleCooperativeGroups": "the sample's PTX for sm_90 contains cluster barriers",
    r"segmentationTreeThrust": "does not compile with the version of Thrust in the wheels",
    r"matrixMulDynlinkJIT": "its PTX for sm_10 contains a `mad.f32` that newer devices do not"
    " support",
    r"P2P|MultiGPU|p2p": "needs a second GPU",
    r"simpleAttributes": "needs persisting L2 accesses",
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
    build.mkdir(parents=True, exist_ok=True)
    for command in (configure, ["cmake", "--build", str(build), "-j", "1"]):
        if failure := failure_of(command, environment, build):
            return failure
    return build / sample.name


def made(folder: Path) -> Path | str:
    """The program of a folder of HeCBench, or the last words of what failed to build it."""
    path = f"{front_toolkit()}/bin:{wheel_toolkit()}/bin:{os.environ['PATH']}"
    environment = {**os.environ, "WARPLOOM_PYTHON": sys.executable, "PATH": path}
    command, program = hecbench.command(folder)
    failure = failure_of(command, environment, folder)
    return failure or (program if program.exists() else "not built where its Makefile says")


def failure_of(command: list[str], environment: dict[str, str], folder: Path) -> str:
    """Runs a command that builds; returns what went wrong, if anything, and puts its words into a
    file of a folder."""
    try:
        ended = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not built in {BUILD_SECONDS} s"
    if not ended.returncode:
        return ""
    words = ended.stdout + ended.stderr
    (folder / "failure.txt").write_text(words, "utf-8")
    missing = re.search(r"fatal error: (?:cannot open source file )?\"?([\w./]+)", words)
    return f"not built: no file {missing[1]}" if missing else "not built"


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))


def run(program: Path, arguments: list[str], *, hec: bool = False) -> str:
    """The verdict of a program, started where its files are."""
    try:
        ended = subprocess.run(
            [str(program), *arguments],
            preexec_fn=limit if hec else None,
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
    if hec and hecbench.UNOPENED.search(ended.stdout + ended.stderr):
        return "lacks an input file"
    if ended.returncode == 0 and not HAS_RUN.search(ended.stderr):
        return "exit status 0, but no kernel ran"
    if hec and ended.returncode in (-9, -24):
        return f"beyond {PROCESSOR_SECONDS} s of processor time"
    if hec and ended.returncode == 0:
        return hecbench.verdict(ended.stdout)
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
    verdict = run(program, arguments)
    return Result(sample.name, separate, verdict, ready - begun, time.perf_counter() - ready)


def tried_program(folder: Path) -> Result:
    """Build and run a program of HeCBench."""
    begun = time.perf_counter()
    program = made(folder)
    ready = time.perf_counter()
    separate = bool(re.search(r"-rdc=true|-dc\b", hecbench.makefile(folder)))
    if isinstance(program, str):
        return Result(folder.name, separate, program, ready - begun, 0.0)
    verdict = run(program, hecbench.arguments(folder), hec=True)
    return Result(folder.name, separate, verdict, ready - begun, time.perf_counter() - ready)


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
    program = result.sample.removesuffix("-cuda")
    if program != result.sample:
        known = [hecbench.REASONS[program]] if program in hecbench.REASONS else []
    return f": {known[0]}" if known else ""


PREFACE = """\
This page lists the programs of [cuda-samples](https://github.com/NVIDIA/cuda-samples) that need
neither graphics nor libraries such as cuBLAS and cuFFT. They were built with their own CMake files
and with nvcc from NVIDIA's wheels, and run on a software H100. The command
`python tools/cuda_samples.py CHECKOUT` builds and runs the programs, and writes this page.

Each sample checks itself: it compares its result with a result that it computes on the CPU, and
exits with status 0 if the two results are equal. A sample passes if it exits with status 0 and has
run a kernel. A sample is waived if it reports that the device lacks a feature that it needs, such
as a second GPU. Times were measured on one CPU core that was also doing other work."""


HECBENCH_PREFACE = """\
This page lists programs of [HeCBench](https://github.com/zjin-lcf/HeCBench) that need no libraries
of machine code and were selected at random. They were built by their own Makefiles with nvcc from
NVIDIA's wheels, and run on a software H100. The command
`python tools/cuda_samples.py CHECKOUT {drawn}` runs the programs and writes this page.

The arguments are those of the rule `run` of each Makefile, except that each kernel is repeated only
once, and that two programs have smaller sizes (`ARGUMENTS` in tools/hecbench.py). A program may use
60 s of CPU time. Most programs exit with status 0 even if their results are wrong, so the verdict
depends on what they print."""


def document(results: list[Result], title: str, preface: str) -> str:
    """The page."""
    passed = [result for result in results if result.verdict == "passed"]
    separate = sum(result.separate for result in passed)
    lines = [
        f"# {title}",
        "",
        *preface.splitlines(),
        "",
        f"**{len(passed)} of {len(results)} passed**; {separate} of these were built with separate"
        " compilation (`-rdc=true`).",
        "",
        "| sample | verdict | build time, s | run time, s |",
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
    parser.add_argument("--most", type=int, default=60, help="programs of HeCBench that are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "cuda-samples")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--document", type=Path)
    given = parser.parse_args()
    if missing := missing_wheels():
        sys.exit(f"these wheels are missing: {', '.join(missing)}")
    hec = hecbench.is_hecbench(given.checkout)
    name = "hecbench" if hec else "cuda_samples"
    kept: Path = given.results or ROOT / "build" / f"{name}.json"
    results: dict[str, dict[str, Any]] = {}
    if kept.exists():
        results = json.loads(kept.read_text("utf-8"))
    arguments = {} if hec else arguments_of(given.checkout)
    kept.parent.mkdir(parents=True, exist_ok=True)
    drawn = hecbench.programs(given.checkout, given.most, given.seed) if hec else None
    for sample in drawn or samples(given.checkout):
        if not re.search(given.only, sample.name) or (given.missing and sample.name in results):
            continue
        if hec:
            result = tried_program(sample)
        else:
            result = tried(sample, given.build / sample.name, arguments.get(sample.name, []))
        print(f"{sample.name}: {result.verdict}", flush=True)
        results[sample.name] = asdict(result)
        kept.write_text(json.dumps(results, indent=1), "utf-8")
    preface = HECBENCH_PREFACE.format(drawn=f"--most {given.most} --seed {given.seed}")
    page = document(
        [Result(**result) for result in results.values()],
        "Programs of HeCBench" if hec else "NVIDIA's cuda-samples",
        preface if hec else PREFACE,
    )
    (given.document or ROOT / "docs" / f"{name}.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main()
