"""Prepares the standard streams for the commands: closed ones, and those of other encodings."""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

from warploom.core.printable import printable

SUBSTITUTES = {
    **dict(zip("\u2713\u2715\u00d7\u00b7\u2022\u00b5", "+xx-*u", strict=True)),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    **dict.fromkeys("\u2018\u2019", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    "\u2192": "->",
    "\u2190": "<-",
    "\u2026": "...",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2248": "~",
    "\u00b1": "+-",
    "\u00b2": "^2",
    "\u00b3": "^3",
    "\u221e": "inf",
    **dict.fromkeys(map(chr, range(0x2500, 0x2580)), "+"),  # corners and crossings of boxes
    **dict.fromkeys("\u2500\u2501\u2574\u2576\u2578\u257a\u2550", "-"),
    **dict.fromkeys("\u2502\u2503\u2551", "|"),
    **dict.fromkeys(map(chr, range(0x2580, 0x25A0)), "#"),  # bars
}
"""ASCII text for characters that the commands print."""

HANDLER = "warploom.substitutes"

ERROR = "error:"
RED, PLAIN = "\x1b[1;31m", "\x1b[0m"
"""Sequences of ECMA-48 for bold red letters, and for plain ones."""


def prepare_streams() -> None:
    """Opens standard streams that are closed (what is printed there is lost), and lets the others
    substitute characters that their encoding does not have."""
    _open_missing()
    codecs.register_error(HANDLER, _substituted)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def _open_missing() -> None:
    """Opens the null device for each standard stream that the process began without: the next
    file would have its descriptor, and would get what libraries print."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # has the lowest descriptor that is free
    for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _substituted(error: UnicodeError) -> tuple[Any, int]:
    """Returns ASCII for characters that cannot be encoded: what stands for them, or an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    escaped = (one.encode("ascii", "backslashreplace").decode("ascii") for one in wrong)
    return "".join(
        SUBSTITUTES.get(one, text) for one, text in zip(wrong, escaped, strict=True)
    ), error.end


def discard_output() -> None:
    """Directs standard output to the null device, so that closing it does not fail again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def allows_colours() -> bool:
    """Returns whether the user allows colors and bold letters (no-color.org)."""
    return not os.environ.get("NO_COLOR")


def report(message: object) -> None:
    """Prints a line to standard error, if it can be written; control characters are escaped, and an
    error is red in a terminal."""
    with suppress(OSError, ValueError):
        text = printable(str(message))
        is_coloured = sys.stderr.isatty() and allows_colours() and os.environ.get("TERM") != "dumb"
        if text.startswith(ERROR) and is_coloured:
            text = f"{RED}{ERROR}{PLAIN}{text.removeprefix(ERROR)}"
        print(text, file=sys.stderr, flush=True)
