"""Copies and clears the words of records (`simt.records`), in Python and in compiled code."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.simt.records import WordRecord


@jitable
def copy_record(target: WordRecord, source: WordRecord) -> None:
    """Copies all words of a record to another one of its class."""
    for word in range(target.WORDS):
        target.words[target.at + word] = source.words[source.at + word]


@jitable
def clear_record(record: WordRecord) -> None:
    """Sets all words of a record to 0."""
    for word in range(record.WORDS):
        record.words[record.at + word] = 0
