"""Refuses what a source from outside (of the page, of a lesson, of a learner) may not have its
compiler do: read files of other folders than its own and the toolkit's, or write any.

In: the text, its name, its options. Out: nothing, or a CompileError that names what is refused.

The check is made on the text, before it is compiled, and refuses every `#` that could begin another
directive than those it knows, whether or not the compiler would come to the line: names of files
have to be literal. Headers of the toolkit have computed names; a macro could turn those into any.
So no message of the compiler about a file outside of these folders is shown (`withheld`).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from warploom.core.errors import CompileError
from warploom.core.source import in_toolkit
from warploom.host.programs.compiler_options import folder_in, folders_of, is_plain

LARGEST_HEADER = 16 << 20

_SPLICE = re.compile(r"\\[ \t\v\f]*(?:\r\n|\n\r|\n|\r)")
_HASH = re.compile(r"(?:#|%:)[ \t\v\f]*")
_LITERAL = r'(?:"([^"\n\r\\]+)"|<([^>\n\r\\]+)>)'
_INCLUDE = re.compile(rf"include[ \t\v\f]*{_LITERAL}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?![\\\w])", re.ASCII)
_HARMLESS = re.compile(r"[0-9\r\n#]|[!-.:-@\[\]^`{-~]|$")
"""What may follow `#` if no directive does; neither a comment nor a backslash, after which one
could."""

_HAS_FILE = re.compile(r"__has_(?:include|embed)\w*")
_DEFINED = re.compile(r"(?:\bdefined[ \t]*\(?|#[ \t]*ifn?def)[ \t]*$")
_FILE_TEST = re.compile(rf"[ \t]*\([ \t]*{_LITERAL}[ \t]*\)")
_TRIGRAPH = re.compile(r"\?\?[=/]|\0")
_DEPENDENCY = re.compile(r"(?:pragma|_Pragma|GCC|clang)\b[^\n]*\bdependency\b")
"""A pragma that compares the age of any file with that of the source: it shows which exist."""

_FILE_WORDS = frozenset(["include", "include_next", "import", "embed"])

_INCLUDE_RULE = (
    'An untrusted source may include files only by literal names, such as #include "helpers.h"'
)
_TEST_RULE = (
    "An untrusted source may test for files only by literal names, such as "
    '__has_include("helpers.h")'
)

_LOG_FILE = re.compile(
    r"^(?:In file included from )?([^\s(][^\n(]*?)(?:\(\d+\)|:\d+(?::\d+)?):? "
    r"?(?:catastrophic error|fatal error|error|warning|note|remark|$)",
    re.MULTILINE,
)
"""How compilers name the file that a message is about."""


@dataclass(frozen=True)
class Confinement:
    """Files and options that sources from outside may use: files in `folders`, headers by the names
    `headers`, the options `options` as they are, and all that names no file."""

    folders: tuple[str, ...] = ()
    headers: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str, name: str, options: Sequence[str]) -> Confinement:
        """Returns what a source of the user's own entitles changed versions of it to: its folder,
        the headers that it includes by name, and its options."""
        folders = (str(Path(name).parent), *folders_of(options))
        included = (pair[0] or pair[1] for pair in _includes(_SPLICE.sub("", text)))
        return cls(folders, frozenset(included), frozenset(options))

    def check(self, text: str, language: str, name: str, options: Sequence[str]) -> None:
        """Raises CompileError for the first option, directive or file that is not allowed."""
        for option in options:
            if not self._allows(option, language):
                raise CompileError(
                    f"{name}: the option {option!r} is not allowed for an untrusted source. "
                    "Allowed options define macros (-DN=4), choose the language standard "
                    "(-std=c++20), affect code generation (--use_fast_math), or add an include "
                    "directory (-I) below the kernel's folder."
                )
        own = Path(name).parent
        folders = [own, *(Path(folder) for folder in folders_of(options))]
        _Scan(self, name, folders).check(text, [own])

    def _allows(self, option: str, language: str) -> bool:
        folder = folder_in(option)
        inside = folder is not None and folder != "" and self.holds(Path(folder))
        return inside or option in self.options or is_plain(option, language)

    def holds(self, path: Path) -> bool:
        """Returns whether a file or folder is in one of those that are allowed, links followed."""
        try:
            real = path.resolve()
            return any(real.is_relative_to(Path(folder).resolve()) for folder in self.folders)
        except (OSError, RuntimeError):
            return False

    @contextmanager
    def withheld(self, name: str) -> Generator[None]:
        """Replaces a compiler's message about a file that is not allowed, which would show lines
        of it."""
        try:
            yield
        except CompileError as error:
            for file in dict.fromkeys(_LOG_FILE.findall(error.log)):
                if file != name and not self.holds(Path(file)) and not in_toolkit(file):
                    raise _outside(name, file) from None
            raise


@dataclass
class _Scan:
    """A source and the files that it includes, each read once."""

    confinement: Confinement
    name: str
    folders: list[Path]
    done: set[Path] = field(default_factory=set[Path])

    def check(self, text: str, own: list[Path]) -> None:
        """Checks a text; `own` are the folders of it and of those that include it."""
        spliced = _SPLICE.sub("", text)
        self._check_directives(spliced)
        for quoted, bracketed in _includes(spliced):
            self._check_file(quoted or bracketed, own if quoted else [])

    def _check_directives(self, text: str) -> None:
        if found := _TRIGRAPH.search(text):
            raise self._refused(text, found.start(), "Trigraphs are not allowed")
        if found := _DEPENDENCY.search(text):
            raise self._refused(text, found.start(), _INCLUDE_RULE)
        for hash in _HASH.finditer(text):
            word = _WORD.match(text, hash.end())
            if word is not None and word[0] not in _FILE_WORDS:
                continue
            if word is None and _HARMLESS.match(text, hash.end()):
                continue
            if word is None or not _INCLUDE.match(text, hash.end()):
                raise self._refused(text, hash.start(), _INCLUDE_RULE)
        for test in _HAS_FILE.finditer(text):
            before = text[max(0, test.start() - 40) : test.start()]
            if not _DEFINED.search(before) and not (
                test[0] == "__has_include" and _FILE_TEST.match(text, test.end())
            ):
                raise self._refused(text, test.start(), _TEST_RULE)

    def _check_file(self, name: str, own: list[Path]) -> None:
        """Checks the files that a name may stand for, in any folder that is searched."""
        if name in self.confinement.headers:
            return
        path = PurePosixPath(name)
        found = [folder / name for folder in (*own, *self.folders) if (folder / name).exists()]
        leaves = ".." in path.parts and not found
        if path.is_absolute() or ":" in name or leaves:
            raise _outside(self.name, name)
        for file in found:
            if not self.confinement.holds(file):
                raise _outside(self.name, name)
            real = file.resolve()
            if real in self.done:
                continue
            self.done.add(real)
            if not file.is_file() or file.stat().st_size > LARGEST_HEADER:
                raise CompileError(f"{self.name} includes {name!r}, which is not a source file")
            self.check(file.read_text("latin-1"), [file.parent, *own])

    def _refused(self, text: str, place: int, rule: str) -> CompileError:
        """Returns the error for a line."""
        line = text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0].strip()
        return CompileError(
            f"{self.name}: {line[:120]!r} is not allowed in an untrusted source. {rule}."
        )


def _includes(text: str) -> Iterator[tuple[str, str]]:
    """Yields the names of files that a text includes or looks for: in quotes, in brackets."""
    for hash in _HASH.finditer(text):
        if found := _INCLUDE.match(text, hash.end()):
            yield found[1] or "", found[2] or ""
    for test in _HAS_FILE.finditer(text):
        if found := _FILE_TEST.match(text, test.end()):
            yield found[1] or "", found[2] or ""


def _outside(name: str, file: str) -> CompileError:
    return CompileError(
        f"{name} includes {file!r}, which is outside the kernel's folder. An untrusted source may "
        "include CUDA's headers, and files in its own folder."
    )
