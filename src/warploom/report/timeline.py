"""Writes the modelled timeline of a device's work as text: a line for each work, with a bar."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from warploom.sanitize.stream_order import HOST, LEGACY
from warploom.timing.timeline.work import ScheduledWork

BAR = 40
"""Characters of a bar over the whole time."""

NAMED: dict[Hashable, str] = {HOST: "host", LEGACY: "default"}


def timeline_text(device: str, works: Sequence[ScheduledWork]) -> str:
    """Returns the timeline of works: first the time of all of them and the sum of their times
    alone, then a line for each in the order of its beginning."""
    if not works:
        return f"Timeline on {device} (modelled): there were no launches and no copies\n"
    end = max(work.end for work in works)
    alone = sum(scheduled.work.demand.seconds for scheduled in works)
    names = stream_names(works)
    width = max(len("stream"), *map(len, names.values()))
    lines = [
        f"Timeline on {device} (modelled): {microseconds(end)} us; without overlap "
        f"{microseconds(alone)} us",
        "",
        f"{'begin':>12} {'end':>12}  {'stream':<{width}}  {'':{BAR}}  work (times in us)",
    ]
    for work in sorted(works, key=lambda work: work.begin):
        stream = names[work.work.issued.stream]
        lines.append(
            f"{microseconds(work.begin):>12} {microseconds(work.end):>12}  {stream:<{width}}"
            f"  {_bar(work, end)}  {work.work.title}"
        )
    return "\n".join([*lines, ""])


def stream_names(works: Sequence[ScheduledWork]) -> dict[Hashable, str]:
    """Returns a name for each stream: numbers from 1 on, in the order of their first work."""
    names: dict[Hashable, str] = {}
    numbered = 0
    for work in works:
        stream = work.work.issued.stream
        if stream in names:
            continue
        if stream in NAMED:
            names[stream] = NAMED[stream]
        else:
            numbered += 1
            names[stream] = str(numbered)
    return names


def _bar(work: ScheduledWork, end: float) -> str:
    """Returns a bar from the beginning of a work to its end, of one character at least."""
    scale = BAR / end if end else 0.0
    first = min(round(work.begin * scale), BAR - 1)
    last = max(round(work.end * scale), first + 1)
    return (" " * first + "#" * (last - first)).ljust(BAR)


def microseconds(seconds: float) -> str:
    """Returns a time in microseconds, with one decimal."""
    return f"{seconds * 1e6:,.1f}"
