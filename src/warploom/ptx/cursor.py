"""A place in the tokens of a text: looks at the next one, takes it, and says what went wrong."""

from __future__ import annotations

import re

from warploom.core.errors import PtxSyntaxError, UnsupportedInstruction
from warploom.core.source import Span
from warploom.ptx.lexer import Tokens

NAME = re.compile(r"(?:[A-Za-z]|[_$%](?=[\w$]))[\w$]*")
"""Source: PTX ISA, "Identifiers"."""


class Cursor:
    """Reads tokens in order; `at` is the index of the next one. WARP_SZ stands for `warp_size`."""

    __slots__ = ("at", "columns", "lines", "texts", "tokens", "warp_size")

    def __init__(self, tokens: Tokens, at: int = 0, warp_size: int = 32) -> None:
        self.tokens, self.at, self.warp_size = tokens, at, warp_size
        self.texts, self.lines, self.columns = tokens.texts, tokens.lines, tokens.columns

    @property
    def text(self) -> str:
        """Return the next token; "" at the end of the text."""
        return self.texts[self.at]

    @property
    def next_text(self) -> str:
        """Return the token after the next one."""
        return self.texts[self.at + 1] if self.text else ""

    def take(self) -> str:
        """Return the next token, and a step past it (never past the end of the text)."""
        text = self.texts[self.at]
        if text:
            self.at += 1
        return text

    def accept(self, text: str) -> bool:
        """Step past the next token if it is `text`."""
        if self.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Step past `text`, which must come next."""
        if self.texts[self.at] != text:
            raise self.wrong(f"`{text}`")
        self.at += 1

    def name(self, what: str) -> str:
        """Return an identifier, which must come next; `what` is what it would name."""
        text = self.texts[self.at]
        if not NAME.fullmatch(text):
            raise self.wrong(what)
        self.at += 1
        return text

    def span(self, start: int, stop: int | None = None) -> Span:
        """Returns where the tokens from `start` up to but not including `stop` stand (one by
        default).

        A stretch over several lines ends for its span with the first token.
        """
        line, column = self.lines[start], self.columns[start]
        last = start if stop is None else stop - 1
        if self.lines[last] != line:
            last = start
        length = self.columns[last] + len(self.texts[last]) - column
        return Span(line, column, length, self.tokens.source)

    def wrong(self, expected: str) -> PtxSyntaxError:
        """Return the error that the next token is not what was expected."""
        found = f"`{self.text}`" if self.text else "the text ends here"
        if not self.text:
            return self.error(
                f"{found}, but {expected} was expected; is the text cut off?", self.at
            )
        return self.error(f"expected {expected}, found {found}", self.at)

    def error(self, message: str, at: int) -> PtxSyntaxError:
        """Return a syntax error at token `at`."""
        return PtxSyntaxError(message, self.span(at))

    def unsupported(self, message: str, span: Span) -> UnsupportedInstruction:
        """Return the error that Warploom does not know what stands at `span`."""
        return UnsupportedInstruction(message, span)
