"""Checks that the text of a design is one function that can only compute, and makes that function.

A design comes from a learner, whom nobody has to trust: its function has no imports, no attributes
but a few methods of lists, dictionaries and sets, no names but its own and a few built-in
functions, and no strings, by which such a language could be left. The process in which it runs has
limits of time and memory (`ui.runner`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from warploom.core.errors import WarploomError

BUILT_IN: dict[str, Callable[..., Any]] = {
    **{one.__name__: one for one in (abs, min, max, range, int, len)},
}
"""The functions that every design may call."""

COLLECTIONS: dict[str, Callable[..., Any]] = {
    **{one.__name__: one for one in (sorted, list, dict, set, tuple, sum, enumerate, zip)},
    **{one.__name__: one for one in (any, all, reversed)},
}
"""The functions that a design with collections may call, too."""

METHODS = frozenset(
    [
        *("append", "extend", "pop", "insert", "remove", "sort", "reverse", "index", "count"),
        *("add", "discard", "update", "union", "get", "setdefault", "items", "keys", "values"),
    ]
)
"""The methods that a design with collections may call."""

STATEMENTS = (
    *(ast.Return, ast.Assign, ast.AugAssign, ast.If, ast.For, ast.While, ast.Break, ast.Continue),
    *(ast.Pass, ast.Expr),
)
EXPRESSIONS = (
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.Constant),
    *(ast.Subscript, ast.Name, ast.expr_context, ast.boolop, ast.unaryop, ast.cmpop),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor),
    *(ast.LShift, ast.RShift, ast.Tuple),
)
WITH_COLLECTIONS = (
    *(ast.Attribute, ast.List, ast.Dict, ast.Set, ast.Slice, ast.ListComp, ast.SetComp),
    *(ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.Starred),
)

FILE = "design.py"
"""The name of the file that the function's code names."""

LONGEST = 20_000
"""Characters of a design at most."""


class PolicyError(WarploomError):
    """A design that cannot run: `reason` says why, `line` is where it is wrong."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"line {line}: {reason}")
        self.reason, self.line = reason, line


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a design: the name of its function and its parameters, and whether it may use
    collections."""

    function: str
    parameters: tuple[str, ...]
    collections: bool = False

    @property
    def heading(self) -> str:
        """Returns the first line of the function."""
        return f"def {self.function}({', '.join(self.parameters)}):"


def function_of(text: str, form: Form) -> Callable[..., Any]:
    """Returns the function of a design's text. Raises PolicyError, which has the line, for a text
    that is not one function of the form, and for what the function may not use."""
    if len(text) > LONGEST:
        raise PolicyError(f"the design is longer than {LONGEST:,} characters", 1)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise PolicyError(getattr(error, "msg", None) or str(error), line) from None
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    if len(functions) != 1 or functions[0].name != form.function:
        raise PolicyError(f"the design must have one function, `{form.heading}`", 1)
    for node in tree.body:
        if node is not functions[0] and not _is_docstring(node):
            raise PolicyError(f"only the function `{form.function}` is allowed here", node.lineno)
    for problem, line in _problems(functions[0], form):
        raise PolicyError(problem, line)
    names: dict[str, Any] = {"__builtins__": {}, **BUILT_IN}
    if form.collections:
        names |= COLLECTIONS
    try:
        code = compile(ast.Module([functions[0]], []), FILE, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise PolicyError(getattr(error, "msg", None) or str(error), line) from None
    exec(code, names)
    return names[form.function]


def _problems(function: ast.FunctionDef, form: Form) -> Iterator[tuple[str, int]]:
    """Yields what a function may not have, with lines."""
    given = function.args
    names = tuple(one.arg for one in given.args)
    more = given.defaults, given.vararg, given.kwarg, given.kwonlyargs, given.posonlyargs
    # Annotations and decorators would be evaluated when the function is made.
    annotated = [function.returns, *(one.annotation for one in given.args)]
    annotated += [*function.decorator_list, *getattr(function, "type_params", ())]
    if names != form.parameters or any(more) or any(annotated):
        yield f"the function must begin with `{form.heading}`", function.lineno
    allowed = (*STATEMENTS, *EXPRESSIONS, *(WITH_COLLECTIONS if form.collections else ()))
    callable_names = {*BUILT_IN, *(COLLECTIONS if form.collections else ())}
    body = function.body[1:] if _is_docstring(function.body[0]) else function.body
    for top in body:
        for node in ast.walk(top):
            line = getattr(node, "lineno", top.lineno)
            if not isinstance(node, allowed):
                yield f"{_named(node)} is not allowed in a design", line
            elif isinstance(node, ast.Name) and node.id.startswith("_"):
                yield f"the name {node.id} begins with an underscore", line
            elif isinstance(node, ast.Constant) and not isinstance(node.value, int | None):
                yield f"the constant {node.value!r} is not an integer", line
            elif isinstance(node, ast.Attribute) and node.attr not in METHODS:
                yield f".{node.attr} is not one of {', '.join(sorted(METHODS))}", line
            elif isinstance(node, ast.Call):
                yield from ((one, line) for one in _call_problems(node, callable_names))


def _call_problems(call: ast.Call, names: set[str]) -> Iterator[str]:
    """Yields what is wrong with a call."""
    if isinstance(call.func, ast.Name):
        if call.func.id not in names:
            yield f"{call.func.id}() is not one of {', '.join(sorted(names))}"
    elif not isinstance(call.func, ast.Attribute):
        yield "a design can call a function or a method only by its name"


def _is_docstring(node: ast.stmt) -> bool:
    """Returns whether a statement is a text alone."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _named(node: ast.AST) -> str:
    """Returns what a learner calls a part of the language."""
    known = {
        "Import": "import",
        "ImportFrom": "import",
        "FunctionDef": "a nested function",
        "Lambda": "lambda",
        "Pow": "**",
        "Div": "/ (use //)",
        "Attribute": "an attribute or a method",
        "List": "a list",
        "Dict": "a dictionary",
        "Set": "a set",
        "ListComp": "a list",
        "JoinedStr": "a text",
        "Slice": "a slice",
        "Try": "try",
        "With": "with",
        "Global": "global",
        "NamedExpr": ":=",
    }
    name = type(node).__name__
    return known.get(name, name)
