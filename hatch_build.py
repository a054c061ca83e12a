"""What is built when the package is: each artefact by a function of its own in `tools/`."""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "tools"))

from build_driver import build as build_driver
from build_web import build_web, needed_to_build

LIBRARIES = Path(__file__).parent / "src" / "warploom" / "clients" / "lib"

_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")


class Artefacts(BuildHookInterface[Any]):
    """Runs for wheels, editable ones among them."""

    def dependencies(self) -> list[str]:
        return needed_to_build()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build_web()
        if version == "standard":  # a clone has them beside the package
            build_data["force_include"]["examples"] = "warploom/examples"
        if build_driver():
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform()}"


def _platform() -> str:
    """Returns the platform of the wheel: on Linux with glibc the oldest manylinux (PEP 600) whose
    glibc has every symbol that the libraries need."""
    plain = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if not sys.platform.startswith("linux"):
        return plain
    found = {
        (int(major), int(minor))
        for library in LIBRARIES.rglob("*.so*")
        for major, minor in _GLIBC.findall(library.read_bytes())
    }
    if not found:
        return plain
    major, minor = max(found)
    return plain.replace("linux_", f"manylinux_{major}_{minor}_", 1)
