"""What is built when the package is: each artefact by a function of its own in `tools/`."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "tools"))

from build_driver import build as build_driver
from build_web import build_web, needed_to_build


class Artefacts(BuildHookInterface[Any]):
    """Runs for wheels, editable ones among them."""

    def dependencies(self) -> list[str]:
        return needed_to_build()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build_web()
        if build_driver():
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
