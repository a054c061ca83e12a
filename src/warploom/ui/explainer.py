"""Makes the explainer: a minute about warps, masks, divergence, reconvergence, coalescing and
latency, shown beside steps of the lessons' launches.

In: `explainer.toml`. Out: an `Explainer` whose numbers were counted in the launches, and their
traces. How long each text stays is left to the page (`web/src/film.ts`).
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.input_files import read_text
from warploom.observe.trace import Trace
from warploom.ui.lessons import find_lesson, requests_of
from warploom.ui.measures import Place, find_step, measured
from warploom.ui.record import record
from warploom.ui.schema import Anchor, Explainer, Show, Stop

FILE = Path(__file__).parent / "explainer.toml"


class ScriptedStop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stop in the file: of launch `run` of a lesson."""

    topic: str
    lesson: str
    text: str
    figure: str
    at: Anchor
    run: int = 0
    look: str = ""


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    title: str
    stops: tuple[ScriptedStop, ...]


def recorded_explainer() -> tuple[Explainer, list[bytes]]:
    """Returns the explainer and the traces of its launches, recorded now."""
    script = msgspec.convert(tomllib.loads(read_text(FILE)), Script)
    launches = tuple(dict.fromkeys((stop.lesson, stop.run) for stop in script.stops))
    traces = [_recorded(name, run) for name, run in launches]
    stops = (
        _counted(stop, launches.index((stop.lesson, stop.run)), traces) for stop in script.stops
    )
    names = tuple(name for name, _ in launches)
    explained = Explainer(title=script.title, stops=tuple(stops), names=names)
    return explained, [trace.to_bytes() for trace in traces]


def explainer_show(explained: Explainer, *, watch: str, gallery: bool = False) -> Show:
    """Returns what the page of an explainer shows. In a `gallery` the pages of the lessons are
    beside it."""
    from warploom.ui.shows import exported_show

    show = exported_show(explained.title, explained.names, gallery=gallery, watch=watch)
    return msgspec.structs.replace(show, explainer=explained)


def _recorded(name: str, run: int) -> Trace:
    lesson = find_lesson(name)
    if lesson is None:
        raise WarploomError(f"the explainer refers to {name!r}, which is not a lesson")
    return record(requests_of(lesson)[run])


def _counted(stop: ScriptedStop, number: int, traces: list[Trace]) -> Stop:
    """Returns a stop with the numbers of its step in its texts."""
    trace = traces[number]
    place = Place(trace, find_step(trace, stop.at))
    return Stop(
        topic=stop.topic,
        text=measured(stop.text, place),
        figure=measured(stop.figure, place),
        at=stop.at,
        trace=number,
        look=stop.look,
    )
