"""Reads the schema of an operator of ATen: its arguments and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Schema:
    """An operator as its calls see it. `tensors` are the positions of its tensors, `written` the
    positions and names of arguments that it writes; `returned` says for each result which argument
    it is: a position, a name, or None for a result of its own."""

    name: str
    tensors: tuple[int, ...]
    written: tuple[int | str, ...]
    gives_tensors: bool
    outputs: frozenset[str]
    returned: tuple[int | str | None, ...]
    takes_numbers: bool
    draws: bool
    takes_generator: bool

    @staticmethod
    def of(name: str, operator: Any) -> Schema:
        """Reads the schema of an OpOverload."""
        arguments = operator._schema.arguments
        places: dict[str, int | str] = {}
        written: list[int | str] = []
        for position, argument in enumerate(arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                place = argument.name if argument.kwarg_only else position
                written.append(place)
                # A list of tensors has no alias of its own.
                places |= dict.fromkeys(argument.alias_info.before_set, place)
        return Schema(
            name,
            tuple(n for n, a in enumerate(arguments) if "Tensor" in str(a.type)),
            tuple(written),
            any("Tensor" in str(returned.type) for returned in operator._schema.returns),
            frozenset(argument.name for argument in arguments if argument.is_out),
            tuple(_source(returned, places) for returned in operator._schema.returns),
            torch._C._should_allow_numbers_as_tensors(_plain(name)),
            torch.Tag.nondeterministic_seeded in operator.tags,
            any(argument.name == "generator" for argument in arguments),
        )


def _plain(name: str) -> str:
    """Returns the name without its namespace and variant: `add` for `aten::add.Tensor`."""
    return name.partition("::")[2].partition(".")[0]


def _source(returned: Any, places: dict[str, int | str]) -> int | str | None:
    """Returns the place of the argument that a result is; None for a result of its own."""
    if returned.alias_info is None:
        return None
    return next((places[alias] for alias in returned.alias_info.before_set), None)
