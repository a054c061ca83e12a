"""Makes what a wheel holds beside Python: each artefact by a function of its own in `tools/`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tools"))

from build_web import build_web, needed_to_build  # noqa: E402

ARTEFACTS = (build_web,)


class Artefacts(BuildHookInterface[Any]):
    """Runs for wheels, editable ones among them."""

    def dependencies(self) -> list[str]:
        return needed_to_build()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        for build in ARTEFACTS:
            build()
