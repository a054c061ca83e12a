"""Takes the kernels of public repositories, runs them on both machines, and counts by cause what
does not go: docs/corpus.md.

    git clone --bare https://github.com/OWNER/NAME corpus/OWNER+NAME    # each repository
    python tools/corpus.py corpus [--most N] [--seed S] [--results FILE] [--document FILE]

A folder of the corpus is a checkout or a bare repository. Every file of PTX that ptxas takes is
loaded; that needs `warploom[ptxas]`. Of each repository, `--most` files of PTX, CUDA C++ and
OpenCL C are drawn. Each is compiled with the folders that hold the headers it includes, loaded, and
its kernels are launched with drawn arguments (buffers for numbers of 64 bits, small numbers for
others) on the reference machine and in compiled code, in a process of its own with limits of time
and of instructions. Arguments that are drawn make faults: what counts is that both machines do the
same. The page has counts, and no text of others.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KINDS = {".ptx": "PTX", ".cu": "CUDA C++", ".cl": "OpenCL C"}
BESIDE = (".h", ".hpp", ".cuh", ".inl", ".hcl", ".clh", ".inc")
"""Files that others include."""

MOST_BYTES = 1 << 21
COMPUTE_CAPABILITY = (9, 0)
PROCESSOR_SECONDS, SECONDS = 90, 240
INSTRUCTIONS = 200_000
"""Bound of a launch, of warps' instructions."""

KERNELS, BLOCKS, THREADS, ELEMENTS = 6, 2, 64, 1 << 14
LOCAL_BYTES = 4096
"""Bytes of a parameter in local memory of OpenCL C."""

NOT_JUDGED = ("32-Bit compilation is no longer supported", "Unresolved extern")
"""Errors of ptxas that are none of a file: devices that had addresses of 32 bits, and functions
that are to be linked."""

NEAR = 1 << 33
"""The distance, in bytes, within which a word is taken for an address."""

OURS = ("refused", "loaded alone", "load", "disagreement", "error", "time")
"""Outcomes that are for us to mend; the others are of the text or of the drawn arguments."""

LOADED_ONLY = ("taken", "refused", "loaded alone")
"""Outcomes of files that are only loaded, beside those that are drawn."""

INCLUDE = re.compile(r"""^\s*#\s*include\s*[<"]([^>"]+)[>"]""", re.MULTILINE)
TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)", re.MULTILINE)
OLDEST = 75
"""The oldest architecture of ptxas today, for which it takes PTX of older ones, too."""


# ---- one file, in a process of its own ----------------------------------------------------------


def outcomes_of(file: Path, repository: Path | None) -> Iterator[tuple[str, str]]:
    """Yields the outcome of a file or of each of its kernels, and the cause."""
    from warploom.core.errors import WarploomError
    from warploom.ptx.parser import parse
    from warploom.ptx.verify import verify

    try:
        ptx = compiled(file, include_folders(file, repository) if repository else [])
    except WarploomError as error:
        yield "compile", cause(error)
        return
    try:
        module = parse(ptx)
        verify(module)
    except WarploomError as error:
        yield "load", cause(error)
        return
    entries = [f for f in module.functions if f.is_entry and f.body is not None]
    yield "loaded", f"{len(entries)} kernels"
    for entry in entries[:KERNELS]:
        yield launched(ptx, entry)


def loaded_as_ptxas_does(file: Path) -> Iterator[tuple[str, str]]:
    """Yields whether a device of its target loads a file of PTX that ptxas takes ("taken",
    "refused"), and the first error of ptxas for one that it refuses and that is loaded all the same
    ("loaded alone")."""
    import warploom as wl

    text = file.read_text("utf-8", errors="replace")
    target = TARGET.search(text)
    architecture = max(int(target[1]) if target else 0, OLDEST)
    complaint = complaint_of_ptxas(file, architecture)
    try:
        device = wl.Device(cc=f"{architecture // 10}.{architecture % 10}")
        device.compile(text, "ptx")
    except wl.WarploomError as error:
        if not complaint:
            yield "refused", cause(error)
    else:
        if not complaint:
            yield "taken", ""
        elif not complaint.startswith(NOT_JUDGED):
            yield "loaded alone", complaint


def complaint_of_ptxas(file: Path, architecture: int) -> str:
    """Returns the first error of ptxas for a file, without its place and names; empty if it makes
    machine code of it for an architecture, or for the one with all its own features."""
    [folder, *_] = importlib.import_module("nvidia.cu13").__path__
    complaint = ""
    for suffix in ("", "a"):
        command = [f"{folder}/bin/ptxas", f"-arch=sm_{architecture}{suffix}", str(file)]
        done = subprocess.run([*command, "-o", "/dev/null"], capture_output=True, check=False)
        if done.returncode == 0:
            return ""
        complaint = complaint or done.stderr.decode(errors="replace")
    found = re.search(r"(?:error|fatal) *: *(.*)", complaint)
    return re.sub(r"'[^']*'", "...", found[1] if found else complaint).strip()[:90]


def include_folders(file: Path, repository: Path) -> list[Path]:
    """Returns the folders of a repository in which a file, and what it includes, find headers that
    are not beside them: of several, the one that is nearest to the file."""
    by_name: dict[str, list[Path]] = defaultdict(list)
    for header in repository.rglob("*.*"):
        by_name[header.name].append(header)
    found: dict[Path, None] = {}
    waiting, seen = [file], {file}
    while waiting:
        text = waiting.pop().read_text("utf-8", errors="replace")
        for name in INCLUDE.findall(text):
            fitting = [h for h in by_name[Path(name).name] if str(h).endswith(f"/{name}")]
            if fitting:
                header = min(fitting, key=lambda header: distance(header, file))
                found[Path(str(header).removesuffix(f"/{name}"))] = None
                waiting += {header} - seen
                seen.add(header)
    return [*found]


def distance(one: Path, other: Path) -> int:
    """Returns how many folders lie between two files."""
    common = len(os.path.commonpath([one, other]).split("/"))
    return len(one.parts) + len(other.parts) - 2 * common


def compiled(file: Path, folders: Sequence[Path]) -> str:
    """Returns the PTX of a file."""
    from warploom.frontends.cuda_cpp import compile_cuda
    from warploom.frontends.opencl import compile_opencl

    text = file.read_text("utf-8", errors="replace")
    if file.suffix == ".ptx":
        return text
    compiler = compile_cuda if file.suffix == ".cu" else compile_opencl
    return compiler(text, str(file), COMPUTE_CAPABILITY, [f"-I{folder}" for folder in folders])


def launched(ptx: str, entry: Any) -> tuple[str, str]:
    """Returns what came of a launch on both machines."""
    found = [results(ptx, entry, engine) for engine in ("reference", "compiled")]
    (one, cause_of_one, memory), (other, cause_of_other, same) = found
    if "error" in (one, other):
        return "error", cause_of_one if one == "error" else cause_of_other
    if (one, cause_of_one) != (other, cause_of_other):
        return "disagreement", f"{cause_of_one or one} and {cause_of_other or other}"
    if one == "ran" and memory != same:
        return "disagreement", "memory"
    return one, cause_of_one


def results(ptx: str, entry: Any, engine: str) -> tuple[str, str, list[bytes]]:
    """Launches a kernel; returns the outcome, its cause, and what the buffers hold then, device
    addresses as distances from the first buffer: two devices have different ones."""
    import numpy as np

    import warploom as wl
    from warploom.isa.instruction import Space

    gpu = wl.Device("h100", engine=engine)
    buffers: list[wl.Buffer] = []
    numbers = np.random.default_rng(7).integers(0, 64, ELEMENTS).astype(np.uint32)
    arguments: list[Any] = []
    for parameter in entry.parameters:
        if parameter.shape:
            arguments.append(bytes(parameter.size))
        elif parameter.pointer_space is Space.SHARED:
            arguments.append(wl.LocalMemory(LOCAL_BYTES))
        elif parameter.type.bits == 64 and not parameter.type.is_float:
            buffers.append(gpu.to_device(numbers))
            arguments.append(buffers[-1].address)
        elif parameter.type.is_float:
            arguments.append(1.5)
        else:
            arguments.append(32 if parameter.type.bits > 16 else 1)
    try:
        kernel = gpu.compile(ptx, "ptx")[entry.name]
        kernel[BLOCKS, THREADS](*arguments, max_instructions=INSTRUCTIONS)
    except (wl.KernelFault, wl.DeadlockError) as error:
        return "fault", type(error).__name__, []
    except wl.LaunchError as error:
        return "launch", cause(error), []
    except wl.WarploomError as error:
        return ("fault" if "instructions" in str(error) else "error"), cause(error), []
    except Exception as error:
        return "error", f"{type(error).__name__}: {str(error).splitlines()[:1]}", []
    words = [buffer.copy_to_host().view(np.int64) for buffer in buffers]
    return "ran", "", [without_addresses(each, buffers[0].address).tobytes() for each in words]


def without_addresses(words: Any, origin: int) -> Any:
    """Returns 64-bit words, those that can be addresses near `origin` as distances from it."""
    import numpy as np

    return np.where(np.abs(words - origin) < NEAR, words - origin, words)


def cause(error: Exception) -> str:
    """Returns an error's class and message without what belongs to the text: names, numbers."""
    message = str(getattr(error, "log", "") or error)
    lines = [line for line in message.splitlines() if "error" in line] or message.splitlines()
    first = re.sub(r"^\S*?\(?\d+[:)]\d*:?\s*", "", lines[0] if lines else "")
    missing = re.search(r"""cannot open source file "([^"]+)"|'([^']+)' file not found""", first)
    if missing:
        return f"missing file {Path(missing[1] or missing[2]).name}"
    first = re.sub(r"(catastrophic )?error( #\d+)?:", "", first)
    first = re.sub(r"`[^`]*`|\"[^\"]*\"|'[^']*'|\S*/\S*", "...", first)
    return f"{type(error).__name__}: {re.sub(r'0x[0-9a-f]+|[0-9]+', 'N', first).strip()[:90]}"


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))


def judge(
    repository: str, file: Path, folder: Path, *, only_load: bool = False
) -> list[dict[str, str]]:
    """Returns the outcomes of a file, by a process of its own."""
    command = [sys.executable, __file__, str(folder), "--one", str(file)]
    command += ["--only-load"] if only_load else []
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, preexec_fn=limit, check=False
        )
        text, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        text, status = (late.stdout or b"").decode(), -9
    found = [tuple(json.loads(line)) for line in text.splitlines() if line.startswith("[")]
    if status in (-9, -24):
        found.append(("time", f"beyond {PROCESSOR_SECONDS} s of processor time"))
    elif status:
        found.append(("error", f"the process ended with {status}"))
    kind = KINDS[file.suffix]
    return [
        {"repository": repository, "file": file.name, "kind": kind, "outcome": o, "cause": c}
        for o, c in found
    ]


# ---- repositories -------------------------------------------------------------------------------


def checkout(folder: Path, target: Path) -> Path:
    """Returns the folder with the sources of a repository, unpacked to `target` if it is bare."""
    for git in (folder, folder / "repo", folder / "repo" / ".git"):
        if (git / "HEAD").exists():
            break
    else:
        return folder
    tree = _git(git, "ls-tree", "-r", "HEAD").decode(errors="replace")
    paths = dict(line.split(" ")[2].split("\t") for line in tree.splitlines() if line[0] == "1")
    wanted = {o: p for o, p in paths.items() if Path(p).suffix in (*KINDS, *BESIDE)}
    contents = _git(git, "cat-file", "--batch", given="\n".join(wanted))
    at = 0
    while at < len(contents):
        head, _, _ = contents[at : at + 200].partition(b"\n")
        name, *kind = head.decode().split()
        at += len(head) + 1
        if kind[0] != "blob":  # a snapshot may lack some
            continue
        size = int(kind[1])
        if size < MOST_BYTES and ".." not in wanted[name]:
            path = target / wanted[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents[at : at + size])
        at += size + 1
    return target


def _git(folder: Path, *arguments: str, given: str = "") -> bytes:
    """Returns what git prints."""
    command = ["git", f"--git-dir={folder}", *arguments]
    return subprocess.run(command, input=given.encode(), capture_output=True, check=False).stdout


def drawn(folder: Path, most: int, rng: random.Random) -> list[Path]:
    """Returns files of a repository, of each language up to `most`."""
    found: list[Path] = []
    for suffix in KINDS:
        files = sorted(path for path in folder.rglob(f"*{suffix}") if path.is_file())
        found += rng.sample(files, min(most, len(files)))
    return found


def page(rows: list[dict[str, str]], repositories: int, command: str) -> str:
    """Returns the page: counts of files and kernels by outcome, and the causes that are ours."""
    lines = [
        "# Kernels of public repositories",
        "",
        f"PTX, CUDA C++ and OpenCL C files were sampled from {repositories} public repositories,",
        "and were then compiled and loaded. The kernels in these files were launched with random",
        "arguments, on the reference machine and on the compiled engine. The following command",
        f"runs this test and writes this page: `{command}`.",
        "",
        "The arguments are buffers and small numbers, which might not be valid for the kernel.",
        "Faults are therefore common. The reference machine and the engine must report the same",
        "faults.",
        "",
        "| | " + " | ".join(KINDS.values()) + " |",
        "| --- |" + " --- |" * len(KINDS),
    ]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["outcome"]][row["kind"]] += 1
    files: Counter[str] = Counter()
    drawn = [row for row in rows if row["outcome"] not in LOADED_ONLY]
    for kind, _, _ in {(row["kind"], row["repository"], row["file"]) for row in drawn}:
        files[kind] += 1
    shown = {
        "files that ptxas accepts": counts["taken"] + counts["refused"],
        "files that ptxas accepts and Warploom loads": counts["taken"],
        "files that ptxas rejects and Warploom loads": counts["loaded alone"],
        "files sampled": files,
        "files that do not compile": counts["compile"],
        "files that compile, but are rejected when loaded": counts["load"],
        "files that were loaded": counts["loaded"],
        "kernels with the same results on both machines": counts["ran"],
        "kernels with the same fault on both machines": counts["fault"],
        "kernels whose launch was rejected because of its size or arguments": counts["launch"],
        "kernels with different results or faults on the two machines": counts["disagreement"],
        "other errors": counts["error"],
        "timeouts": counts["time"],
    }
    for title, numbers in shown.items():
        lines.append(f"| {title} | " + " | ".join(f"{numbers[k]:,}" for k in KINDS.values()) + " |")
    for title, outcomes in (
        ("Failures caused by Warploom", OURS),
        ("Reasons why files do not compile", ("compile",)),
    ):
        causes = Counter((row["kind"], row["cause"]) for row in rows if row["outcome"] in outcomes)
        lines += ["", f"## {title}", "", "| count | language | cause |", "| --- | --- | --- |"]
        for (kind, why), count in causes.most_common(20):
            lines.append(f"| {count} | {kind} | {why.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Judge the files of a corpus, keep the outcomes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--most", type=int, default=8, help="files of each language and repository")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("corpus.json"))
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "corpus.md")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--only-load", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        judged = (
            loaded_as_ptxas_does(options.one)
            if options.only_load
            else outcomes_of(options.one, options.corpus)
        )
        for outcome in judged:
            print(json.dumps(outcome), flush=True)
        return
    rng, rows = random.Random(options.seed), list[dict[str, str]]()
    folders = sorted(path for path in options.corpus.iterdir() if path.is_dir())
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = []
        for folder in folders:
            sources = checkout(folder, Path(scratch) / folder.name)
            for file in drawn(sources, options.most, rng):
                waiting.append(pool.submit(judge, folder.name, file, sources))
            for file in sorted(sources.rglob("*.ptx")):
                waiting.append(pool.submit(judge, folder.name, file, sources, only_load=True))
        for each in waiting:
            rows += each.result()
            options.results.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    command = f"python tools/corpus.py FOLDER --most {options.most} --seed {options.seed}"
    options.document.write_text(page(rows, len(folders), command), encoding="utf-8")


if __name__ == "__main__":
    main()
