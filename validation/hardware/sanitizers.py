"""Records what compute-sanitizer says of the kernels of `tests/sanitize/cases`.

    python validation/hardware/sanitizers.py prepare FOLDER              # on any computer
    python validation/hardware/sanitizers.py record FOLDER RECORD.json   # on one with a GPU

Each of its four tools sees each kernel once; the record has its messages by tool and kernel.
Kernels run in batches, each in a process that may take SECONDS; those with errors of ALONE are
alone in theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
ALONE = {
    *("deadlock", "divergent barrier", "skipped barrier", "not a member"),
    *("out of bounds", "misaligned"),
}
"""Findings of kernels that may wait for ever, or leave a context that launches nothing more."""
SECONDS = 25
PROCESSES = 12
BATCH = 12
"""Kernels of a process."""
N = 1024
ENDLESS = "did not end"


def prepare(folder: Path) -> None:
    """Compile the kernels for compute capability 9.0 and list their launches."""
    sys.path[:0] = [str(ROOT / "tests/sanitize")]
    from cases import FOLDER, read_cases

    from warploom.frontends.cuda_cpp import compile_cuda
    from warploom.host.programs.ptxas import find_tool, identity, run_ptxas

    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    together = 0
    for path in sorted(FOLDER.glob("*.cu")):
        if path.stem == "lockstep":  # of compute capability 6.1
            continue
        file = read_cases(path.stem)
        ptx = compile_cuda(file.text, path.name, (9, 0))
        ptxas = find_tool("ptxas")
        assert ptxas is not None
        (folder / f"{path.stem}.cubin").write_bytes(
            run_ptxas(identity(ptxas), "sm_90", ptx, None).binary
        )
        for case in file.cases:
            launch = {"grid": [case.grid], "block": list(case.block), "kinds": sorted(case.kinds)}
            alone = case.kinds & ALONE
            batch = case.name if alone else f"{case.file} {together // BATCH}"
            together += not alone
            row = {"file": case.file, "name": case.name, "cooperative": case.cooperative}
            rows.append({**row, **launch, "batch": batch})
    (folder / "cases.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    print(f"{len(rows)} kernels in {len({row['batch'] for row in rows})} batches")


def launch(folder: Path, batch: str) -> None:
    """Launch the kernels of a batch."""
    from gpu import Gpu

    gpu = Gpu()
    for row in json.loads((folder / "cases.json").read_text("utf-8")):
        if row["batch"] != batch:
            continue
        code = (folder / f"{row['file']}.cubin").read_bytes()
        arrays = [gpu.to_device(np.zeros(N, np.int32)) for _ in range(2)]
        arrays.append(gpu.to_device(np.arange(N, dtype=np.int32)))
        arrays.append(gpu.allocate((N,), np.dtype(np.int32)))
        function = gpu.load(code, row["name"])
        print("launching", row["name"], flush=True)
        try:
            gpu.launch(function, row["grid"], row["block"], 0, arrays, row["cooperative"])
        except RuntimeError as error:
            print(f"launch of {row['name']}: {error}", flush=True)
    with suppress(RuntimeError):
        gpu.close()


def record(folder: Path, log: Path) -> None:
    """Write what each tool says of each batch to a file, as `verdicts` reads it."""
    rows = json.loads((folder / "cases.json").read_text("utf-8"))
    asked = [(tool, batch) for batch in {row["batch"]: 0 for row in rows} for tool in TOOLS]
    with ThreadPoolExecutor(PROCESSES) as pool, log.open("w", encoding="utf-8") as whole:
        outputs = pool.map(lambda one: _watched(folder, *one), asked)
        for (tool, batch), output in zip(asked, outputs, strict=True):
            whole.write(f"### {tool} {batch}\n{output}\n")


def verdicts(log: str) -> dict[str, dict[str, list[str]]]:
    """Returns the messages of each tool on each kernel that it saw, from the text of `record`."""
    found: dict[str, dict[str, list[str]]] = {tool: {} for tool in TOOLS}
    for part in re.split(r"^### ", log, flags=re.M)[1:]:
        tool, batch = part.partition("\n")[0].split(" ", 1)
        launched = re.findall(r"^launching (\w+)", part, re.M)
        for kernel in launched:
            found[tool].setdefault(kernel, [])
        messages = list(_messages(part))
        if part.rstrip().endswith(ENDLESS):
            messages.append((launched[-1] if launched else batch, ENDLESS))
        for kernel, message in messages:
            kept = found[tool].setdefault(kernel or batch, [])
            if message not in kept:
                kept.append(message)
    return found


def write(file: Path, found: dict[str, dict[str, list[str]]]) -> None:
    """Write verdicts as JSON: the kernels that were seen, and messages by tool and kernel."""
    seen = sorted(set.intersection(*(set(kernels) for kernels in found.values())))
    messages = {tool: {k: v for k, v in kernels.items() if v} for tool, kernels in found.items()}
    file.write_text(json.dumps({"seen": seen, **messages}, indent=1) + "\n", "utf-8")


def _watched(folder: Path, tool: str, batch: str) -> str:
    """Returns what a tool wrote of a batch, and ENDLESS where it did not end in time."""
    command = ["compute-sanitizer", "--tool", tool]
    command += ["--show-backtrace", "no", "--print-limit", "999"]
    if tool == "memcheck":
        command += ["--destroy-on-device-error", "kernel", "--report-api-errors", "no"]
    command += [sys.executable, __file__, "launch", str(folder), batch]
    with tempfile.TemporaryFile() as written:
        process = subprocess.Popen(
            command, stdout=written, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            process.wait(SECONDS)
            last = ""
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            last = ENDLESS
        written.seek(0)
        return written.read().decode(errors="replace") + last


def _messages(output: str) -> Iterator[tuple[str, str]]:
    """Yields messages of a tool, each with the kernel that it names."""
    block: list[str] = []
    for line in [*output.splitlines(), "========= "]:
        if not line.startswith("========="):
            continue
        text = line[9:].strip()
        if line.startswith("=========     ") and text:
            block.append(text)
            continue
        if block and "SUMMARY" not in block[0] and "COMPUTE-SANITIZER" not in block[0]:
            kernel = re.search(r"\b(\w+_(?:pass|fail))\b", " ".join(block))
            messages = [part for part in block if not re.match(r"by thread|Address|and is", part)]
            yield (kernel[1] if kernel else ""), re.sub(r"\+0x\w+|\[.*?\]", "", " ".join(messages))
        block = [text] if text else []


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description="Record verdicts of compute-sanitizer.")
    options.add_argument("action", choices=("prepare", "record", "launch"))
    options.add_argument("folder", type=Path)
    options.add_argument("more", nargs="*", default=())
    given = options.parse_args(arguments)
    if given.action == "prepare":
        prepare(given.folder)
    elif given.action == "launch":
        launch(given.folder, given.more[0])
    else:
        file = Path(given.more[0])
        record(given.folder, file.with_suffix(".txt"))
        write(file, verdicts(file.with_suffix(".txt").read_text("utf-8")))


if __name__ == "__main__":
    main()
