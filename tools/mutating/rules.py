"""Draws errors in the rules of costs: one operator, comparison or number of a function of
`warploom.cost` is replaced by another.

The functions are plain Python in the tests of `tests/cost`, so the error is planted by replacing
the code of the function itself, under whatever name a test imported it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import random
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import warploom.cost
from mutating.mutant import Mutant, Subject
from mutating.rule_results import digest_with

OTHER_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Not: ast.UAdd,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@cache
def functions() -> tuple[FunctionType, ...]:
    """Returns the functions and methods of the modules of `warploom.cost`."""
    modules = [
        importlib.import_module(f"warploom.cost.{each.name}")
        for each in pkgutil.iter_modules(warploom.cost.__path__)
    ]
    return tuple(
        each
        for module in modules
        for owner in (module, *(c for c in vars(module).values() if _is_own(c, module.__name__)))
        for each in vars(owner).values()
        if isinstance(each, FunctionType)
        and each.__module__ == module.__name__
        and "<locals>" not in each.__qualname__
        and each.__code__.co_filename == module.__file__
    )


def _is_own(value: object, module: str) -> bool:
    """Returns whether a value is a class of a module."""
    return inspect.isclass(value) and value.__module__ == module


def subject(function: FunctionType) -> Subject:
    """Returns the name of a function as the subject of errors."""
    return "rule", f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"


def watch(used: Callable[[str], object]) -> None:
    """Lets each of the functions call `used` with its name before it does anything else."""
    for function in functions():
        tree, definition = _definition(function)
        call = ast.parse(f"__used__({subject(function)[1]!r})").body
        definition.body[:0] = [ast.copy_location(each, definition) for each in call]
        function.__globals__["__used__"] = used
        function.__code__ = _compiled(tree, function)


def draw_rule(rng: random.Random) -> Mutant | None:
    """Returns an error in a function, any of which is equally probable; None where there is nothing
    in it to change, or the change makes no difference (`rule_results`)."""
    function = rng.choice(functions())
    tree, definition = _definition(function)
    places = list(_places(definition))
    if not places:
        return None
    node = rng.choice(places)
    line = function.__code__.co_firstlineno + node.lineno - 1
    before = ast.unparse(node)
    _change(node, rng)
    text = f"line {line}: {before[:60]} -> {ast.unparse(node)[:60]}"
    code = _compiled(tree, function)

    def plant() -> None:
        """Replaces the code of the function."""
        function.__code__ = code

    if digest_with(plant) == _right_digest():
        return None
    return Mutant(subject(function), text, plant)


@cache
def _right_digest() -> str:
    """Returns the hash of all results without an error."""
    return digest_with(lambda: None)


def _definition(function: FunctionType) -> tuple[ast.Module, ast.FunctionDef]:
    """Returns the syntax tree of a function's source, without decorators and annotations."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    definition.returns = None
    for argument in definition.args.args:
        argument.annotation = None
    return tree, definition


def _places(definition: ast.FunctionDef) -> Iterator[ast.expr | ast.AugAssign]:
    """Yields the expressions that can be changed."""
    for node in ast.walk(definition):
        match node:
            case ast.Constant(value=bool() | int()):
                yield node
            case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.UnaryOp(op=op) | ast.AugAssign(op=op):
                if type(op) in OTHER_OPERATORS:
                    yield node
            case ast.Compare(ops=[op]) if type(op) in OTHER_OPERATORS:
                yield node
            case ast.IfExp() | ast.Call(func=ast.Name(id="min" | "max")):
                yield node
            case _:
                pass


def _change(node: ast.expr | ast.AugAssign, rng: random.Random) -> None:
    """Changes an expression in place."""
    match node:
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + rng.choice((1, -1))
        case ast.Compare():
            node.ops = [_other(node.ops[0])]
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case ast.Call(func=ast.Name(id=name)):
            node.func = ast.copy_location(
                ast.Name("max" if name == "min" else "min", ast.Load()), node
            )
        case ast.BinOp() | ast.BoolOp() | ast.UnaryOp() | ast.AugAssign():
            node.op = _other(node.op)
        case _:
            raise AssertionError(node)


def _other(operator: ast.AST) -> Any:
    """Returns the operator that stands in place of one."""
    return OTHER_OPERATORS[type(operator)]()


def _compiled(tree: ast.Module, function: FunctionType) -> CodeType:
    """Returns the code of a changed definition, with the file and the lines of the function."""
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    module = compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec")
    return next(each for each in module.co_consts if isinstance(each, CodeType))
