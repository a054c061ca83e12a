"""Escapes what a terminal would execute: control characters in names and messages of others."""

from __future__ import annotations

import re

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for tab and line feed (ECMA-48), and those that reverse the direction of
text (Unicode Standard Annex 9, 2.1 to 2.3)."""


def printable(text: str) -> str:
    r"""Returns a text with its control characters as escapes, such as \x1b."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
