"""The terminal that commands print to."""

from __future__ import annotations

import os

from rich.console import Console


def terminal() -> Console:
    """Returns the console of standard output: plain where NO_COLOR is set (no-color.org), bold
    letters among what it leaves away."""
    return Console(color_system=None if os.environ.get("NO_COLOR") else "auto")
