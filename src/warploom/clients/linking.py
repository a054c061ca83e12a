"""Linking for clients: PTX texts with their names become one PTX text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warploom.ptx.link import link
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

ENTRY = re.compile(r"(\.entry\s+[\w$]+\s*\([^)]*\))")


def linked(parts: Sequence[tuple[str, str]], registers: int = 0) -> str:
    """Return the text of all parts as one, with a limit for the registers of its kernels where one
    is given; PtxError or LinkError where that cannot be."""
    if len(parts) == 1:
        text = parts[0][1]
    else:
        modules = [parse(text, name) for name, text in parts]
        for module in modules:
            verify(module)
        text = link(modules).text
    return ENTRY.sub(rf"\1\n.maxnreg {registers}\n", text) if registers else text
