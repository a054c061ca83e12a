"""Counts what a text about a trace can name: lanes, sectors, passes or cycles, at a step or in
all."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warploom.core.errors import WarploomError
from warploom.cost.fields import CostRecord
from warploom.observe.schema import DIVERGED, MET
from warploom.observe.trace import Step, Trace
from warploom.ui.schema import Anchor

COST_FIELDS = tuple(CostRecord.__annotations__)

_NAMED = re.compile(r"\{(\w+)\}")


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
            raise WarploomError(f"the launch of {self.trace.launch.name} has no modelled time")
        return self.trace.modelled.cycles

    @property
    def used(self) -> int:
        """Returns the average share of lanes that were active, in percent."""
        trace = self.trace
        active = [trace.states[int(one)].active.bit_count() for one in trace.columns["state"]]
        return round(100 * sum(active) / (32 * len(active)))


MEASURES: dict[str, Callable[[Place], int]] = {
    "threads": lambda place: place.threads,
    "warps": lambda place: len(place.trace.warps),
    "instructions": lambda place: place.trace.steps.count,
    "used": lambda place: place.used,
    "active": lambda place: place.step.active.bit_count(),
    "jumping": lambda place: place.step.executing.bit_count(),
    "staying": lambda place: (place.step.active & ~place.step.executing).bit_count(),
    "sectors": lambda place: place.cost("sectors"),
    "requested": lambda place: place.cost("bytes_requested"),
    "moved": lambda place: place.cost("bytes_moved"),
    "wavefronts": lambda place: place.cost("wavefronts"),
    "passes": lambda place: place.cost("passes"),
    "cycles": lambda place: place.cycles,
    "cycles_per_warp": lambda place: round(place.cycles / len(place.trace.warps)),
}
"""The numbers that a text can name."""


def measured(text: str, place: Place) -> str:
    """Returns a text with the numbers of a place for the measures that it names in braces. Raises
    WarploomError for a name that is no measure."""
    for name in _NAMED.findall(text):
        if name not in MEASURES:
            raise WarploomError(
                f"there is no measure {name!r}; the measures are {', '.join(MEASURES)}"
            )
    return _NAMED.sub(lambda found: f"{MEASURES[found[1]](place):,}", text)


def find_step(trace: Trace, anchor: Anchor) -> Step:
    """Returns the step that an anchor means, as the page finds it. Raises WarploomError where there
    is none."""
    steps = trace.warp(anchor.block, anchor.warp).steps
    pairs = zip(steps, (None, *steps), strict=False)
    found = [step for step, last in pairs if _fits(trace, step, last, anchor)]
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
