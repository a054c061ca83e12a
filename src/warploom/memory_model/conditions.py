"""Conditions on final states: `exists (P0:r1 == 1 /\\ x == 2)`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warploom.core.errors import WarploomError

BITS = 32
TOKEN = re.compile(r"\s*(/\\|\\/|==|!=|=|~|\(|\)|-?\d+(?!\s*:)|(?:P?\d+\s*:\s*)?[A-Za-z_]\w*)")
HEAD = re.compile(r"\s*(~\s*exists|exists|forall)\b(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Test:
    """`op` ("==", "!=") of two operands: a number, or the label of what is observed."""

    op: str
    left: int | str
    right: int | str

    def holds(self, state: Mapping[str, int]) -> bool:
        """Returns whether it is true of a final state."""
        left, right = (
            (each if isinstance(each, int) else state[each]) % (1 << BITS)
            for each in (self.left, self.right)
        )
        return (left == right) == (self.op == "==")

    def labels(self) -> tuple[str, ...]:
        """Returns the labels of what it looks at."""
        return tuple(each for each in (self.left, self.right) if isinstance(each, str))


@dataclass(frozen=True, slots=True)
class Compound:
    """`op` ("and", "or", "not") of other conditions."""

    op: str
    parts: tuple[Condition, ...]

    def holds(self, state: Mapping[str, int]) -> bool:
        """Returns whether it is true of a final state."""
        if self.op == "not":
            return not self.parts[0].holds(state)
        return (all if self.op == "and" else any)(part.holds(state) for part in self.parts)

    def labels(self) -> tuple[str, ...]:
        """Returns the labels of what it looks at, in the order of the text."""
        return tuple(dict.fromkeys(label for part in self.parts for label in part.labels()))


Condition = Test | Compound


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a litmus test: whether a final state exists, none does ("~exists"), or all
    are so ("forall")."""

    quantifier: str
    condition: Condition

    def answer(self, states: Sequence[Mapping[str, int]]) -> bool:
        """Returns whether it holds of all possible final states."""
        found = [self.condition.holds(state) for state in states]
        if self.quantifier == "forall":
            return all(found)
        return any(found) == (self.quantifier == "exists")


def parse_question(text: str) -> Question:
    """Returns the question of a text. Raises WarploomError where it is none."""
    head = HEAD.fullmatch(text)
    if head is None:
        raise WarploomError(f"{text.strip()!r} must begin with exists, ~exists or forall")
    reader = _Reader(head[2])
    question = Question(head[1].replace(" ", ""), reader.either())
    reader.end()
    return question


class _Reader:
    """A condition's tokens, read from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = TOKEN.match(text, at)
            if found is None:
                raise WarploomError(f"{text[at:].strip()!r} is not valid in a condition")
            self._tokens.append(re.sub(r"\s", "", found[1]))
            at = found.end()

    def either(self) -> Condition:
        """Reads conditions between `\\/`."""
        return self._several("\\/", "or")

    def end(self) -> None:
        """Raises WarploomError where something is left."""
        if self._tokens:
            raise WarploomError(f"{' '.join(self._tokens)!r} follows a condition")

    def _several(self, sign: str, op: str) -> Condition:
        parts = [self._both() if op == "or" else self._one()]
        while self._tokens and self._tokens[0] == sign:
            self._tokens.pop(0)
            parts.append(self._both() if op == "or" else self._one())
        return parts[0] if len(parts) == 1 else Compound(op, tuple(parts))

    def _both(self) -> Condition:
        return self._several("/\\", "and")

    def _one(self) -> Condition:
        if self._tokens and self._tokens[0] == "~":
            self._tokens.pop(0)
            return Compound("not", (self._one(),))
        if self._tokens and self._tokens[0] == "(":
            self._tokens.pop(0)
            inner = self.either()
            if not self._tokens or self._tokens.pop(0) != ")":
                raise WarploomError("a condition has an unmatched (")
            return inner
        if len(self._tokens) < 3:
            raise WarploomError("a condition is incomplete")
        left, op, right = (self._tokens.pop(0) for _ in range(3))
        if op not in ("==", "=", "!="):
            raise WarploomError(f"{op!r} is not a comparison: write == or !=")
        return Test("!=" if op == "!=" else "==", _operand(left), _operand(right))


def _operand(text: str) -> int | str:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return f"P{text}" if text[0].isdigit() else text
