"""What is built when the package is: parts that come from other languages than Python."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TOOLS = ("build_driver",)
"""The modules of tools/ whose `build()` makes files inside of src/warploom."""


class WarploomBuildHook(BuildHookInterface[Any]):
    """Runs every builder; one that cannot work says so and leaves its part out."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        for name in TOOLS:
            path = Path(self.root) / "tools" / f"{name}.py"
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            built = module.build()
            if name == "build_driver" and built:
                platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{platform}"
