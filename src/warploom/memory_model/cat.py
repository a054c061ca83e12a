"""Reads memory models: the notation of cat.

Source: Alglave, Cousot and Maranget, "Syntax and semantics of the weak consistency model
specification language cat", 2016.

    model      ::= NAME statement*
    statement  ::= "let" NAME "=" expression
                 | ("empty" | "irreflexive" | "acyclic") expression "as" NAME

Operators from loosest to tightest: `|` (union), `;` (composition), `\\` (difference), `&`
(intersection), `*` (all pairs of two sets), then `^-1`, `+`, `*`, `?` after an operand. `[S]` is
the identity on a set, `_` all events, `0` the empty relation. Comments stand in `(* *)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from warploom.core.errors import WarploomError
from warploom.core.lazy import cached_property

CHECKS = ("empty", "irreflexive", "acyclic")
KEYWORDS = (*CHECKS, "let", "as")
TOKEN = re.compile(
    r"\s+|\(\*.*?\*\)|(?P<token>\^-1|[A-Za-z_][\w-]*|0|[|;\\&*?+=()\[\]])", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Node:
    """An expression: an operator with its operands, or a name."""

    op: str
    args: tuple[Node, ...] = ()
    name: str = ""

    def names(self) -> frozenset[str]:
        """Returns the names that stand in it."""
        inner = frozenset[str]().union(*(arg.names() for arg in self.args))
        return inner | {self.name} if self.op == "name" else inner


@dataclass(frozen=True)
class Model:
    """A memory model: what its names mean, in order, and its axioms (check, expression) by name."""

    name: str
    definitions: Mapping[str, Node]
    axioms: Mapping[str, tuple[str, Node]]

    @cached_property
    def needs(self) -> Mapping[str, frozenset[str]]:
        """Returns the given names on which each definition rests."""
        found: dict[str, frozenset[str]] = {}
        for name, node in self.definitions.items():
            found[name] = frozenset[str]().union(
                *(found.get(each, frozenset((each,))) for each in node.names())
            )
        return found


BINARY = ("|", ";", "\\", "&", "*")
"""The operators between two operands, from loosest to tightest."""

BEHIND = ("^-1", "+", "?", "*")


class _Reader:
    """The statements of a model's text, read from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def model(self) -> Model:
        """Returns the model."""
        name = self._take()
        definitions: dict[str, Node] = {}
        axioms: dict[str, tuple[str, Node]] = {}
        while self._next:
            keyword = self._take()
            if keyword == "let":
                defined = self._take()
                self._expect("=")
                definitions[defined] = self._expression(0)
            elif keyword in CHECKS:
                node = self._expression(0)
                self._expect("as")
                axioms[self._take()] = (keyword, node)
            else:
                raise WarploomError(f"the model {name}: no statement starts with {keyword!r}")
        return Model(name, definitions, axioms)

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._next
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            found = self._tokens[self._at - 1 : self._at + 3]
            raise WarploomError(f"a model has {' '.join(found)!r} where {token!r} is required")

    def _expression(self, level: int) -> Node:
        if level == len(BINARY):
            return self._operand()
        node = self._expression(level + 1)
        while self._next == BINARY[level]:
            op = self._take()
            right = self._expression(level + 1)
            node = Node("**" if op == "*" else op, (node, right))
        return node

    def _operand(self) -> Node:
        node = self._plain()
        while self._next in BEHIND and not (self._next == "*" and self._begins_operand()):
            node = Node(self._take(), (node,))
        return node

    def _begins_operand(self) -> bool:
        """Returns whether an operand follows the next token, so that a `*` stands between two."""
        behind = "".join(self._tokens[self._at + 1 : self._at + 2])
        named = behind[:1].isalpha() and behind not in KEYWORDS
        return named or behind in ("(", "[", "0", "_")

    def _plain(self) -> Node:
        token = self._take()
        if token == "(":
            node = self._expression(0)
            self._expect(")")
            return node
        if token == "[":
            node = Node("[", (self._expression(0),))
            self._expect("]")
            return node
        if token in ("0", "_"):
            return Node(token)
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise WarploomError(f"a model has {token!r} where an operand is required")
        return Node("name", name=token)


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            line = text.count("\n", 0, at) + 1
            raise WarploomError(f"memory model, line {line}: {text[at]!r} is not valid syntax")
        if found["token"]:
            tokens.append(found["token"])
        at = found.end()
    return tokens


def parse_model(text: str) -> Model:
    """Returns the model of a text. Raises WarploomError where it is none."""
    return _Reader(text).model()


@cache
def named_model(name: str) -> Model:
    """Returns a model of this package: "ptx" or "sc"."""
    text = (
        resources.files("warploom.memory_model")
        .joinpath("models", f"{name}.cat")
        .read_text("utf-8")
    )
    return parse_model(text)
