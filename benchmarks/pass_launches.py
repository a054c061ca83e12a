"""Compiles kernels without each of some passes, and launches them under callgrind.

passes.py starts this in processes of their own:

    python benchmarks/pass_launches.py compile FOLDER KERNELS [PASS ...]
    python benchmarks/pass_launches.py launch FOLDER

The first leaves in the folder what it compiled, PTX and problems (PTX's compiler and NumPy are slow
under valgrind); the second launches that.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from callgrind import Callgrind
from families import CASES
from families.base import Case, Problem
from families.measuring import Launch

import warploom as wl
from warploom.host.programs.builds import KEPT, Builds, sharing
from warploom.ir.options import VARIABLE, Pass
from warploom.machine import launch as machine
from warploom.machine.compiled.engine import CompiledEngine
from warploom.program.program import Program

Result = TypeVar("Result")
FIRST = 'extern "C" __global__ void k(int *x) { if (x) x[0] = 1; }'
"""Compiled before anything is timed: it loads the compiler."""


@dataclass(frozen=True)
class Compiled:
    """Describes a kernel compiled without a pass, or with all (None): the processor time that took,
    and whether the kernel is launched, for its LLVM IR is not the one with all passes, or is that
    and some other is not."""

    kernel: str
    without: Pass | None
    seconds: float
    changes: bool


def read_compiled(folder: Path) -> list[Compiled]:
    """Returns what was compiled into a folder."""
    rows = json.loads((folder / "compiled.json").read_text("utf-8"))
    return [Compiled(**{**row, "without": row["without"] and Pass(row["without"])}) for row in rows]


@dataclass
class Compiler:
    """Compiles one kernel; LLVM's time is kept by the text of its LLVM IR, for passes that change
    nothing leave the same."""

    program: Program
    launch: machine.Launch
    llvm_seconds: dict[str, float] = field(default_factory=dict[str, float])

    def compile(self, without: Pass | None) -> tuple[str, float]:
        """Returns the LLVM IR of the kernel, and the processor seconds of compiling it."""
        text, emitting = _timed(lambda: self.emit(without))
        if text not in self.llvm_seconds:
            engine = device_without(without)[1]
            _, whole = _timed(lambda: engine.kernel(self.program, self.launch))
            self.llvm_seconds[text] = whole - emitting
        return text, emitting + self.llvm_seconds[text]

    def emit(self, without: Pass | None) -> str:
        """Returns the LLVM IR of the kernel."""
        engine = device_without(without)[1]
        return engine.llvm_ir(self.program, self.launch, baseline=False)


def device_without(without: Pass | None) -> tuple[wl.Device, CompiledEngine]:
    """Returns a device that leaves a pass out, and an engine like its own."""
    os.environ[VARIABLE] = without or ""
    gpu = wl.Device(workers=1)
    return gpu, CompiledEngine(gpu.spec)


def _timed(action: Callable[[], Result]) -> tuple[Result, float]:
    """Returns the result of an action, and the processor seconds that it takes."""
    begin = time.process_time()
    result = action()
    return result, time.process_time() - begin


def compile_all(folder: Path, names: Sequence[str], passes: Sequence[Pass]) -> None:
    """Compiles kernels with all passes and without each of some, and checks their results.

    Raises AssertionError where a result is wrong.
    """
    gpu = wl.Device(workers=1)
    gpu.compile(FIRST)["k"][1, 32](gpu.zeros(1, "int32"))
    compiled = [
        one
        for case in CASES
        if case.name in names
        for one in _compile_case(folder, gpu, case, passes)
    ]
    (folder / "compiled.json").write_text(json.dumps([asdict(one) for one in compiled]), "utf-8")


def _compile_case(
    folder: Path, gpu: wl.Device, case: Case, passes: Sequence[Pass]
) -> Iterator[Compiled]:
    """Yields what `compile_all` makes of one kernel."""
    _ptx(folder, case).write_text(gpu.load(case.path).ptx, "utf-8")
    shape = case.shapes[0]
    problem = case.build(shape)
    _problem(folder, case).write_bytes(pickle.dumps(problem))
    x, y, z, *_ = (*shape.block, 1, 1)
    program = gpu.load(_ptx(folder, case))[case.kernel].program
    compiler = Compiler(program, machine.Launch((1, 1, 1), (x, y, z), b""))
    compiler.emit(None)  # what all variants of a program share is found once
    whole, seconds = compiler.compile(None)
    made = [(name, *compiler.compile(name)) for name in passes]
    changed = [name for name, text, _ in made if text != whole]
    for without in (None, *changed):
        launch = _ready(folder, case, problem, without)
        launch()
        launch.check()
        launch.free()
    yield Compiled(case.name, None, seconds, bool(changed))
    for name, _, taken in made:
        yield Compiled(case.name, name, taken, name in changed)


def _ready(folder: Path, case: Case, problem: Problem, without: Pass | None) -> Launch:
    """Returns a launch of code without a pass."""
    gpu, _ = device_without(without)
    kernel = gpu.load(_ptx(folder, case))[case.kernel]
    return Launch(gpu, kernel, replace(case, build=lambda _: problem), case.shapes[0])


def launch_all(folder: Path) -> None:
    """Launches what was compiled, each in a part of callgrind's counts of its own."""
    counts = Callgrind(folder)
    counts.start()
    cases = {case.name: case for case in CASES}
    for one in read_compiled(folder):
        if one.changes:
            case = cases[one.kernel]
            problem = pickle.loads(_problem(folder, case).read_bytes())
            launch = _ready(folder, case, problem, one.without)
            counts.zero()
            launch()
            counts.dump()
            launch.free()


def _ptx(folder: Path, case: Case) -> Path:
    return folder / f"{case.path.stem}.ptx"


def _problem(folder: Path, case: Case) -> Path:
    return folder / f"{case.name}.pickle"


def main() -> None:
    action, folder, *rest = sys.argv[1:]
    with sharing(Builds(KEPT)):
        if action == "compile":
            names, *passes = rest
            compile_all(Path(folder), json.loads(names), [Pass(name) for name in passes])
        else:
            launch_all(Path(folder))


if __name__ == "__main__":
    main()
