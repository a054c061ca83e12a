"""Rules for the values of options: what each takes, in words, and how it converts them.

`convert` raises TypeError for a wrong type, and ValueError for a value that does not fit.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from warploom.core.lazy import cached_property

SHOWN_CHARACTERS = 60
"""Longer values are cut in messages."""


def shown(value: Any) -> str:
    """Returns a value and its type for a message: "'5' (str)"."""
    text = repr(value)
    cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."
    return cut if value is None else f"{cut} ({type(value).__name__})"


class Rule:
    """A rule for one value; this one takes any."""

    expected: str = "any value"
    """The values that it takes, in words: "an integer of at least 1"."""

    names: Sequence[str] = ()
    """The texts that it takes, where they are few."""

    def convert(self, value: Any) -> Any:
        """Returns the value in the type that the option has."""
        return value


class Nothing(Rule):
    """Takes None."""

    expected = "None"

    def convert(self, value: Any) -> Any:
        if value is not None:
            raise TypeError
        return value


class Flag(Rule):
    """Takes truth values, NumPy's among them."""

    expected = "True or False"

    def convert(self, value: Any) -> bool:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError
        return bool(cast(bool, value))


@dataclass(frozen=True)
class Integer(Rule):
    """Takes integers from `least` to `most`, NumPy's among them; None stands for no bound."""

    least: int | None = None
    most: int | None = None

    @cached_property
    def expected(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        bounds = (self.least is not None) + 2 * (self.most is not None)
        limits = ("", " of at least {}", " of at most {1}", " from {} to {}")
        return "an integer" + limits[bounds].format(self.least, self.most)

    def convert(self, value: Any) -> int:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
        if self.least is not None and number < self.least:
            raise ValueError
        if self.most is not None and number > self.most:
            raise ValueError
        return number


class Real(Rule):
    """Takes finite numbers."""

    expected = "a finite number"

    def convert(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            raise TypeError
        number = float(cast(float, value))
        if not np.isfinite(number):
            raise ValueError
        return number


@dataclass(frozen=True)
class OneOf(Rule):
    """Takes some texts."""

    names: tuple[str, ...]  # pyright: ignore[reportIncompatibleVariableOverride]

    @cached_property
    def expected(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "one of " + ", ".join(map(repr, self.names))

    def convert(self, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError
        if value not in self.names:
            raise ValueError
        return value


class Callback(Rule):
    """Takes functions and other things that can be called."""

    expected = "a function"

    def convert(self, value: Any) -> Any:
        if not callable(value):
            raise TypeError
        return value


@dataclass(frozen=True)
class Instance(Rule):
    """Takes objects of a class."""

    kind: type

    @cached_property
    def expected(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        name = {"str": "string"}.get(self.kind.__name__, self.kind.__name__)
        return f"a {name}" if name[0].lower() not in "aeiou" else f"an {name}"

    def convert(self, value: Any) -> Any:
        if not isinstance(value, self.kind):
            raise TypeError
        return value


@dataclass(frozen=True)
class Items(Rule):
    """Takes lists and tuples of what another rule takes; gives a tuple."""

    item: Rule

    @cached_property
    def expected(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return f"a sequence in which each item is {self.item.expected}"

    def convert(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise TypeError
        return tuple(self.item.convert(part) for part in cast("Sequence[Any]", value))


@dataclass(frozen=True)
class Either(Rule):
    """Takes what one of several rules takes; the first that does converts it."""

    rules: tuple[Rule, ...]

    @cached_property
    def names(self) -> Sequence[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return tuple(name for rule in self.rules for name in rule.names)

    @cached_property
    def expected(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        *others, last = (rule.expected for rule in self.rules)
        return f"{', '.join(others)} or {last}"

    def convert(self, value: Any) -> Any:
        wrong: Exception = TypeError()
        for rule in self.rules:
            try:
                return rule.convert(value)
            except TypeError:
                continue
            except (ValueError, OverflowError) as error:
                wrong = error
        raise wrong


class ElementType(Rule):
    """Takes what NumPy makes a type of numbers of; gives it as `np.dtype`."""

    expected = "an element type, such as np.float32"

    def convert(self, value: Any) -> np.dtype[Any]:
        if value is None:  # which NumPy takes for float64
            raise TypeError
        made: np.dtype[Any] = np.dtype(value)
        if made.hasobject or not made.itemsize:
            raise ValueError
        return made
