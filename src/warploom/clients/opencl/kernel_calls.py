"""Lets kernels be called from other sources as functions, which OpenCL C allows and PTX does not:
each that is called gets a copy as a function under another name."""

from __future__ import annotations

import re
from collections.abc import Sequence

CALLED = "$called"
"""What the name of such a copy ends with."""

_DECLARED = re.compile(r"^\.extern \.func(?:\s*\([^)]*\))?\s*(\w+)", re.MULTILINE)
_ENTRY = re.compile(r"^(?:\.visible )?\.entry (\w+)\s*\(([^)]*)\)[^{]*", re.MULTILINE)
_POINTER = re.compile(r" \.ptr(?: \.\w+)?(?: \.align \d+)?")


def with_called_kernels(texts: Sequence[str]) -> list[str]:
    """Returns PTX texts that are to be linked, in which kernels that another one declares as
    functions are functions as well."""
    kernels = {found[1] for text in texts for found in _ENTRY.finditer(text)}
    called = {name for text in texts for name in _DECLARED.findall(text)} & kernels
    if not called:
        return list(texts)
    names = "|".join(map(re.escape, sorted(called)))
    used = re.compile(rf"(?<=[\s,])({names})(?=\s*[,(;\n])")
    renamed: list[str] = []
    for text in texts:
        own = [found for found in _ENTRY.finditer(text) if found[1] in called]
        copies = [_copy(text, found) for found in own]
        defined = {found[1] for found in own}
        outside = used.sub(lambda f, d=defined: f[1] if f[1] in d else f[1] + CALLED, text)
        head, mark, rest = outside.partition("\n\t.section\t.debug")
        renamed.append("\n".join([head, *copies]) + mark + rest)
    return renamed


def _copy(text: str, entry: re.Match[str]) -> str:
    """Returns a kernel as a function."""
    start = entry.end()
    depth, at = 0, start
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            at = found.end()
            break
    parameters = _POINTER.sub("", entry[2])
    body = re.sub(r"^\s*\.loc\b[^\n]*\n", "", text[start:at], flags=re.MULTILINE)
    return f".visible .func {entry[1]}{CALLED}({parameters})\n{body}\n"
