"""Designs in Python: what a function may not do, what coalescers cost, worked out by hand, and what
schedulers and prefetchers are that do as known ones do."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.core.errors import WarploomError
from warploom.ui.designs.coalescers import (
    COALESCE,
    COALESCERS,
    Access,
    accesses_of,
    costs_of_coalescers,
)
from warploom.ui.designs.launches import request_of, traced
from warploom.ui.designs.policy_source import Form, PolicyError, function_of
from warploom.ui.designs.ranking import PARTS
from warploom.ui.designs.timed import PREFETCH, RANK
from warploom.ui.grading import grade
from warploom.ui.lessons import find_lesson, lessons, read_lesson
from warploom.ui.schema import Design, Lesson, MeasuredKernel, Verdict

DESIGNED = {one.id: one for one in lessons() if one.task and one.task.design}


def design(name: str) -> Design:
    lesson = DESIGNED[name]
    assert lesson.task is not None
    assert lesson.task.design is not None
    return lesson.task.design


def solution(lesson: Lesson) -> str:
    assert lesson.task is not None
    return lesson.task.solution


# ---- what a function may do ----------------------------------------------------------------------


def written(form: Form, *lines: str) -> str:
    return "\n".join([form.heading, *(f"    {line}" for line in lines)]) + "\n"


ESCAPES = (
    ("import os\n" + written(COALESCE, "return []"), "only the function"),
    (written(COALESCE, "import os", "return []"), "import is not allowed"),
    (written(COALESCE, "return addresses.__class__"), ".__class__ is not one of"),
    (written(COALESCE, "return __import__"), "begins with an underscore"),
    (written(COALESCE, "return open(0)"), "open() is not one of"),
    (written(COALESCE, "return ().__len__()"), ".__len__ is not one of"),
    (written(COALESCE, "return '{0.__class__}'.format(1)"), ".format is not one of"),
    (written(COALESCE, "return f'{addresses}'"), "a text is not allowed"),
    (written(COALESCE, "return (lambda: 1)"), "lambda is not allowed"),
    (written(COALESCE, "return addresses[0](1)"), "only by its name"),
    (written(COALESCE, "def other(): pass", "return []"), "a nested function"),
    (written(COALESCE, "return [one for one in ()].append.__self__"), ".__self__ is not"),
    (written(COALESCE, "return addresses[0].real"), ".real is not one of"),
    (written(COALESCE, "return (one.gi_frame for one in [])"), ".gi_frame is not one of"),
    (written(COALESCE, "return (x := 1)"), ":= is not allowed"),
    (
        written(COALESCE, "try:", "    return []", "except ValueError:", "    return []"),
        "try is not",
    ),
    (written(COALESCE, "return 9 ** 9 ** 9"), "** is not allowed"),
    (written(COALESCE, "return coalesce(addresses, size)"), "coalesce() is not one of"),
    ("def coalesce(addresses, size=print(1)):\n    return []\n", "must begin with"),
    ("def coalesce(addresses: print(1), size):\n    return []\n", "must begin with"),
    ("def coalesce(addresses, size) -> print(1):\n    return []\n", "must begin with"),
    ("@print\n" + written(COALESCE, "return []"), "must begin with"),
    ("class coalesce: pass\n", "must have one function"),
    ("async " + written(COALESCE, "return []"), "must have one function"),
    ("def coalesce(addresses, size):\nreturn []", "expected an indented block"),
    ("def coalesce(addresses, size):\n  break\n", "outside loop"),
    ("(" * 5_000, "line 1"),
    ("#" * 30_000, "longer than"),
    ("\0", "line 1"),
)


@pytest.mark.parametrize(("text", "reason"), ESCAPES, ids=[reason for _, reason in ESCAPES])
def test_a_design_can_only_compute(text: str, reason: str) -> None:
    with pytest.raises(PolicyError) as found:
        function_of(text, COALESCE)
    assert reason in str(found.value)


def test_a_policy_of_the_engine_has_integers_alone() -> None:
    """Numba compiles them: what is not checked there must not be written."""
    for line, reason in (
        ("return [1]", "a list is not allowed"),
        ("return words[0:9]", "a slice is not allowed"),
        ("return words.ctypes", "an attribute or a method is not allowed"),
        ("return 1 / 2", "/ (use //) is not allowed"),
        ("return 0.5", "0.5 is not an integer"),
        ("return sorted(words)", "sorted() is not one of abs, int, len, max, min, range"),
    ):
        with pytest.raises(PolicyError, match=r"^line 2: ") as found:
            function_of(written(RANK, line), RANK)
        assert reason in str(found.value)


def test_what_designs_are_written_with_is_allowed() -> None:
    lines = (
        '"""A text at the beginning."""',
        "seen = {}",
        "for number, one in enumerate(sorted(set(addresses))):",
        "    if one not in seen and not (one & 3):",
        "        seen.setdefault(one // 32 * 32, []).append(number)",
        "rows = [(start, 32) for start in seen.keys()]",
        "while len(rows) > 99:",
        "    rows.pop()",
        "return rows[:-1] + rows[-1:]",
    )
    function = function_of(written(COALESCE, *lines), COALESCE)
    assert function([0, 4, 8, 64], 4) == [(0, 32), (64, 32)]


ENDLESS = ("while words[0] == 0:", "    words[1] += 1")


@pytest.mark.parametrize(
    ("name", "lines", "verdict"),
    [
        ("own-scheduler", (*ENDLESS, "return 0"), "The run was stopped after"),
        ("own-coalescer", ("while True:", "    pass"), "The run was stopped after"),
        ("own-coalescer", ("return [0] * (1 << 40)",), "needs more memory than --memory allows"),
        ("own-scheduler", ("return words[256]",), "beyond the end of its 256 words"),
        ("own-prefetcher", ("return line // (nth - nth)",), "a division by zero"),
        ("own-scheduler", ("return 1 << 70",), "Numba cannot compile rank"),
        ("own-coalescer", ("return addresses[99]",), "line 2"),
    ],
)
def test_a_design_that_fails_gets_a_verdict(
    name: str, lines: tuple[str, ...], verdict: str, tmp_path: Path
) -> None:
    form = PARTS[design(name).part].form
    file = tmp_path / f"{name}.py"
    file.write_text(written(form, *lines), "utf-8")
    seconds = "15" if lines[0].startswith("while") else "300"
    done = CliRunner().invoke(app, ["learn", "--check", str(file), "--seconds", seconds])
    assert done.exit_code == 1
    assert verdict in done.output
    assert "Traceback" not in done.output


# ---- coalescers ----------------------------------------------------------------------------------


def warp(start: int, step: int, size: int = 4) -> Access:
    return Access(tuple(start + step * lane for lane in range(32)), size, 1)


def packets(access: Access) -> list[int]:
    """Returns the packets of one access: those of the known coalescers, then of the solution."""
    mine = function_of(solution(DESIGNED["own-coalescer"]), COALESCE)
    return costs_of_coalescers(Counter({access: 1}), mine)


def test_packets_of_an_access_are_counted_by_hand() -> None:
    """32 neighbors: 32 sectors of 2 packets, a line of 5, 4 sectors of 2, and a line of 5."""
    assert [name for name, _ in COALESCERS] == [
        *("no coalescing", "lines of 128 bytes", "sectors of 32 bytes")
    ]
    assert packets(warp(0, 4)) == [64, 5, 8, 5]
    # From byte 16 on: sectors 0 to 4, of two lines; together a line and a sector: 5 + 2.
    assert packets(warp(16, 4)) == [64, 10, 10, 7]
    # Every second word: 8 sectors of two lines.
    assert packets(warp(0, 8)) == [64, 10, 16, 10]
    # One word: one sector, of one line.
    assert packets(warp(8, 0)) == [64, 5, 2, 2]
    # A column of 1,024 bytes a row: 32 sectors.
    assert packets(warp(0, 1024)) == [64, 160, 64, 64]
    # Doubles: 256 bytes are 8 sectors of two lines.
    assert packets(warp(0, 8, 8)) == [64, 10, 16, 10]
    # One lane of 16 bytes, from byte 24 on, is in two sectors; together 64 bytes: 3 packets.
    assert packets(Access((24,), 16, 1)) == [4, 5, 4, 3]


def test_accesses_are_those_of_the_launch() -> None:
    """SAXPY of 32,768 elements: 1,024 warps with two loads and a store of 128 bytes each. The naive
    transpose of 256 x 256: 2,048 loads of neighbors, and as many stores to a column."""
    given = design("own-coalescer")
    kernels = {kernel.kernel: kernel for kernel in given.kernels}
    mine = function_of(solution(DESIGNED["own-coalescer"]), COALESCE)
    found = accesses_of(traced(request_of(given, kernels["saxpy"])))
    assert sum(found.values()) == 3 * 1024
    assert costs_of_coalescers(found, mine) == [3072 * 64, 3072 * 5, 3072 * 8, 3072 * 5]
    found = accesses_of(traced(request_of(given, kernels["transpose_naive"])))
    assert sum(found.values()) == 2 * 2048
    expected = [4096 * 64, 2048 * (5 + 160), 2048 * (8 + 64), 2048 * (5 + 64)]
    assert costs_of_coalescers(found, mine) == expected


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ("[]", "byte 0 is in no transaction"),
        ("[(0, 32), (32, 32), (64, 32)]", "byte 96 is in no transaction"),
        ("[(16, 128)]", "(16, 128) is not an aligned transaction"),
        ("[(0, 256)]", "(0, 256) is not an aligned transaction"),
        ("[0]", "0 is not a (start, length) pair"),
        ("None", "not iterable"),
    ],
)
def test_transactions_have_to_be_right(made: str, reason: str) -> None:
    function = function_of(written(COALESCE, f"return {made}"), COALESCE)
    with pytest.raises(PolicyError) as found:
        costs_of_coalescers(Counter({warp(0, 4): 1}), function)
    assert reason in str(found.value)
    assert "32 lanes of 4 bytes at 0, 4, 8, 12, ..." in str(found.value)


# ---- schedulers and prefetchers ------------------------------------------------------------------


def graded(name: str, *lines: str, kernels: int = 5) -> Verdict:
    """Returns the verdict on a design, measured on the first kernels."""
    lesson = DESIGNED[name]
    assert lesson.task is not None
    few = replace(design(name), kernels=design(name).kernels[:kernels])
    form = PARTS[few.part].form
    return grade(replace(lesson, task=replace(lesson.task, design=few)), written(form, *lines))


def costs(verdict: Verdict) -> dict[str, tuple[int, ...]]:
    assert verdict.ranking is not None, verdict.error
    return {one.name: one.costs for one in verdict.ranking.scores}


@pytest.mark.parametrize(
    ("name", "line", "known"),
    [
        ("own-scheduler", "return 0", "loose round robin"),
        ("own-scheduler", "return age", "oldest first"),
        ("own-scheduler", "return age - 64 * last", "greedy, then oldest"),
        ("own-prefetcher", "return -1", "no prefetch"),
        ("own-prefetcher", "return line + 1 if missed and nth == 0 else -1", "next line"),
    ],
)
def test_a_design_like_a_known_one_costs_the_same(name: str, line: str, known: str) -> None:
    verdict = graded(name, line, kernels=2)
    found = costs(verdict)
    assert found["yours"] == found[known]
    assert not verdict.passed


TRIVIAL = (
    ("own-scheduler", "return 0"),
    ("own-scheduler", "return slot"),
    ("own-scheduler", "return -slot"),
    ("own-scheduler", "return -age"),
    ("own-scheduler", "return (7919 * slot + 104729 * now + 31 * (now >> 3)) % 97"),
    ("own-scheduler", "return instruction"),
    ("own-prefetcher", "return -1"),
    ("own-prefetcher", "return line"),
    ("own-prefetcher", "return line + 1 + nth"),
    ("own-prefetcher", "return line + 1 + nth if missed and nth < 2 else -1"),
    ("own-prefetcher", "return line + 8 if nth == 0 else -1"),
    ("own-prefetcher", "return line + (7919 * line) % 17 if nth == 0 else -1"),
    ("own-coalescer", "return [(a // 64 * 64, 64) for a in addresses]"),
    ("own-coalescer", "return [(s, 32) for s in sorted({a // 32 * 32 for a in addresses})]"),
    ("own-coalescer", "return [(s, 64) for s in sorted({a // 64 * 64 for a in addresses})]"),
    ("own-coalescer", "return [(s, 128) for s in sorted({a // 128 * 128 for a in addresses})]"),
)
"""Answers without a thought: one warp always, a random one, a constant distance, one length."""


@pytest.mark.parametrize(("name", "line"), TRIVIAL, ids=[line for _, line in TRIVIAL])
def test_a_trivial_answer_fails(name: str, line: str) -> None:
    verdict = graded(name, line)
    assert not verdict.error
    assert not verdict.passed


@pytest.mark.parametrize("name", DESIGNED)
def test_a_solution_is_the_best_on_at_least_four_kernels(name: str) -> None:
    lesson = DESIGNED[name]
    assert lesson.task is not None
    assert len(design(name).kernels) >= 4
    assert not grade(lesson, lesson.task.source).passed
    verdict = grade(lesson, lesson.task.solution)
    assert verdict.passed
    assert verdict.ranking is not None
    ranking = verdict.ranking
    assert ranking.mine == 0
    baseline = next(one for one in ranking.scores if one.name == PARTS[design(name).part].known[0])
    mine = ranking.scores[0]
    assert all(own <= its for own, its in zip(mine.costs, baseline.costs, strict=True))
    assert mine.score < 0.98 * ranking.scores[1].score
    scores = [one.score for one in ranking.scores]
    assert scores == sorted(scores)
    reference = next(one for one in ranking.scores if one.score == 1)
    for one in ranking.scores:
        ratios = [a / b for a, b in zip(one.costs, reference.costs, strict=True)]
        assert one.score == pytest.approx(math.prod(ratios) ** (1 / len(ratios)))


def test_the_terminal_shows_the_ranking(tmp_path: Path) -> None:
    file = tmp_path / "own-coalescer.py"
    file.write_text(solution(DESIGNED["own-coalescer"]), "utf-8")
    done = CliRunner().invoke(app, ["learn", "--check", str(file)], catch_exceptions=False)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0].split()[-1] == "histogram"
    assert lines[1].startswith("1. yours")
    assert lines[-1] == "The task is done."


def test_mistakes_in_a_design_are_named(tmp_path: Path) -> None:
    lesson = find_lesson("own-coalescer")
    assert lesson is not None
    text = (
        Path(str(Path(read_lesson.__code__.co_filename).parent)) / "own-coalescer.toml"
    ).read_text("utf-8")

    def read(change: tuple[str, str]) -> Any:
        file = tmp_path / "mine.toml"
        file.write_text(text.replace(*change), "utf-8")
        return read_lesson(file)

    with pytest.raises(WarploomError, match="there is no 'colaescer'"):
        read(('part = "coalescer"', 'part = "colaescer"'))
    with pytest.raises(WarploomError, match="v1000"):
        read(('part = "coalescer"\ndevice = "v100"', 'part = "coalescer"\ndevice = "v1000"'))
    assert isinstance(design("own-coalescer").kernels[0], MeasuredKernel)
    assert PREFETCH.parameters[0] == "line"
