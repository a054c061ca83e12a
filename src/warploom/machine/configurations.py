"""Launches of a kernel in one configuration: the code that they run, and the state that they start
from."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.machine.launch import Launch
from warploom.machine.outfit import Outfit
from warploom.machine.tiers import Tiers


@dataclass
class Configuration:
    """All launches of a kernel that differ from `launch` in their arguments alone."""

    tiers: Tiers
    launch: Launch
    _outfit: Outfit | None = None

    def outfit(self) -> Outfit:
        """Returns the state that a launch starts from, in the code that is best now."""
        kernel, known = self.tiers.kernel(), self._outfit
        if known is not None and known.kernel is kernel:
            return known
        self.drop_rooms()
        self._outfit = Outfit.of(kernel, self.launch)
        return self._outfit

    def better(self, outfit: Outfit) -> Outfit | None:
        """Returns the outfit in which a launch that began in another should go on; None for this
        one. Launches whose order a policy chooses, and those with clusters, end as they began."""
        variant = self.tiers.variant
        if not outfit.kernel.baseline or variant.shuffles or variant.clusters:
            return None
        return None if self.tiers.better() is None else self.outfit()

    def drop_rooms(self) -> None:
        """Frees the arrays that are kept for later launches."""
        if self._outfit is not None:
            self._outfit.drop_rooms()
