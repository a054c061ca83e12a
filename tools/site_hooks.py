"""Hooks of the documentation site: links to files outside of `docs/` become the names of these."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Returns a page's text. Pages in folders of `docs/` link only to pages."""
    if "/" in page.file.src_uri:
        return markdown
    return _OUTSIDE.sub(lambda found: f"{found['text']} (`{found['path']}`)", markdown)
