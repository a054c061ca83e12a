"""The fuzzer finds errors of each kind that are planted in Warploom, and writes them as files that
show them again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import plants
import pytest
from fuzzing.branches import TakenSides, sides_of
from fuzzing.cases import Case, Finding, Outcome
from fuzzing.drawing import draw
from fuzzing.reduction import reduce_content
from fuzzing.regressions import replay_file, write
from fuzzing.targets import TARGETS, forms
from fuzzing.targets.launches import WrongResult
from fuzzing.targets.programs import shaped_programs
from replays import LAUNCH, Disagreement, replay

from warploom.isa.spec import FORMS, decode
from warploom.llvm import disk_cache
from warploom.lower.terms import terms
from warploom.machine.reference import evaluate

ROOT = Path(__file__).resolve().parent.parent.parent
FOUND, NOTHING = 1, 0
"""Exit statuses."""


def fuzz(folder: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """Runs the fuzzer with one worker; returns its exit status and its findings."""
    out = folder / "run.json"
    command = [sys.executable, str(ROOT / "tools" / "fuzz.py"), "--workers", "1", *options]
    done = subprocess.run(
        [*command, "--folder", str(folder), "--json", str(out)],
        env=os.environ | {"WARPLOOM_OPT_LEVEL": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.exists(), done.stderr
    return done.returncode, json.loads(out.read_text("utf-8"))["findings"]


def planted(name: str) -> tuple[str, str]:
    """Returns the option that plants an error in the workers."""
    return "--plant", f"tests.tools.plants:{name}"


@pytest.mark.nightly
def test_a_wrong_instruction_is_found_and_reduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file passes without the error, and fails with it."""
    status, [finding] = fuzz(
        tmp_path,
        *planted("wrong_result"),
        *("--targets", "shaped", "--seed", "0", "--examples", "30", "--errors", "1"),
        *("--reduce", "30"),
    )
    assert status == FOUND
    assert finding["outcome"]["kind"] == "wrong result"
    text = Path(finding["file"]).read_text("utf-8")
    whole, _ = draw(shaped_programs(), finding["seed"])
    assert "xor" in text
    assert text.count("\n") < whole.count("\n") // 2
    assert text.startswith("// wrong result: ")
    assert LAUNCH.search(text)
    replay(text)
    for changed, name in ((disk_cache, "find"), (disk_cache, "store")):
        monkeypatch.setattr(changed, name, getattr(changed, name))
    monkeypatch.setattr(terms, "NODES", dict(terms.NODES))
    plants.wrong_result()
    monkeypatch.setenv("WARPLOOM_OPT_LEVEL", "0")  # baseline code calls what is loaded already
    with pytest.raises(Disagreement):
        replay(text)


def test_a_wrong_instruction_among_all_forms_is_found_and_left_alone(tmp_path: Path) -> None:
    """The program that is left has the wrong operation and no other."""
    status, [finding] = fuzz(
        tmp_path,
        *planted("wrong_reversal"),
        *("--targets", "forms", "--seed", "0", "--examples", "400", "--errors", "1"),
        *("--reduce", "60"),
    )
    assert status == FOUND
    assert finding["outcome"]["kind"] == "wrong result"
    head, launch, *operations = Path(finding["file"]).read_text("utf-8").splitlines()
    assert head.startswith("// wrong result: ")
    assert LAUNCH.search(launch)
    assert len(operations) == 1


def test_programs_have_all_forms_but_those_of_calls_and_the_stack() -> None:
    """The rest has tests of its own (`test_every_warp_form_agrees`); products of warp groups stand
    between the instructions that begin, commit and await them."""
    every = {spec for specs in FORMS.values() for spec in specs}
    assert {spec.name for spec in every - forms.EVERY} == {
        *("call", "ret", "trap", "alloca", "stacksave", "stackrestore", "wgmma")
    }
    assert forms.executed(range(forms.PROGRAMS)) == forms.EVERY


def test_sides_of_conditions_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """`selp` has one condition, its predicate."""
    monkeypatch.setitem(evaluate.NODES, "select", evaluate.NODES["select"])  # put back afterwards
    taken, [term] = TakenSides(), decode("selp.b32").terms
    taken.add(["selp.b32"])
    numbers = np.arange(4, dtype=np.uint32)
    for predicates, sides in (
        ([True] * 4, ("selp.b32 0 true",)),
        ([False] * 4, ("selp.b32 0 false",)),
        ([True, False] * 2, ("selp.b32 0 false", "selp.b32 0 true")),
    ):
        evaluate.evaluate(term, [numbers, numbers, np.array(predicates)], 4)
        assert taken.collect() == sides
    assert taken.collect() == ()
    assert sides_of("selp.b32") == 2
    assert sides_of("add.u32") == 0


def test_a_missing_bounds_check_is_found(tmp_path: Path) -> None:
    status, [finding] = fuzz(
        tmp_path,
        *planted("missing_bounds_check"),
        *("--targets", "store_batches", "--examples", "20", "--errors", "1", "--reduce", "0"),
    )
    assert status == FOUND
    assert "where the reference machine has ['" in finding["outcome"]["message"]


def test_exceptions_hangs_and_ends_of_the_process_are_found(tmp_path: Path) -> None:
    """Each is counted once, with the file that makes the reader fail."""
    status, findings = fuzz(
        tmp_path,
        *planted("damaged_files"),
        *("--targets", "fatbin,trace,cache", "--examples", "40", "--errors", "3"),
        *("--scale", "0.05", "--reduce", "0"),
    )
    assert status == FOUND
    kinds = {finding["target"]: finding["outcome"]["kind"] for finding in findings}
    assert kinds == {"fatbin": "exception", "trace": "hang", "cache": "process death"}
    messages = {finding["target"]: finding["outcome"]["message"] for finding in findings}
    assert "ZstdError" in messages["fatbin"]
    assert "SIGABRT" in messages["cache"]
    for finding in findings:
        replay_file(Path(finding["file"]))


def test_nothing_is_found_where_nothing_is_planted(tmp_path: Path) -> None:
    options = ("--targets", "fatbin,cache,launches", "--examples", "5")
    assert fuzz(tmp_path, *options) == (NOTHING, [])


def test_a_seed_gives_the_same_case() -> None:
    for name in ("programs", "forms", "shaped", "store_batches", "ptx", "launches", "fatbin"):
        cases = [TARGETS[name].generate(seed) for seed in (5, 5, 6)]
        assert cases[0] == cases[1] != cases[2]


def test_what_is_left_fails_and_no_line_of_it_is_without_need() -> None:
    """A text fails that has both of two lines, and a word in the second."""
    text = "".join(f"line {n}\n" for n in range(50)) + "first\nthe second word\n"

    def fails(content: str | bytes) -> bool:
        lines = str(content).splitlines()
        return "first" in lines and any(line.split()[-1:] == ["word"] for line in lines)

    def has_7(content: str | bytes) -> bool:
        return isinstance(content, bytes) and 7 in content

    assert reduce_content(text, fails) == "first\n word\n"
    assert reduce_content(bytes(range(100)), has_7) == b"\7"


def test_a_launch_is_written_and_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose result is wrong when NumPy has to calculate another one."""
    case = Case("launches", 'kernel = "reverse"\nsucceeds = true\n')
    outcome = Outcome("wrong result", "WrongResult", "out[0] is 1")
    path = write(case, Finding("launches", 3, outcome, [3]), tmp_path)
    assert path == tmp_path / "files" / "launches_3.case"
    replay_file(path)
    from fuzzing.targets import launches

    calculate = launches.calculate
    monkeypatch.setattr(launches, "calculate", lambda *given: calculate(*given) + 1)
    with pytest.raises(WrongResult, match=r"out\[0\] is 315, and NumPy calculates 316"):
        replay_file(path)
