"""Contains the explorables: pages with text and controls. When a user changes a control, the page
immediately shows the launch with the new value.

An explorable is one TOML file in this folder: the kernel's source, a launch in which `{name}`
stands for the value of the control `name`, and the step and the figures that are shown of each
launch. The values that a control lists are recorded beforehand; a server runs the launches of all
values in a control's ranges (`explore`).

In: the files. Out: the launches, and the page's data with what was counted in each. Drawing is left
to the page.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import cast

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.input_files import read_text
from warploom.observe.trace import Trace
from warploom.ui.measures import MEASURES, Place, find_step, measured
from warploom.ui.schema import (
    Anchor,
    Control,
    Explorable,
    Explored,
    ExploreRequest,
    LaunchRequest,
    Show,
    ValueRange,
)
from warploom.ui.shows import exported_show

FOLDER = Path(__file__).parent

EXPLORABLES = (
    *("stride", "padding", "block-shape", "taken", "warps"),
    *("scheduler", "stages", "atomics"),
)
"""The names of all, in order."""


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file. `figure` is a text with measures in braces (`ui.measures`), `curve` the name of
    one."""

    title: str
    text: str
    source: str
    launch: dict[str, object]
    controls: tuple[Control, ...]
    figure: str
    curve: str
    curve_label: str
    at: Anchor = Anchor()
    look: str = "memory"


@lru_cache
def read_explorable(name: str) -> Script:
    """Returns the file of that name."""
    return msgspec.convert(tomllib.loads(read_text(FOLDER / f"{name}.toml")), Script)


def requests_of_explorable(name: str) -> list[LaunchRequest]:
    """Returns the launches of an explorable that are recorded beforehand: one for each combination
    of its controls' values."""
    values = (control.values for control in read_explorable(name).controls)
    return [_request(name, chosen) for chosen in product(*values)]


def requests_along_ranges(name: str) -> list[LaunchRequest]:
    """Returns the launches that an explorable has on a server while one number of a value is
    changed, and all others are as in the beginning."""
    controls = read_explorable(name).controls
    start = [control.values[control.start] for control in controls]
    found: list[LaunchRequest] = []
    for index, control in enumerate(controls):
        for part, one in enumerate(control.ranges):
            for number in range(one.least, one.most + 1, one.step):
                numbers = start[index].split(",")
                numbers[part] = str(number)
                values = [*start[:index], ",".join(numbers), *start[index + 1 :]]
                found.append(_request(name, values))
    return found


def request_of_values(asked: ExploreRequest) -> LaunchRequest:
    """Returns the launch of an explorable with a value for each control. Raises WarploomError for
    values that the controls cannot have."""
    controls = read_explorable(asked.explorable).controls
    if len(asked.values) != len(controls):
        raise WarploomError(f"{asked.explorable} needs {len(controls)} values")
    for control, value in zip(controls, asked.values, strict=True):
        if value not in control.values and not _in_ranges(value, control.ranges):
            raise WarploomError(f"{control.label} cannot be {value[:20]}: {_allowed(control)}")
    return _request(asked.explorable, asked.values)


def _in_ranges(value: str, ranges: tuple[ValueRange, ...]) -> bool:
    """Returns whether a value has a number of each range, written as Python writes it."""
    parts = value.split(",")
    return len(parts) == len(ranges) and all(
        part in map(str, range(one.least, one.most + 1, one.step))
        for part, one in zip(parts, ranges, strict=True)
    )


def _allowed(control: Control) -> str:
    """Returns which values a control can have."""
    if not control.ranges:
        return f"it can be {', '.join(control.values)}"
    spans = [f"{one.least} to {one.most} in steps of {one.step}" for one in control.ranges]
    return f"it can be {', '.join(spans)}"


def _request(name: str, values: Sequence[str]) -> LaunchRequest:
    """Returns the launch of an explorable with these values of its controls."""
    script = read_explorable(name)
    chosen = {one.name: value for one, value in zip(script.controls, values, strict=True)}
    given = {field: _filled(part, chosen) for field, part in script.launch.items()}
    return msgspec.convert({"name": f"{name}.cu", "source": script.source, **given}, LaunchRequest)


def _filled(part: object, chosen: dict[str, str]) -> object:
    """Returns a part of a launch with the chosen values in its texts."""
    if isinstance(part, str):
        return part.format(**chosen)
    if isinstance(part, list):
        return [_filled(one, chosen) for one in cast("list[object]", part)]
    return part


def explored(name: str, trace: Trace) -> Explored:
    """Returns a launch of an explorable, with what was counted in its trace."""
    script = read_explorable(name)
    place = Place(trace, find_step(trace, script.at))
    figure, curve = measured(script.figure, place), float(MEASURES[script.curve](place))
    return Explored(figure, curve, trace.to_bytes())


def explorable_of(name: str, launches: Sequence[Explored], *, live: bool = False) -> Explorable:
    """Returns the data of a page, with what was counted in its launches. `live`: a server runs
    further ones."""
    script = read_explorable(name)
    return Explorable(
        id=name,
        title=script.title,
        text=tuple(" ".join(part.split()) for part in script.text.strip().split("\n\n")),
        controls=script.controls,
        at=script.at,
        look=script.look,
        figures=tuple(one.figure for one in launches),
        curve=tuple(one.curve for one in launches),
        curve_label=script.curve_label,
        live=live,
    )


def explorable_show(found: Explorable) -> Show:
    """Returns what the page of an explorable shows."""
    show = exported_show(found.title, ("",) * len(found.figures))
    return msgspec.structs.replace(show, explorable=found)
