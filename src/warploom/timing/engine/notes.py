"""Delivers, between two quanta of the timing model, the messages (arrivals at mbarriers) that
blocks of a cluster have sent to blocks on other SMs."""

from __future__ import annotations

import numpy as np

from warploom.timing import layout as w
from warploom.timing.engine.state import Words


def deliver_messages(params: Words, sms: Words, launched: set[int]) -> None:
    """Moves arrivals at mbarriers from the SMs that sent them to those on which their blocks are
    resident. Messages to blocks that are not in `launched`, the numbers of all launched blocks,
    stay with the sender; those to blocks that have ended are dropped."""
    senders = np.flatnonzero(sms[:, w.SENT_COUNT])
    if not len(senders):
        return
    resident = _resident_blocks(params, sms)
    for sender in senders.tolist():
        sm = sms[sender]
        sent = _messages(sm, params[w.AT_SENT], int(sm[w.SENT_COUNT])).copy()
        sm[w.SENT_COUNT] = 0
        for message in sent.tolist():
            destination = resident.get(message[w.MSG_BLOCK])
            if destination is not None:
                _deliver(params, sms[destination[0]], destination[1], message)
            elif message[w.MSG_BLOCK] not in launched:
                _messages(sm, params[w.AT_SENT], int(params[w.MESSAGES]))[sm[w.SENT_COUNT]] = (
                    message
                )
                sm[w.SENT_COUNT] += 1


def _resident_blocks(params: Words, sms: Words) -> dict[int, tuple[int, int]]:
    """Returns the SM and the slot of each resident block, by its number in the grid."""
    count = int(params[w.BLOCK_SLOTS])
    blocks = sms[:, params[w.AT_BLOCKS] :][:, : count * w.B_WORDS].reshape(
        len(sms), count, w.B_WORDS
    )
    sm, slot = np.nonzero(blocks[:, :, w.B_WARPS])
    numbers = blocks[sm, slot, w.B_GRID]
    return dict(zip(numbers.tolist(), zip(sm.tolist(), slot.tolist(), strict=True), strict=True))


def _messages(sm: Words, start: int, count: int) -> Words:
    """Returns `count` messages of a buffer as a view, shape (count, MESSAGE_WORDS)."""
    return sm[start : start + count * w.MESSAGE_WORDS].reshape(count, w.MESSAGE_WORDS)


def _deliver(params: Words, sm: Words, slot: int, message: list[int]) -> None:
    """Appends a message to the received ones of the SM on which its block has slot `slot`, with the
    offset of the phase's record in place of the block's number; drops it if the buffer is full."""
    received = int(sm[w.RECEIVED_COUNT])
    if received < params[w.MESSAGES]:
        number = slot * int(params[w.PHASES]) + message[w.MSG_PHASE_ID] - 1
        phase = int(params[w.AT_PHASES]) + number * w.PHASE_WORDS
        _messages(sm, params[w.AT_RECEIVED], int(params[w.MESSAGES]))[received] = (
            phase,
            0,
            message[w.MSG_TIME],
        )
        sm[w.RECEIVED_COUNT] = received + 1
