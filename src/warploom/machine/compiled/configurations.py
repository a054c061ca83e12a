"""Caches what launches of a kernel in one configuration share: code tiers and the launch
template."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.machine.compiled.launch_template import LaunchTemplate
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.launch import Launch


@dataclass
class Configuration:
    """The launches of a kernel that differ from `launch` only in their arguments: their code tiers
    (baseline and optimised code) and their launch template. The engine makes and keeps one for each
    configuration."""

    tiers: Tiers
    launch: Launch
    _launch_template: LaunchTemplate | None = None

    def launch_template(self) -> LaunchTemplate:
        """Returns the template for a launch in the code that the tiers choose now. It is cached;
        when the code has changed since, it is rebuilt and the buffers of the old one are freed."""
        kernel, template = self.tiers.kernel(), self._launch_template
        if template is not None and template.kernel is kernel:
            return template
        self.drop_buffers()
        self._launch_template = LaunchTemplate.of(kernel, self.launch)
        return self._launch_template

    def better_template(self, launch_template: LaunchTemplate) -> LaunchTemplate | None:
        """Starts a compilation that is due, or loads one that is done (`Tiers.improve_when_due`);
        returns the template of the current code, in which a launch that runs in `launch_template`
        should continue, None if there is no other code than its own. Launches whose order a policy
        chooses, and launches with clusters, finish in baseline code if they began in it (None)."""
        self.tiers.improve_when_due()
        if self.tiers.current in (None, launch_template.kernel):
            return None
        variant = self.tiers.variant
        if launch_template.kernel.baseline and (variant.shuffles or variant.clusters):
            return None
        return self.launch_template()

    def drop_buffers(self) -> None:
        """Frees the buffers that are kept for later launches."""
        if self._launch_template is not None:
            self._launch_template.drop_buffers()
