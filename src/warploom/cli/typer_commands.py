"""Extends typer's commands: help with options in groups, one style of usage errors, and plain
values converted without pydantic, which takes longer to import than typer itself.

Newer versions of typer convert every value, defaults too, by a pydantic adapter. Texts, numbers,
paths and lists of texts that are written the usual way need none. Typer converts any other value,
and reports those that it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

USAGE_ERRORS: type[Exception] = typer.BadParameter.__bases__[0]
"""What typer raises for a command line that cannot be read."""

OTHER = "Options"

OF_PROGRAMS = "-program"
"""The ending of the name of a command's form for programs."""


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by their group (`rich_help_panel`)."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters and the help option."""
        return convert_without_pydantic(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes a section of arguments, then one for each group of options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_argument = parameter.param_type_name == "argument"
            group = getattr(parameter, "rich_help_panel", None) or OTHER
            sections.setdefault("Arguments" if is_argument else group, []).append(record)
        last = sections.pop(OTHER, [])
        for title, records in [*sections.items(), (OTHER, last)]:
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def usage_message(error: Exception) -> str:
    """Returns a usage error in one line, with the command whose help says more."""
    message = getattr(error, "format_message", lambda: str(error))()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "warploom"
    sentence = message.rstrip(".")
    end = "" if sentence.endswith("?") else "."
    other = _other_form(error)
    if other:
        kind = "programs" if other.endswith(OF_PROGRAMS) else "launches of a kernel"
        option = getattr(error, "option_name", "")
        return f"error: {command} has no option {option}; {kind} have it: see `{other} --help`."
    return f"error: {sentence}{end} See `{command} --help`."


def _other_form(error: Exception) -> str:
    """Returns the command that has the option that a usage error does not know, if that is the form
    of the same command for programs, or for kernels; empty if it has not."""
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", None)
    if context is None or context.parent is None or option is None:
        return ""
    name = context.info_name
    other = name.removesuffix(OF_PROGRAMS) if name.endswith(OF_PROGRAMS) else name + OF_PROGRAMS
    command = context.parent.command.get_command(context.parent, other)
    known = {text for one in command.params for text in one.opts} if command else set[str]()
    return f"{context.parent.command_path} {other}" if option in known else ""


_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")

_PATH_LIMITS = ("exists", "writable", "resolve_path", "allow_dash", "path_type")
"""Settings of a path option that demand something of the file, or another type."""


def convert_without_pydantic(parameters: list[Any]) -> list[Any]:
    """Makes the parameters of a typer command convert plain values themselves, and returns them;
    changes nothing in versions of typer that do not use pydantic."""
    for parameter in parameters:
        if hasattr(parameter, "_runtime_param") and hasattr(parameter, "type_descriptor"):
            parameter._runtime_param = PlainCoercion(parameter.type_descriptor)
    return parameters


@dataclass(frozen=True)
class PlainCoercion:
    """Converts the values of one parameter, in place of typer's `RuntimeParam`; `descriptor` is
    typer's description of its type."""

    descriptor: Any

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Returns a value of the parameter's type. Raises typer.BadParameter if there is none."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        plain = plain_value(self.descriptor.annotation, self.descriptor.parameter_info, value)
        if plain is not None:
            return plain
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def plain_value(annotation: Any, settings: Any, value: Any) -> Any:
    """Returns a value converted to the type `annotation`, None if it is not written the usual way
    or may be outside the limits that `settings`, typer's of the parameter, give it."""
    if getattr(settings, "parser", None) is not None:
        return None
    if annotation == list[str]:
        return _texts(value)
    if annotation is Path:
        has_limits = any(getattr(settings, name, None) for name in _PATH_LIMITS)
        return Path(value) if isinstance(value, (str, Path)) and not has_limits else None
    if annotation in (str, bool):
        return value if type(value) is annotation else None
    if annotation is int:
        return _number(int, _INTEGER, settings, value)
    return _number(float, _NUMBER, settings, value) if annotation is float else None


def _texts(values: Any) -> list[str] | None:
    """Returns a list of texts, None if the values are something else."""
    if type(values) not in (list, tuple) or any(type(one) is not str for one in values):
        return None
    return list(values)


def _number(
    convert: Callable[[Any], int | float], written: re.Pattern[str], settings: Any, value: Any
) -> int | float | None:
    """Returns a number, None if the value is not one within the limits of `settings`."""
    if type(value) is not convert and not (type(value) is str and written.fullmatch(value)):
        return None
    number, least, most = convert(value), settings.min, settings.max
    is_inside = (least is None or number >= least) and (most is None or number <= most)
    return number if is_inside else None
