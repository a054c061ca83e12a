"""Represents the space of a tuning: the values that each parameter may have, and the launches they
make.

Some names shape the launch: `block`, or `block_size_x`, `_y` and `_z` as Kernel Tuner has them;
`grid`; `shared`, bytes of dynamic shared memory; `regs`, registers a thread at most; `device`. All
but these are macros of the source (`-DNAME=VALUE`), and so are `block_size_x` and its like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from warploom.core.errors import Dim3, WarploomError
from warploom.tuning.restrictions import Restriction, conditions, expression

Value = int | float | str
Configuration = dict[str, Value]
"""One value for each parameter; shapes of more than one dimension are texts such as "16x8"."""

AXES = ("block_size_x", "block_size_y", "block_size_z")
LAUNCH = ("block", "grid", "shared", "regs", "device")

_NAME = re.compile(r"[A-Za-z_]\w*")
_RANGE = re.compile(r"(-?\d+):(-?\d+)(?::(\d+))?")
_SHAPE = re.compile(r"\d+(x\d+){0,2}")


def parse_space(text: str) -> dict[str, list[Value]]:
    """Returns the space that a text describes: `block=64:1024:32,regs=32,64` has blocks of 64 to
    1024 threads in steps of 32, the last included, each with two limits on registers."""
    space: dict[str, list[Value]] = {}
    name = ""
    for part in text.split(","):
        head, equals, tail = part.partition("=")
        if equals:
            name = head.strip()
            if name in space:
                raise WarploomError(f"--space {text!r} has {name} twice")
        if not _NAME.fullmatch(name) or not (tail if equals else head).strip():
            raise WarploomError(
                f"--space {text!r} cannot be parsed at {part!r}. Write each parameter as "
                "NAME=FIRST:LAST:STEP or NAME=VALUE,VALUE,..., and separate parameters with commas "
                "(block=64:1024:32,regs=32,64)."
            )
        space.setdefault(name, []).extend(_values(text, (tail if equals else head).strip()))
    return space


def _values(whole: str, text: str) -> Iterable[Value]:
    found = _RANGE.fullmatch(text)
    if found is None:
        return [_value(text)]
    first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
    if step < 1 or last < first:
        raise WarploomError(f"--space {whole!r}: {text} is not an ascending range FIRST:LAST:STEP")
    return range(first, last + 1, step)


def _value(text: str) -> Value:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def configurations(
    space: Mapping[str, Sequence[Any]], restrictions: Iterable[Restriction] = ()
) -> list[Configuration]:
    """Returns all combinations of the values for which the restrictions hold, the first parameter
    changing slowest. Raises WarploomError for a space that means nothing, or has none of them."""
    for name, values in space.items():
        if not _NAME.fullmatch(name):
            raise WarploomError(f"the parameter {name!r} is not a valid macro name")
        if not len(values):
            raise WarploomError(f"the parameter {name} has no values")
    if "block" in space and any(axis in space for axis in AXES):
        raise WarploomError(
            "the space has both block and block_size_x, _y or _z; use only one of them"
        )
    named = [[plain(name, value) for value in values] for name, values in space.items()]
    every = [dict(zip(space, chosen, strict=True)) for chosen in product(*named)]
    holding = conditions(restrictions, space)
    found = [one for one in every if all(holds(dict(one)) for holds in holding)]
    if not found:
        raise WarploomError(f"none of the {len(every)} configurations satisfies all restrictions")
    return found


def plain(name: str, value: Any) -> Value:
    """Returns a parameter's value as JSON can keep it: shapes as text, numbers as Python's own."""
    if isinstance(value, tuple | list):
        return "x".join(map(str, cast(Sequence[Any], value)))
    if isinstance(value, str):
        return value
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, int | float):
        raise WarploomError(
            f"the parameter {name} cannot be {value!r}: it must be a number or a string"
        )
    return int(number) if isinstance(number, bool) else number


@dataclass(frozen=True, slots=True)
class Division:
    """Says how a problem is divided into blocks: the names of the parameters that are the block's
    threads in x, y and z, and for each axis the expressions by whose product the problem is
    divided, as Kernel Tuner's `grid_div_x` has them; none where the block's threads do."""

    block_names: tuple[str, ...] = AXES
    divisors: tuple[tuple[str, ...], ...] = ((), (), ())

    def check(self, space: Mapping[str, Sequence[Any]]) -> None:
        """Raises WarploomError for what a space does not know."""
        if self.block_names != AXES:
            for name in self.block_names[:2]:
                if name not in space:
                    raise WarploomError(
                        f"block_size_names contains {name}, which is not a parameter of the search "
                        "space. The parameters are "
                        f"{', '.join(space)}"
                    )
        for text in (one for axis in self.divisors for one in axis):
            expression(text, set(space), "grid divisor")


def geometry(
    configuration: Configuration,
    problem_size: Sequence[int] = (),
    division: Division = Division(),
) -> tuple[Dim3, Dim3]:
    """Grid and block of a configuration. Where the grid is not in it, so many blocks as cover the
    problem, of `problem_size` threads in each dimension, as `division` says."""
    names = division.block_names
    if any(axis in configuration for axis in names):
        block = _shape("block", "x".join(str(configuration.get(axis, 1)) for axis in names))
    else:
        block = _shape("block", configuration.get("block", 32))
    if not problem_size:
        return _shape("grid", configuration.get("grid", 1)), block
    if min(block) < 1:
        raise WarploomError(
            f"a block must have at least one thread in each dimension; this block is {block}"
        )
    x, y, z = (
        -(-size // _share(configuration, threads, texts))
        for size, threads, texts in zip(_three(problem_size), block, division.divisors, strict=True)
    )
    return (x, y, z), block


def _share(configuration: Configuration, threads: int, texts: Sequence[str]) -> int:
    """Returns how much of an axis of the problem a block covers."""
    product = 1.0 if texts else float(threads)
    for text in texts:
        value = expression(text, set(configuration), "grid divisor")(configuration)
        if not isinstance(value, int | float) or value <= 0:
            raise WarploomError(
                f"the grid divisor {text!r} is {value!r}; it must be greater than 0"
            )
        product *= value
    return max(1, round(product))


def _shape(what: str, value: Value) -> Dim3:
    if isinstance(value, int):
        return value, 1, 1
    if isinstance(value, float) or not _SHAPE.fullmatch(value):
        raise WarploomError(
            f"the {what} of a configuration must be a number, XxY or XxYxZ, not {value}"
        )
    return _three([int(part) for part in value.split("x")])


def _three(sizes: Sequence[int]) -> Dim3:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def compiler_options(configuration: Configuration) -> list[str]:
    """Returns the compiler options of a configuration."""
    options = [f"-D{name}={value}" for name, value in configuration.items() if name not in LAUNCH]
    if "regs" in configuration:
        options.append(f"-maxrregcount={configuration['regs']}")
    return options


def described(configuration: Configuration) -> str:
    """Returns a configuration in one line."""
    return ", ".join(f"{name}={value}" for name, value in configuration.items())
