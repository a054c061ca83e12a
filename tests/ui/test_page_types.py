"""The types that the page is written against are those of the schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.skipif(
    not (ROOT / "web").exists(), reason="an installation without the page's sources"
)
def test_the_types_of_the_page_are_current() -> None:
    command = [sys.executable, "tools/page_types.py", "--check"]
    subprocess.run(command, cwd=ROOT, check=True)
