"""Delivers, between two quanta of the timing model, the messages (arrivals at mbarriers) that
blocks of a cluster have sent to blocks on other SMs."""

from __future__ import annotations

import numpy as np

from warploom.timing.engine.state import Words
from warploom.timing.records import ArrivalMessage, BlockSlot, EngineParameters, PhaseState, SmState


def deliver_messages(params: EngineParameters, sms: Words, launched: set[int]) -> None:
    """Moves arrivals at mbarriers, between two quanta, from the buffers of the SMs that sent them
    to those of the SMs on which the blocks that own the mbarriers are resident. Messages to blocks
    not yet launched (not in the numbers `launched`) stay with the sender; those to blocks that have
    ended, or to a full buffer, are dropped."""
    senders = np.flatnonzero(sms[:, SmState.sent_count])
    if not len(senders):
        return
    resident = _resident_blocks(params, sms)
    for sender in senders.tolist():
        sm = sms[sender]
        sent = _messages(sm, params.at_sent, int(sm[SmState.sent_count])).copy()
        sm[SmState.sent_count] = 0
        for message in sent.tolist():
            destination = resident.get(message[ArrivalMessage.block])
            if destination is not None:
                _deliver(params, sms[destination[0]], destination[1], message)
            elif message[ArrivalMessage.block] not in launched:
                _messages(sm, params.at_sent, int(params.messages))[sm[SmState.sent_count]] = (
                    message
                )
                sm[SmState.sent_count] += 1


def _resident_blocks(params: EngineParameters, sms: Words) -> dict[int, tuple[int, int]]:
    """Returns the row of the SM and the slot there of each resident block (with live warps), by its
    number in the grid."""
    count = int(params.block_slots)
    blocks = sms[:, params.at_blocks :][:, : count * BlockSlot.WORDS].reshape(
        len(sms), count, BlockSlot.WORDS
    )
    sm, slot = np.nonzero(blocks[:, :, BlockSlot.warps])
    numbers = blocks[sm, slot, BlockSlot.grid]
    return dict(zip(numbers.tolist(), zip(sm.tolist(), slot.tolist(), strict=True), strict=True))


def _messages(sm: Words, start: int, count: int) -> Words:
    """Returns `count` messages of the buffer at offset `start` of an SM's state as a view, shape
    (count, words of an `ArrivalMessage`)."""
    return sm[start : start + count * ArrivalMessage.WORDS].reshape(count, ArrivalMessage.WORDS)


def _deliver(params: EngineParameters, sm: Words, slot: int, message: list[int]) -> None:
    """Appends a message to the received ones of an SM, on which the message's block has slot
    `slot`, with the offset of the phase's record instead of the block's number, and phase number 0;
    drops it if the buffer is full."""
    received = int(sm[SmState.received_count])
    if received < params.messages:
        number = slot * int(params.phases) + message[ArrivalMessage.phase_id] - 1
        phase = int(params.at_phases) + number * PhaseState.WORDS
        _messages(sm, params.at_received, int(params.messages))[received] = (
            phase,
            0,
            message[ArrivalMessage.time],
        )
        sm[SmState.received_count] = received + 1
