"""Records the launches of explorables."""

from __future__ import annotations

from warploom.ui.explorables import explored, request_of_values, requests_of_explorable
from warploom.ui.record import record
from warploom.ui.schema import Explored, ExploreRequest


def recorded_explorable(name: str) -> list[Explored]:
    """Returns the launches of an explorable that a page has from the beginning."""
    return [explored(name, record(request)) for request in requests_of_explorable(name)]


def explore(asked: ExploreRequest, memory_bytes: int) -> Explored:
    """Returns the launch with the values of a request, on a device with at most `memory_bytes` of
    memory. Raises WarploomError for values that the controls cannot have, and where it does not
    run."""
    return explored(asked.explorable, record(request_of_values(asked), memory_bytes))
