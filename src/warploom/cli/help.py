"""Shows the help and the usage errors of commands: options in groups, one style of errors."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from warploom.cli.coercion import convert_without_pydantic

USAGE_ERRORS: type[Exception] = typer.BadParameter.__bases__[0]
"""What typer raises for a command line that cannot be read."""

OTHER = "Options"


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by their group (`rich_help_panel`)."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters and the help option."""
        return convert_without_pydantic(super().get_params(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section of arguments, then one for each group of options."""
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
    return f"error: {sentence}{end} See `{command} --help`."
