"""Learning of which kind (`rules.rows`) the loads by rows of an access row are."""

from __future__ import annotations

from typing import Any

from warploom.codegen.environment import KINDS_SEEN, MEMO_KIND
from warploom.rules.rows import kind_of


def learn_row(first: int, second: int, consecutive: int, row: Any) -> int:
    """Note the kind of a load by rows, from the addresses of their first lanes; whether the access
    row had one of that kind before."""
    kind = kind_of(first, second, consecutive)
    seen = (row[KINDS_SEEN] >> kind) & 1
    row[KINDS_SEEN] |= 1 << kind
    row[MEMO_KIND] = kind
    return seen
