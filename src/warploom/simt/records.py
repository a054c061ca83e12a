"""Defines records: named fields at fixed offsets in an array of 64-bit words.

All state that helpers share is flat arrays, which are saved and restored by copying them. A
subclass of `WordRecord` states once which words belong together, in order; an instance is a view of
one record, in an array, at an index:

    class Node(WordRecord):
        next: int                          # one word
        clock: Annotated[Words, 4]         # four words; 0 (at the end): all that follow
        freed: Annotated[int, "next"]      # another name of the word `next`
        owner: Owner                       # the words of another record

    node = Node(state, 96)
    node.next = node.clock[2]              # state[96] = state[96 + 1 + 2]
    node.owner.block                       # a field of that record
    Node.clock, Node.owner                 # 1 and 5, the offsets of the fields

In Python this is an object with properties. Numba compiles it to a pointer and an index, of which
LLVM leaves nothing but the load and the store.
"""

from __future__ import annotations

from inspect import get_annotations
from typing import Any, ClassVar, get_args, get_type_hints

Words = Any
"""An array of 64-bit integers: a NumPy array in Python, a pointer in compiled code."""

RECORDS: list[type[WordRecord]] = []
"""Those that Numba does not know yet (`compiled_records`)."""


class WordRecord:
    """Views consecutive words of an array as named fields: record number `index` of those that
    begin at index `at` of the array `words`. Instead of the array a record may be given that is in
    the same one."""

    WORDS: ClassVar[int] = 0
    """How many words the fields occupy."""
    OFFSETS: ClassVar[dict[str, int]] = {}
    """The offset of each field from the first word."""
    RUNS: ClassVar[frozenset[str]] = frozenset()
    """The fields that have several words."""
    PARTS: ClassVar[dict[str, type[WordRecord]]] = {}
    """The record of each field that is one."""

    words: Words
    at: int

    def __init__(self, words: Words | WordRecord, at: int, index: int = 0) -> None:
        """Stores the array `words` (of a record: its array) and the offset in it of the first word
        of record `index` of those that begin at offset `at`; copies nothing."""
        self.words = words.words if isinstance(words, WordRecord) else words
        self.at = at + index * self.WORDS

    @classmethod
    def pack(cls, **fields: int) -> list[int]:
        """Returns the words of a record whose fields of one word have these values, and all other
        words 0. Raises KeyError for a field that the record does not have."""
        words = [0] * cls.WORDS
        for name, value in fields.items():
            words[cls.OFFSETS[name]] = value
        return words

    def __init_subclass__(cls, align: int = 1, **options: Any) -> None:
        """Lays out the annotated fields of a subclass one after the other; a field whose shape is
        the name of an earlier one gets that field's offset. Replaces each by the descriptor that
        reads it, and sets WORDS, a multiple of `align`, OFFSETS, RUNS and PARTS; appends the
        subclass to RECORDS."""
        super().__init_subclass__(**options)
        offsets, runs, parts = dict[str, int](), set[str](), dict[str, type[WordRecord]]()
        hints, end = get_type_hints(cls, include_extras=True), 0
        for name in get_annotations(cls):
            kind, shape = get_args(hints[name]) or (hints[name], 1)
            offset, words = (offsets[shape], 1) if isinstance(shape, str) else (end, int(shape))
            if isinstance(kind, type) and issubclass(kind, WordRecord):
                field, words, parts[name] = _Part(offset, kind), kind.WORDS, kind
            elif kind is int:
                field = _Word(offset)
            else:
                field = _Run(offset, words)
                runs.add(name)
            setattr(cls, name, field)
            offsets[name], end = offset, max(end, offset + words)
        words = align * -(-end // align)
        layout = {"OFFSETS": offsets, "RUNS": frozenset(runs), "PARTS": parts, "WORDS": words}
        for name, value in layout.items():
            setattr(cls, name, value)
        RECORDS.append(cls)


class _Word:
    """Reads and writes the word at an offset."""

    def __init__(self, offset: int) -> None:
        """Stores the offset, in words, of the word from the first word of a record."""
        self.offset = offset

    def __get__(self, record: WordRecord | None, _owner: type[WordRecord]) -> Any:
        """Returns the word in `record` as an integer; the offset if accessed on the class."""
        return self.offset if record is None else int(record.words[record.at + self.offset])

    def __set__(self, record: WordRecord, value: int) -> None:
        """Stores `value` in the word of `record`."""
        record.words[record.at + self.offset] = value


class _Run:
    """Views the words of a field that has several."""

    def __init__(self, offset: int, count: int) -> None:
        """Stores the offset, in words, of the field's first word from the first word of a record,
        and how many words the field has (0: all up to the end of the array)."""
        self.offset, self.count = offset, count

    def __get__(self, record: WordRecord | None, _owner: type[WordRecord]) -> Any:
        """Returns the words of the field in `record` as a view; the offset if accessed on the
        class."""
        if record is None:
            return self.offset
        start = record.at + self.offset
        return record.words[start : start + self.count if self.count else None]


class _Part:
    """Views the words of a field that is a record."""

    def __init__(self, offset: int, kind: type[WordRecord]) -> None:
        """Stores the offset, in words, of the inner record from the first word of the outer one,
        and the class of the inner record."""
        self.offset, self.kind = offset, kind

    def __get__(self, record: WordRecord | None, _owner: type[WordRecord]) -> Any:
        """Returns the inner record as a view of the words of `record`; the offset if accessed on
        the class."""
        return self.offset if record is None else self.kind(record, record.at + self.offset)
