"""Restrictions of a space: conditions on the parameters, as Kernel Tuner has them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from warploom.core.errors import WarploomError

Restriction = str | Callable[[dict[str, Any]], object]
"""An expression of the parameters, or a function that is given them by name."""

_PLAIN = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List),
    *(ast.BoolOp, ast.boolop, ast.UnaryOp, ast.unaryop, ast.Compare, ast.cmpop, ast.IfExp),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
)
"""What an expression may be made of: nothing that could do more than compare numbers and texts."""


def conditions(
    restrictions: Iterable[Restriction], names: Iterable[str]
) -> list[Callable[[dict[str, Any]], object]]:
    """Returns the restrictions as functions of a configuration, which has parameters of these
    names. Raises WarploomError for one that means nothing."""
    known = set(names)
    return [expression(one, known) if isinstance(one, str) else one for one in restrictions]


def expression(
    text: str, known: set[str], what: str = "restriction"
) -> Callable[[Mapping[str, Any]], object]:
    """Returns an expression of parameters as a function of a configuration. Raises WarploomError
    for one that means nothing, which calls it by `what`."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise WarploomError(f"the {what} {text!r} cannot be read: {error.msg}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _PLAIN):
            raise WarploomError(
                f"the {what} {text!r} can contain only arithmetic and comparisons of parameters; "
                "for anything else, pass a function (restrictions=[lambda p: ...])"
            )
        if isinstance(node, ast.Name) and node.id not in known:
            raise WarploomError(
                f"the {what} {text!r} uses {node.id}, which is not a parameter of the search space "
                f"({', '.join(sorted(known))})"
            )
    code = compile(tree, f"<{what}>", "eval")

    def holds(configuration: Mapping[str, Any]) -> object:
        try:
            return eval(code, {"__builtins__": {}}, dict(configuration))
        except (TypeError, ArithmeticError) as error:
            raise WarploomError(f"the {what} {text!r} cannot be evaluated: {error}") from None

    return holds
