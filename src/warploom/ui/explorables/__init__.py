"""Contains the explorables: pages with a text and controls. When a user changes a control, the page
immediately shows the launch with the new value.

An explorable is one TOML file in this folder: the kernel's source, a launch in which `{name}`
stands for the value of the control `name`, and the step and the figures that are shown of each
launch.

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

from warploom.core.input_files import read_text
from warploom.observe.trace import Trace
from warploom.ui.measures import MEASURES, Place, find_step, measured
from warploom.ui.schema import Anchor, Control, Explorable, LaunchRequest, Show
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
    """Returns the launches of an explorable: one for each combination of its controls' values."""
    script = read_explorable(name)
    names = [control.name for control in script.controls]
    requests: list[LaunchRequest] = []
    for values in product(*(control.values for control in script.controls)):
        chosen = dict(zip(names, values, strict=True))
        given = {field: _filled(part, chosen) for field, part in script.launch.items()}
        request = {"name": f"{name}.cu", "source": script.source, **given}
        requests.append(msgspec.convert(request, LaunchRequest))
    return requests


def _filled(part: object, chosen: dict[str, str]) -> object:
    """Returns a part of a launch with the chosen values in its texts."""
    if isinstance(part, str):
        return part.format(**chosen)
    if isinstance(part, list):
        return [_filled(one, chosen) for one in cast("list[object]", part)]
    return part


def explorable_of(name: str, traces: Sequence[Trace]) -> Explorable:
    """Returns the data of a page, with what was counted in the traces of its launches."""
    script = read_explorable(name)
    places = [Place(trace, find_step(trace, script.at)) for trace in traces]
    return Explorable(
        id=name,
        title=script.title,
        text=tuple(" ".join(part.split()) for part in script.text.strip().split("\n\n")),
        controls=script.controls,
        at=script.at,
        look=script.look,
        figures=tuple(measured(script.figure, place) for place in places),
        curve=tuple(float(MEASURES[script.curve](place)) for place in places),
        curve_label=script.curve_label,
    )


def explorable_show(found: Explorable) -> Show:
    """Returns what the page of an explorable shows."""
    show = exported_show(found.title, ("",) * len(found.figures))
    return msgspec.structs.replace(show, explorable=found)
