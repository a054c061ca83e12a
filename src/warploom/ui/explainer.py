"""Makes the explainer: a minute about warps, masks, divergence, reconvergence, coalescing and
latency, told beside steps of the lessons' launches.

In: `explainer.toml`. Out: an `Explainer` whose numbers were counted in the launches, and their
traces. How long each text stays is left to the page (`web/src/film.ts`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from warploom.core.errors import WarploomError
from warploom.core.input_files import read_text
from warploom.cost.fields import CostRecord
from warploom.observe.schema import DIVERGED, MET
from warploom.observe.trace import Step, Trace
from warploom.ui.lessons import find_lesson, requests_of
from warploom.ui.record import record
from warploom.ui.schema import Anchor, Explainer, Show, Stop

FILE = Path(__file__).parent / "explainer.toml"

COST_FIELDS = tuple(CostRecord.__annotations__)


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


@dataclass(frozen=True)
class Place:
    """A step of a warp, at which something is counted."""

    trace: Trace
    step: Step

    def cost(self, field: str) -> int:
        """Returns a counter of the step's access to memory."""
        [access] = self.step.accesses
        return access.cost[COST_FIELDS.index(field)]

    @property
    def threads(self) -> int:
        """Returns the threads of the launch."""
        return sum(warp.existing.bit_count() for warp in self.trace.warps)

    @property
    def cycles(self) -> int:
        """Returns the modelled cycles of the launch."""
        if self.trace.modelled is None:
            raise WarploomError("the explainer needs modelled time at a stop whose launch has none")
        return self.trace.modelled.cycles


MEASURES: dict[str, Callable[[Place], int]] = {
    "threads": lambda place: place.threads,
    "warps": lambda place: len(place.trace.warps),
    "active": lambda place: place.step.active.bit_count(),
    "jumping": lambda place: place.step.executing.bit_count(),
    "staying": lambda place: (place.step.active & ~place.step.executing).bit_count(),
    "sectors": lambda place: place.cost("sectors"),
    "requested": lambda place: place.cost("bytes_requested"),
    "moved": lambda place: place.cost("bytes_moved"),
    "cycles": lambda place: place.cycles,
}
"""The numbers that a text can name."""


def recorded_explainer() -> tuple[Explainer, list[bytes]]:
    """Returns the explainer and the traces of its launches, recorded now."""
    script = msgspec.convert(tomllib.loads(read_text(FILE)), Script)
    launches = tuple(dict.fromkeys((stop.lesson, stop.run) for stop in script.stops))
    traces = [_recorded(name, run) for name, run in launches]
    stops = (
        _counted(stop, launches.index((stop.lesson, stop.run)), traces) for stop in script.stops
    )
    names = tuple(name for name, _ in launches)
    told = Explainer(title=script.title, stops=tuple(stops), names=names)
    return told, [trace.to_bytes() for trace in traces]


def explainer_show(told: Explainer, *, watch: str, gallery: bool = False) -> Show:
    """Returns what the page of an explainer shows. In a `gallery` the pages of the lessons are
    beside it."""
    from warploom.ui.shows import exported_show

    show = exported_show(told.title, told.names, gallery=gallery, watch=watch)
    return msgspec.structs.replace(show, explainer=told)


def _recorded(name: str, run: int) -> Trace:
    lesson = find_lesson(name)
    if lesson is None:
        raise WarploomError(f"the explainer has a stop in {name!r}, which is no lesson")
    return record(requests_of(lesson)[run])


def _counted(stop: ScriptedStop, number: int, traces: list[Trace]) -> Stop:
    """Returns a stop with the numbers of its step in its texts."""
    trace = traces[number]
    place = Place(trace, find_step(trace, stop.at))
    names = [name for name in MEASURES if f"{{{name}}}" in stop.text + stop.figure]
    numbers = {name: f"{MEASURES[name](place):,}" for name in names}
    return Stop(
        topic=stop.topic,
        text=stop.text.format(**numbers),
        figure=stop.figure.format(**numbers),
        at=stop.at,
        trace=number,
        look=stop.look,
    )


def find_step(trace: Trace, anchor: Anchor) -> Step:
    """Returns the step that an anchor means, as the page finds it. Raises WarploomError where there
    is none."""
    steps = trace.warp(anchor.block, anchor.warp).steps
    before = (None, *steps)
    found = [
        one for one, last in zip(steps, before, strict=False) if _fits(trace, one, last, anchor)
    ]
    nth = anchor.nth - 1 if anchor.nth > 0 else anchor.nth
    if not -len(found) <= nth < len(found):
        raise WarploomError(f"the launch of {trace.launch.name} has no step {anchor}")
    return found[nth]


def _fits(trace: Trace, step: Step, last: Step | None, anchor: Anchor) -> bool:
    """Returns whether an anchor means a step, after the step `last` of its warp."""
    if anchor.event and anchor.event not in _events(step, last):
        return False
    if anchor.ptx and not _unguarded(trace.instructions[step.instruction]).startswith(anchor.ptx):
        return False
    code = trace.code[step.instruction]
    lines = trace.sources[code.file].text.split("\n") if anchor.line else []
    return not anchor.line or anchor.line in "".join(lines[code.line - 1 : code.line])


def _events(step: Step, last: Step | None) -> tuple[str, ...]:
    """Returns the events of a step: lanes that its end makes diverge, lanes that have met."""
    diverges = ("divergence",) if step.marks & DIVERGED else ()
    return (*diverges, "reconvergence") if last and last.marks & MET else diverges


def _unguarded(ptx: str) -> str:
    """Returns PTX without its guard."""
    return ptx.partition(" ")[2] if ptx.startswith("@") else ptx
