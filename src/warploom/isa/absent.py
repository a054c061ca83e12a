"""Instructions of the manual that do not run, and why: for errors, and for docs/instructions.md."""

from __future__ import annotations

REASONS = {
    "fabric": "copies and reductions between devices (PTX 9.3) are not built",
}
"""By the name of the instruction; one that neither runs nor stands here is not built yet."""
