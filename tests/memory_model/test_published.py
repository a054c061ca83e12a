"""The model of PTX gives the published answers of litmus tests."""

from __future__ import annotations

import re
from pathlib import Path

from warploom.memory_model.cat import named_model
from warploom.memory_model.language import parse_litmus
from warploom.memory_model.search import outcomes

TESTS = Path(__file__).parent / "published.litmus"
ANSWER = re.compile(r"\(\* (yes|no) \*\)")

DISAGREEMENTS = {
    # Of three threads at a barrier for two, one waits for ever: here, such an execution has no end
    # and so no final state (PTX ISA, "bar": the barrier is complete with two).
    "quorum1-pass": False,
    "quorum2-pass": False,
    "quorum3-pass": False,
    "quorum4-pass": False,
    # Observation order goes through atomics (PTX ISA, "Observation order": "through an optional
    # sequence of atomic read-modify-write operations"); the table's model takes one step only.
    "LB+RMW-a": False,
}
"""What the model here answers in place of the table, and why."""


def published() -> dict[str, tuple[str, bool]]:
    """Returns the text and the published answer of each test, by name."""
    parts = ANSWER.split(TESTS.read_text("utf-8").partition("*)")[2])
    texts, answers = parts[:-1:2], parts[1::2]
    names = [re.findall(r"PTX (\S+)", text)[0] for text in texts]
    return {
        name: (text, answer == "yes")
        for name, text, answer in zip(names, texts, answers, strict=True)
    }


def test_published_answers() -> None:
    wrong: dict[str, bool] = {}
    tests = published()
    for name, (text, answer) in tests.items():
        test = parse_litmus(text)
        found = outcomes(test.program, named_model("ptx"))
        labels = [one.label for one in test.program.observed]
        states = [dict(zip(labels, state, strict=True)) for state in found.allowed]
        if test.question.answer(states) != answer:
            wrong[name] = test.question.answer(states)
    assert len(tests) >= 200
    assert wrong == DISAGREEMENTS
