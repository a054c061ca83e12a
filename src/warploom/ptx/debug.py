"""Source positions in PTX text: `.file`, `.loc` and the strings that `.loc` refers to.

Compilers write both tables behind the functions that use them, so they are read beforehand.
Everything else in a `.section` describes the program to a debugger and is passed over.
Source: PTX ISA, "Debugging Directives".
"""

from __future__ import annotations

from warploom.core.printable import printable
from warploom.core.source import Location
from warploom.ptx.constants import integer
from warploom.ptx.cursor import Cursor
from warploom.ptx.lexer import Tokens

Place = tuple[int, int, int]
"""File index, line and column."""


class Locations:
    """Turns the `.loc` directives of one text into locations."""

    def __init__(self, tokens: Tokens) -> None:
        self.files = _files(tokens)
        self._strings = _strings(tokens)
        self._latest: dict[Place, Location] = {}
        self._last: Location | None = None
        self._inline_assembly = tokens.inline_assembly
        self._block, self._in_block = 0, False

    def directive(self, cursor: Cursor) -> Location:
        """Return the location that the `.loc` at the cursor states.

        LLVM counts on for each line of inline assembly, from the line of the source that it stands
        at: only the first `.loc` in it is one of the source.
        """
        counts_on = self._counts_on(cursor.at)
        cursor.expect(".loc")
        place = _place(cursor)
        function, caller = None, None
        while cursor.accept(","):
            if cursor.accept("function_name"):
                function = self._function_name(cursor)
            elif cursor.accept("inlined_at"):
                # The caller's own position may itself lie in an inlined function; its `.loc`
                # came before this one.
                caller_place = _place(cursor)
                caller = self._latest.get(caller_place) or self._location(caller_place)
            else:
                raise cursor.wrong("`function_name` or `inlined_at`")
        location = self._location(place, function, caller)
        has_none = not location.line  # as DWARF says it
        if (has_none or counts_on) and self._last is not None:
            return self._last
        self._latest[place] = self._last = location
        return location

    def _counts_on(self, at: int) -> bool:
        """Returns True where an earlier `.loc` stands in the inline assembly around a token. Tokens
        come in order."""
        blocks = self._inline_assembly
        while self._block < len(blocks) and blocks[self._block].stop <= at:
            self._block += 1
            self._in_block = False
        if self._block == len(blocks) or at < blocks[self._block].start:
            return False
        before, self._in_block = self._in_block, True
        return before

    def _location(
        self, place: Place, function: str | None = None, inlined_at: Location | None = None
    ) -> Location:
        file, line, column = place
        name = self.files.get(file, f"file {file}")
        return Location(name, line, column, function, inlined_at)

    def _function_name(self, cursor: Cursor) -> str | None:
        """Return the string at a label of `.debug_str`, `label + offset`."""
        label = cursor.name("a label")
        offset = integer(cursor) if cursor.accept("+") else 0
        characters = self._strings.get(label, b"")[offset:]
        return characters.partition(b"\0")[0].decode(errors="replace") or None


def _place(cursor: Cursor) -> Place:
    return (
        integer(cursor, "a file index"),
        integer(cursor, "a line number"),
        integer(cursor, "a column"),
    )


def _files(tokens: Tokens) -> dict[int, str]:
    """Return every `.file` of a text, by index."""
    found: dict[int, str] = {}
    at = -1
    while (at := _next(tokens, ".file", at + 1)) is not None:
        index, name = file_directive(Cursor(tokens, at))
        found[index] = name
    return found


def file_directive(cursor: Cursor) -> tuple[int, str]:
    """`.file index "name" [, timestamp, size]`."""
    cursor.expect(".file")
    index = integer(cursor, "a file index")
    name = printable(string(cursor))
    while cursor.accept(","):
        integer(cursor)
    return index, name


def string(cursor: Cursor) -> str:
    """Return a string in quotes, which must come next."""
    text = cursor.text
    if not text.startswith('"'):
        raise cursor.wrong("a string in quotes")
    cursor.at += 1
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def _strings(tokens: Tokens) -> dict[str, bytes]:
    """Returns what stands at each label of the `.debug_str` sections of a text."""
    found: dict[str, bytes] = {}
    at = -1
    while (at := _next(tokens, ".section", at + 1)) is not None:
        if tokens.texts[at + 1] == ".debug_str":
            _read_strings(Cursor(tokens, at + 2), found)
    return found


def _read_strings(cursor: Cursor, found: dict[str, bytes]) -> None:
    cursor.expect("{")
    label = ""
    while not cursor.accept("}"):
        if cursor.next_text == ":":
            label = cursor.name("a label")
            cursor.at += 1
            found[label] = b""
            continue
        cursor.expect(".b8")
        characters = [integer(cursor)]
        while cursor.accept(","):
            characters.append(integer(cursor))
        found[label] = found.get(label, b"") + bytes(c & 0xFF for c in characters)


def skip_section(cursor: Cursor) -> None:
    """Step past a `.section name { ... }`."""
    cursor.expect(".section")
    cursor.take()
    cursor.expect("{")
    while not cursor.accept("}"):
        if not cursor.take():
            raise cursor.wrong("`}`")


def _next(tokens: Tokens, text: str, start: int) -> int | None:
    """Return the first token from `start` on that is `text`."""
    try:
        return tokens.texts.index(text, start)
    except ValueError:
        return None
