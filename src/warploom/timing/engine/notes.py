"""Hands over, between two quanta, what blocks of a cluster have sent to each other's mbarriers."""

from __future__ import annotations

import numpy as np

from warploom.timing import layout as w
from warploom.timing.engine.state import Words


def deliver(p: Words, sms: Words, begun: set[int]) -> None:
    """Move the notes that SMs have sent to the SMs where their blocks are. Those to blocks that
    have not begun are kept, those to blocks that have ended are dropped."""
    senders = np.flatnonzero(sms[:, w.SENT_COUNT])
    if not len(senders):
        return
    places = _places(p, sms)
    for sender in senders.tolist():
        row = sms[sender]
        sent = _rows(row, p[w.AT_SENT], int(row[w.SENT_COUNT])).copy()
        row[w.SENT_COUNT] = 0
        for note in sent.tolist():
            found = places.get(note[w.N_BLOCK])
            if found is not None:
                _tell(p, sms[found[0]], found[1], note)
            elif note[w.N_BLOCK] not in begun:
                _rows(row, p[w.AT_SENT], int(p[w.NOTES]))[row[w.SENT_COUNT]] = note
                row[w.SENT_COUNT] += 1


def _places(p: Words, sms: Words) -> dict[int, tuple[int, int]]:
    """Return where the resident blocks are: the SM, and the place in it."""
    count = int(p[w.BLOCK_SLOTS])
    blocks = sms[:, p[w.AT_BLOCKS] :][:, : count * w.B_WORDS].reshape(len(sms), count, w.B_WORDS)
    sm, place = np.nonzero(blocks[:, :, w.B_WARPS])
    numbers = blocks[sm, place, w.B_GRID]
    return dict(zip(numbers.tolist(), zip(sm.tolist(), place.tolist(), strict=True), strict=True))


def _rows(row: Words, start: int, count: int) -> Words:
    return row[start : start + count * w.NOTE_WORDS].reshape(count, w.NOTE_WORDS)


def _tell(p: Words, row: Words, place: int, note: list[int]) -> None:
    """Put a note where its block is, if there is room."""
    told = int(row[w.TOLD_COUNT])
    if told < p[w.NOTES]:
        number = place * int(p[w.PHASES]) + note[w.N_EVENT] - 1
        phase = int(p[w.AT_PHASES]) + number * w.PHASE_WORDS
        _rows(row, p[w.AT_TOLD], int(p[w.NOTES]))[told] = phase, 0, note[w.N_TIME]
        row[w.TOLD_COUNT] = told + 1
