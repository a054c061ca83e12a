"""Linking for clients: PTX texts with their names become one PTX text.

What describes a program to debuggers cannot be merged as text. Where parts have lines, they stand
after the text, in a comment, so that who loads it can link them again and keep theirs.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence

import msgspec

from warploom.core.input_files import reading
from warploom.core.unpacking import gunzip
from warploom.ptx.link import link
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

ENTRY = re.compile(r"(\.entry\s+[\w$]+\s*\([^)]*\))")


PARTS = "\n//warploom-parts "

MOST_BYTES = 1 << 30
"""Bytes of all parts of a text, unpacked."""


def parts_of(name: str, text: str) -> dict[str, str]:
    """Returns the parts, by their names, of a text that `linked` made; any other is its own part.
    Raises WarploomError where the parts are damaged."""
    kept = text.rpartition(PARTS)
    if not kept[0]:
        return {name: text}
    with reading(name, "has damaged parts", "Link it again"):
        plain = gunzip(b64decode(kept[2].strip(), validate=True), MOST_BYTES)
        return msgspec.json.decode(plain, type=dict[str, str])


def linked(parts: Sequence[tuple[str, str]], registers: int = 0) -> str:
    """Returns the text of all parts as one, with a limit for the registers of its kernels where one
    is given; PtxError or LinkError where that cannot be."""
    if len(parts) == 1 and not registers:
        return parts[0][1]
    every = [part for name, text in parts for part in parts_of(name, text).items()]
    if registers:
        every = [(name, ENTRY.sub(rf"\1\n.maxnreg {registers}\n", text)) for name, text in every]
    if len(every) == 1:
        return every[0][1]
    modules = [parse(text, name) for name, text in every]
    for module in modules:
        verify(module)
    text = link(modules).text
    if not any(".loc" in part for _, part in every):
        return text
    named = {f"{name}, part {n}": part for n, (name, part) in enumerate(every, 1)}
    return text + PARTS + b64encode(zlib.compress(json.dumps(named).encode(), 1)).decode() + "\n"
