"""The terminal that commands print to, and the colors that they use there."""

from __future__ import annotations

from rich.console import Console

from warploom.core.streams import allows_colours

TITLE, RULE, PLACE = "bold cyan", "bold yellow", "cyan"
"""Styles of the titles of tables, of what a rule found, and of places in the source."""

KINDS = {"counted": "green", "modelled": "magenta"}
"""Styles of the kinds of figures."""

SEVERITIES = {"Error": "bold red", "Warning": "yellow", "Note": "cyan"}
"""Styles of findings."""


def terminal(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """Returns the console of standard output or standard error: plain where NO_COLOR is set
    (no-color.org), bold letters among what it leaves away. With `soft_wrap` the terminal wraps
    lines, and numbers are not highlighted."""
    system = "auto" if allows_colours() else None
    return Console(
        color_system=system,
        stderr=stderr,
        soft_wrap=soft_wrap,
        highlight=False if soft_wrap else None,  # pyright: ignore[reportArgumentType]
    )
