"""Checks the options of a call against the types that its signature declares.

`@checked("Device(...)")` wraps a function: an option that it does not have, or a value that does
not fit, is an OptionTypeError or an OptionValueError that names the option. The annotations alone
declare the types: `int` takes what `operator.index` takes, `Annotated[int, Integer(0)]` a part of
that, `Annotated[str, OneOf(NAMES)]` some texts, `**options: Unpack[T]` the fields of a TypedDict.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from warploom.core.errors import OptionTypeError, OptionValueError
from warploom.core.values import (
    Callback,
    Either,
    Flag,
    Instance,
    Integer,
    Items,
    Nothing,
    Real,
    Rule,
    shown,
)

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

UNTYPED = (inspect.Parameter.empty, Any, "Any")
"""Annotations that say nothing."""

SINGLE_RULES: Mapping[Any, Rule] = {
    Any: Rule(),
    object: Rule(),
    NoneType: Nothing(),
    bool: Flag(),
    int: Integer(),
    float: Real(),
}


def checked(call: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator that checks a function's options; `call` is its name in errors."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        rules = cache(lambda: _rules_of(function))
        names, star = _positional(function)
        first = int(names[:1] == ("self",))
        unchecked: Callable[..., R] = function

        @wraps(function)
        def call_checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given: Any = args
            named: Any = kwargs
            if kwargs or min(len(args), len(names)) > first or (star and args):
                known = rules()
                named = check_options(call, kwargs, {n: known[n] for n in known if n != star})
                values = [
                    convert(call, name, value, known[name]) if name in known else value
                    for name, value in zip(names, args, strict=False)
                ]
                rest = args[len(values) :]
                if star:
                    rest = tuple(convert(call, star, value, known[star]) for value in rest)
                given = (*values, *rest)
            return unchecked(*given, **named)

        return call_checked

    return decorate


def checked_fields(kind: type[T]) -> type[T]:
    """Decorates a dataclass: its fields are checked as `checked` checks parameters."""
    kind.__init__ = checked(f"{kind.__name__}(...)")(kind.__init__)
    return kind


def check_options(call: str, given: Mapping[str, Any], rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Returns the options as the call takes them; raises OptionTypeError for a name that is not
    among the rules and what `convert` raises for a value."""
    for name in given:
        if name not in rules:
            raise OptionTypeError(f"{call} has no option {name!r}. {nearest(name, rules)}")
    return {name: convert(call, name, value, rules[name]) for name, value in given.items()}


def convert(call: str, name: str, value: Any, rule: Rule) -> Any:
    """Returns a value as its rule converts it. Raises OptionTypeError for a wrong type,
    OptionValueError for a value of the right type that does not fit."""
    try:
        return rule.convert(value)
    except TypeError:
        kind = OptionTypeError
    except (ValueError, OverflowError):
        kind = OptionValueError
    hint = ""
    if kind is OptionValueError and isinstance(value, str):
        close = difflib.get_close_matches(value, rule.names, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
    raise kind(f"{call}: {name} takes {rule.expected}, not {shown(value)}.{hint}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns a sentence with the known name that is closest to `name`; all of them if none is."""
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Its options are {', '.join(names)}." if names else "It has none."


# ---- from annotations to rules ------------------------------------------------------------------


def _positional(function: Callable[..., Any]) -> tuple[tuple[str, ...], str]:
    """Returns the names of the parameters that can be given by position, and the name of `*args`
    where its type is declared, else an empty one."""
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.signature(function).parameters.values()
    stars = [p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    typed = [p.name for p in stars if p.annotation not in UNTYPED]
    return tuple(p.name for p in parameters if p.kind in kinds), "".join(typed)


def _rules_of(function: Callable[..., Any]) -> dict[str, Rule]:
    """Return the rules of a function's annotated parameters by name, those of `**options` among
    them."""
    parameters = inspect.signature(function).parameters
    declared = {name: p.annotation for name, p in parameters.items() if p.annotation != p.empty}
    holder = type("Parameters", (), {"__annotations__": declared})  # a result can be unresolvable
    hints = get_type_hints(holder, inspect.unwrap(function).__globals__, include_extras=True)
    rules: dict[str, Rule] = {}
    for parameter in parameters.values():
        hint = hints.get(parameter.name)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD and get_origin(hint) is Unpack:
            fields = get_type_hints(get_args(hint)[0], include_extras=True)
            rules |= {name: rule_of(field) for name, field in fields.items()}
        elif parameter.name in hints:
            rules[parameter.name] = rule_of(hint)
    return rules


def rule_of(hint: Any) -> Rule:
    """Returns the rule of a type annotation; TypeError for a form that has none."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _refined(parts[0], parts[1:])
    if origin in (Union, UnionType):
        return Either(tuple(rule_of(part) for part in parts))
    if origin is tuple or origin is Sequence:
        return Items(rule_of(parts[0]))
    if origin is Callable:
        return Callback()
    if hint in SINGLE_RULES:
        return SINGLE_RULES[hint]
    kind = origin or hint
    if not isinstance(kind, type):
        raise TypeError(f"no rule for {hint!r}; use Annotated[..., Rule()]")
    return Instance(kind)


def _refined(hint: Any, extras: Sequence[Any]) -> Rule:
    """Return the rule of an `Annotated` type: the one that it carries, else the type's."""
    return next((extra for extra in extras if isinstance(extra, Rule)), None) or rule_of(hint)
