"""Expressions as C++ writes them: parsed into a tree.

A little more than C++: registers (`$r1`, `%r1`, `%tid.x`), `x[0]@8` for eight elements from there
on, and the functions `any`, `all` and `popcount` of a condition over the active lanes of the warp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from warploom.debug.scene import EvaluationError


@dataclass(frozen=True)
class Name:
    """A variable, a register or a symbol."""

    text: str


@dataclass(frozen=True)
class Number:
    """A literal; `suffix` are its letters."""

    value: int | float
    suffix: str = ""


@dataclass(frozen=True)
class Unary:
    """An operator before its operand."""

    operator: str
    operand: Node


@dataclass(frozen=True)
class Binary:
    """An operator between its operands; `[]`, `@` and assignments among them."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Choice:
    """`condition ? yes : no`."""

    condition: Node
    yes: Node
    no: Node


@dataclass(frozen=True)
class Access:
    """`of.name`, or `of->name` where `arrow`."""

    of: Node
    name: str
    arrow: bool


@dataclass(frozen=True)
class Call:
    """A function of an expression."""

    function: str
    argument: Node


@dataclass(frozen=True)
class Cast:
    """`(type) operand`."""

    type: str
    operand: Node


Node = Name | Number | Unary | Binary | Choice | Access | Call | Cast

_TOKEN = re.compile(
    r"\s*(?:(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?|\d+[eE][+-]?\d+[fFlL]?)"
    r"|(?P<integer>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?P<suffix>[uUlL]*)"
    r"|'(?P<character>\\?[^'])'"
    r"|(?P<name>[$%]?[A-Za-z_]\w*(?:::~?\w+)*|\$)"
    r"|(?P<operator>->|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|[-+*/%&|^~!<>=?:.,()\[\]@]))"
)

_BINARY = {
    "||": 2,
    "&&": 3,
    "|": 4,
    "^": 5,
    "&": 6,
    "==": 7,
    "!=": 7,
    "<": 8,
    ">": 8,
    "<=": 8,
    ">=": 8,
    "<<": 9,
    ">>": 9,
    "+": 10,
    "-": 10,
    "*": 11,
    "/": 11,
    "%": 11,
    "@": 12,
}
"""Operators between two operands, the tighter the higher."""

_ASSIGNMENT = ("=", "+=", "-=", "*=", "/=")
_TYPE_WORDS = frozenset(
    [
        "void",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "signed",
        "unsigned",
        "const",
        "half",
        "size_t",
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
        "__half",
        "struct",
    ]
)
LANE_FUNCTIONS = ("any", "all", "popcount", "ballot")


def names_in(node: Node) -> Iterator[str]:
    """Yields the names of variables in a tree."""
    if isinstance(node, Name):
        yield node.text
        return
    for field in fields(node):
        part = getattr(node, field.name)
        if is_dataclass(part):
            yield from names_in(part)  # type: ignore[arg-type]


def parse(text: str) -> Node:
    """Returns the tree of an expression. Raises EvaluationError for what is none."""
    parser = _Parser(text)
    node = parser.assignment()
    if parser.kind != "end":
        raise parser.wrong()
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._take()

    def _take(self) -> None:
        """Advances to the next token."""
        self._start = self._at
        if not self._text[self._at :].strip():
            self.kind, self.token, self.suffix = "end", "", ""
            return
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self.wrong()
        self._at = found.end()
        kinds = ("float", "integer", "character", "name", "operator")
        self.kind = next(kind for kind in kinds if found[kind] is not None)
        self.token, self.suffix = found[self.kind], (found["suffix"] or "").lower()

    def wrong(self) -> EvaluationError:
        """Returns the error for what stands here."""
        rest = self._text[self._start :].strip()
        stop = f"`{rest}`" if rest else "the end"
        return EvaluationError(f"`{self._text}` is not a valid expression: {stop} is unexpected")

    def _is_at(self, kind: str, token: str) -> bool:
        return (self.kind, self.token) == (kind, token)

    def _accept(self, *operators: str) -> str:
        if self.kind == "operator" and self.token in operators:
            token = self.token
            self._take()
            return token
        return ""

    def _expect(self, operator: str) -> None:
        if not self._accept(operator):
            raise self.wrong()

    def assignment(self) -> Node:
        """Returns an expression that may assign."""
        left = self._choice()
        if operator := self._accept(*_ASSIGNMENT):
            right = self.assignment()
            if operator != "=":
                right = Binary(operator[0], left, right)
            return Binary("=", left, right)
        return left

    def _choice(self) -> Node:
        condition = self._binary(0)
        if not self._accept("?"):
            return condition
        yes = self.assignment()
        self._expect(":")
        return Choice(condition, yes, self._choice())

    def _binary(self, least: int) -> Node:
        left = self._unary()
        while self.kind == "operator" and _BINARY.get(self.token, -1) > least:
            operator = self.token
            self._take()
            left = Binary(operator, left, self._binary(_BINARY[operator]))
        return left

    def _unary(self) -> Node:
        if operator := self._accept("-", "+", "!", "~", "*", "&"):
            return Unary(operator, self._unary())
        if self._is_at("operator", "(") and (type := self._type_in_brackets()):
            return Cast(type, self._unary())
        if self._is_at("name", "sizeof"):
            self._take()
            if self._is_at("operator", "(") and (type := self._type_in_brackets()):
                return Unary("sizeof", Cast(type, Number(0)))
            return Unary("sizeof", self._unary())
        return self._postfix(self._primary())

    def _type_in_brackets(self) -> str:
        """Returns the type of a cast, and moves past it; empty, without a move, where there is
        none."""
        found = re.match(
            r"\(\s*([A-Za-z_][\w:<> ,]*?)\s*((?:\*|const|\s)*)\)",
            self._text[self._start :].lstrip(),
        )
        if found is None:
            return ""
        words = found[1].split()
        if not (set(words) & _TYPE_WORDS or "*" in found[2]):
            return ""
        skipped = len(self._text[self._start :]) - len(self._text[self._start :].lstrip())
        self._at = self._start + skipped + found.end()
        self._take()
        return f"{found[1]} {found[2]}".strip()

    def _primary(self) -> Node:
        token, kind, suffix = self.token, self.kind, self.suffix
        if self._accept("("):
            inner = self.assignment()
            self._expect(")")
            return inner
        if kind not in ("float", "integer", "character", "name"):
            raise self.wrong()
        self._take()
        if kind == "float":
            single = token[-1] in "fF"
            return Number(float(token.rstrip("fFlL")), "f" if single else "")
        if kind == "integer":
            return Number(int(token, 0) if not _octal(token) else int(token, 8), suffix)
        if kind == "character":
            return Number(ord(token[-1]), "c")
        if token in LANE_FUNCTIONS and self._accept("("):
            inner = self.assignment()
            self._expect(")")
            return Call(token, inner)
        return Name(token)

    def _postfix(self, node: Node) -> Node:
        while operator := self._accept("[", ".", "->"):
            if operator == "[":
                node = Binary("[]", node, self.assignment())
                self._expect("]")
                continue
            if self.kind != "name":
                raise self.wrong()
            node = Access(node, self.token, operator == "->")
            self._take()
        return node


def _octal(token: str) -> bool:
    return len(token) > 1 and token.isdigit() and token[0] == "0"
