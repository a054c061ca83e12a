"""Cuts PTX text into tokens and remembers where each one stands.

Words keep their dotted parts ("ld.global.f32", "%tid.x"), directives begin with a dot (".reg"),
comments vanish. What a sequence of tokens means is for the parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from warploom.core.errors import PtxSyntaxError
from warploom.core.source import Span, Text

TOKEN = re.compile(
    r"""
  [^\S\n]*(?:                                         # blanks before a token
    (\n)                                                # 1: the end of a line
  | (//[^\n]*|/\*.*?\*/)                                # 2: a comment
  | ( (?:[A-Za-z_]|[$%](?=[\w$]))[\w$]*                #
      (?:(?:\.|::)\w+|(?<=\.const)\[\d+\])*            # 3: a word, an opcode, a register
    | \.[A-Za-z_]\w* (?:::\w+)*                         #    a directive
      (?:(?<=\.const)\[\d+\])?                         #    with a constant bank
    | 0[xXfFdDbB]\w+                                    #    numbers
    | \d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*
    | "(?:[^"\\\n]|\\.)*"                               #    a string
    | <<|>>|<=|>=|==|!=|&&|\|\||/(?!\*)|[-+*%~!&|^?:;,(){}\[\]<>=@]
    )
  | (\S)                                                # 4: a character that PTX does not allow
  | \Z                                                  # the end: every search finds a match,
  )                                                     # so blanks are scanned only once
    """,
    re.VERBOSE | re.DOTALL,
)
"""Source: PTX ISA, "Syntax" (source format, comments, identifiers, constants)."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text, as three lists in step; the last token is "", the end of the text.

    `inline_assembly` are the ranges of tokens that LLVM's comments say are inline assembly.
    """

    source: Text
    texts: list[str]
    lines: list[int]
    columns: list[int]
    inline_assembly: tuple[range, ...] = ()


def tokenize(text: str, name: str) -> Tokens:
    """Return all tokens of a text; raises PtxSyntaxError at the first character that PTX does not
    know."""
    source = Text(name, text)
    texts: list[str] = []
    lines: list[int] = []
    columns: list[int] = []
    inline: list[range] = []
    line, before = 1, -1
    for match in TOKEN.finditer(text):
        group = match.lastindex
        if group == 3:
            texts.append(match[3])
            lines.append(line)
            columns.append(match.start(3) - before)
        elif group == 1:
            line += 1
            before = match.end() - 1
        elif group == 2:
            if match[2].endswith("begin inline asm"):
                inline.append(range(len(texts), len(texts)))
            elif match[2].endswith("end inline asm") and inline:
                inline[-1] = range(inline[-1].start, len(texts))
            newlines = match[2].count("\n")
            if newlines:
                line += newlines
                before = text.rindex("\n", 0, match.end())
        elif group == 4:
            span = Span(line, match.start(4) - before, text=source)
            raise PtxSyntaxError(_bad_character(text, match), span)
    columns.append(columns[-1] + len(texts[-1]) if texts else 1)
    lines.append(lines[-1] if texts else 1)
    texts.append("")
    return Tokens(source, texts, lines, columns, tuple(inline))


def _bad_character(text: str, match: re.Match[str]) -> str:
    character = match[4]
    if not character.isprintable() or character == "\ufffd":
        return "PTX must be ASCII text; pass a PTX file instead of a cubin or a fatbin"
    if character == '"':
        return "this string is not terminated; close it with a quote on the same line"
    if text.startswith("/*", match.start(4)):
        return "this comment is not terminated; close it with */"
    return f"PTX must not contain the character {character!r}"
