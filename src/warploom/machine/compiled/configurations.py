"""Launches of a kernel in one configuration: the code that they run, and the state that they start
from."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.machine.compiled.launch_template import LaunchTemplate
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.launch import Launch


@dataclass
class Configuration:
    """All launches of a kernel that differ from `launch` in their arguments alone."""

    tiers: Tiers
    launch: Launch
    _launch_template: LaunchTemplate | None = None

    def launch_template(self) -> LaunchTemplate:
        """Returns the state that a launch starts from, in the code that is best now."""
        kernel, known = self.tiers.kernel(), self._launch_template
        if known is not None and known.kernel is kernel:
            return known
        self.drop_buffers()
        self._launch_template = LaunchTemplate.of(kernel, self.launch)
        return self._launch_template

    def optimised_when_due(self, launch_template: LaunchTemplate) -> LaunchTemplate | None:
        """Returns the outfit in which a launch that began in another should go on; None for this
        one. Launches whose order a policy chooses, and those with clusters, end as they began."""
        variant = self.tiers.variant
        if not launch_template.kernel.baseline or variant.shuffles or variant.clusters:
            return None
        return None if self.tiers.optimised_when_due() is None else self.launch_template()

    def drop_buffers(self) -> None:
        """Frees the arrays that are kept for later launches."""
        if self._launch_template is not None:
            self._launch_template.drop_buffers()
