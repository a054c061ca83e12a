"""Says whether the package takes a module of PTX, for tests that ask ptxas the same."""

from __future__ import annotations

from warploom.core.errors import PtxError
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify


def is_taken(text: str) -> bool:
    """Returns whether a module is legal here."""
    try:
        verify(parse(text))
    except PtxError:
        return False
    return True
