"""The page as it is built: its types are those of the schema, and it is small."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from warploom.ui.page import BUNDLE

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.skipif(
    not (ROOT / "web").exists(), reason="an installation without the page's sources"
)
def test_the_types_of_the_page_are_current() -> None:
    command = [sys.executable, "tools/page_types.py", "--check"]
    subprocess.run(command, cwd=ROOT, check=True)


@pytest.mark.skipif(not BUNDLE.exists(), reason="the page was not built")
def test_the_page_is_small_and_whole() -> None:
    page = BUNDLE.read_bytes()
    assert len(gzip.compress(page)) < 400_000
    for outside in (b'src="http', b'href="http', b"@import", b'src="/', b'href="/'):
        assert outside not in page
