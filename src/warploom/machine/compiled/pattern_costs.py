"""Computes what accesses with one lane pattern cost, by their offset in a unit of memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from warploom.cost.address_pattern import AddressPattern, active_lanes
from warploom.machine.access_costs import RecordRule
from warploom.program.accesses import FIELDS
from warploom.shapes.vector_shape import LANES

Words = npt.NDArray[np.int64]

_CONSECUTIVE = tuple(range(0, 4 * LANES, 4))


class PatternCosts:
    """Computes the costs of an access wherever it is in the unit (`unit` bytes, 128 or 256), and
    caches them. An offset is counted in elements of `rule.size` bytes; there, the lanes of the mask
    `lanes` access the addresses that are `steps` bytes further. Lanes of local memory (`is_local`)
    access consecutive words at the begin of a unit, since it is interleaved by lane."""

    def __init__(
        self, lanes: int, steps: tuple[int, ...], is_local: bool, rule: RecordRule, unit: int
    ) -> None:
        """Starts with no cost computed, for each of the `unit // rule.size` offsets (of an access's
        first address in the unit)."""
        self.first_step, self.is_local, self.size = steps[0], is_local, rule.size
        self.steps = np.array(_CONSECUTIVE if is_local else steps)
        self.is_active = np.array(active_lanes(lanes))
        self.lanes, self._rule, self._unit = lanes, rule, unit
        self._is_computed = np.zeros(unit // rule.size, np.bool_)
        self._costs = np.zeros((len(self._is_computed), len(FIELDS)), np.int64)

    def at(self, offsets: Words) -> Words:
        """Returns the costs at each of some offsets, shape (offsets, FIELDS). A cost is computed
        when its offset first occurs: that of active lanes at `offset * rule.size + steps` bytes in
        the unit."""
        if self.is_local:
            offsets = np.zeros_like(offsets)
        for offset in offsets[~self._is_computed[offsets]].tolist():
            addresses = self.steps[self.is_active] + offset * self.size
            pattern, _ = AddressPattern.of(self.lanes, addresses.tolist(), self._unit)
            self._costs[offset] = self._rule.cost(pattern)
            self._is_computed[offset] = True
        return self._costs[offsets]


@lru_cache(maxsize=1 << 11)
def pattern_costs(
    lanes: int,
    offset: int,
    step: int,
    pitches: tuple[int, ...],
    is_local: bool,
    rule: RecordRule,
    unit: int,
) -> PatternCosts:
    """Returns the costs of an access `offset` bytes after the first one of its group, whose runs of
    lanes have the stride `step` and begin at `pitches` (`abi.range_cache`): one object for all
    launches that have the same lanes, strides, cost rules and unit."""
    return PatternCosts(lanes, _steps(offset, step, pitches), is_local, rule, unit)


def _steps(offset: int, step: int, pitches: Sequence[int]) -> tuple[int, ...]:
    """Returns the byte offset of each of the 32 lanes from its group's first address: `offset`, the
    member's offset in its group, plus the pitch of the lane's run plus, for each lane before it in
    the run, `step`."""
    in_run = range(LANES // len(pitches))
    return tuple(offset + pitch + lane * step for pitch in pitches for lane in in_run)
