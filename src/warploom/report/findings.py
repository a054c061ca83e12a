"""Prints the findings of sanitizers in a terminal."""

from __future__ import annotations

from rich.text import Text

from warploom.report.console import SEVERITIES, terminal
from warploom.sanitize.findings import ERROR
from warploom.sanitize.summary import PREFIX, Summary


def render_findings(summary: Summary) -> None:
    """Prints findings as `Summary.text` has them, with the severity of each in its color."""
    console = terminal(soft_wrap=True)
    end = SEVERITIES["Error"] if summary.number(ERROR) else "bold green"
    for line in summary.text().splitlines():
        text = Text(line)
        for name, style in SEVERITIES.items():
            text.highlight_regex(rf"^{PREFIX}{name}:", style)
        text.highlight_regex(r"ERROR SUMMARY:.*", end)
        console.print(text)
