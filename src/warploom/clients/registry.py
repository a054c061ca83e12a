"""The functions that serve a stand-in library: by name, called with words from C.

Each takes its arguments as Python integers, as the stub widened them, and gives an error code or
None for 0. What an exception means is the library's own business.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from inspect import CO_VARARGS
from typing import Any

Entry = Callable[..., "int | None"]
Register = Callable[..., Callable[[Entry], Entry]]
"""How a library's entries are registered: by their names."""

Server = Callable[[int, Any], int]

FINISH = -1
"""The number with which a process that has no Python of its own says that it ends."""


def nothing() -> None:
    """Does nothing."""


def _nothing_before(_name: str) -> Callable[[], None]:
    """Returns a function that does nothing."""
    return nothing


class Registry:
    """Holds the entries of one library.

    `failed` turns an exception into an error code; `missing` is called for functions that have no
    entry; what `before` returns for the name of a function is called before its entry, unless that
    is an `early` one; `finish` is called when the process ends.
    """

    def __init__(
        self,
        failed: Callable[[BaseException, str], int],
        missing: Callable[[str, Sequence[int]], int],
        finish: Callable[[], None] = nothing,
        before: Callable[[str], Callable[[], None]] = _nothing_before,
    ) -> None:
        self._before, self._early = before, set[str]()
        self._failed, self._missing, self._finish = failed, missing, finish
        self._entries: dict[str, Entry] = {}
        self.started: ctypes.c_int | None = None
        """Set to 1, a child that is forked from this process may not come in."""
        self.interrupted: ctypes.c_int | None = None
        """Set to 1, the program gets SIGINT when the call has returned."""

    def entry(self, *names: str, early: bool = False) -> Callable[[Entry], Entry]:
        """Registers a function as the library's entries of these names."""

        def register(function: Entry) -> Entry:
            for name in names:
                self._entries[name] = function
                if early:
                    self._early.add(name)
            return function

        return register

    def interrupt(self) -> None:
        """Hands Ctrl-C, which came in a call, to the program's own handler after it."""
        if self.interrupted is not None:
            self.interrupted.value = 1

    def find(self, name: str) -> Entry:
        """Returns the function that serves one of the library's."""
        return self._entries[name]

    def server(self, names: Sequence[str], given: Sequence[int]) -> Server:
        """Returns what C calls: the number of a function among `names`, and its words. `given` are
        the words that each has; an entry may take fewer, and `*words` takes all."""
        table = [self._entries.get(_plain(name)) for name in names]
        before = [nothing if name in self._early else self._before(name) for name in names]
        taken = [
            count if entry is None or _takes_all(entry) else min(count, entry.__code__.co_argcount)
            for entry, count in zip(table, given, strict=True)
        ]

        def serve(number: int, words: Any) -> int:
            if number == FINISH:
                self._finish()
                return 0
            entry = table[number]
            try:
                if entry is None:
                    return self._missing(names[number], words[: taken[number]])
                before[number]()
                return entry(*words[: taken[number]]) or 0
            except BaseException as error:
                return self._failed(error, names[number])

        return serve


def _takes_all(entry: Entry) -> bool:
    return bool(entry.__code__.co_flags & CO_VARARGS)


def _plain(name: str) -> str:
    """Returns the name without the suffix by which the default stream is the thread's own: work is
    done when it is asked for, so all default streams are alike."""
    for suffix in ("_ptsz", "_ptds"):
        name = name.removesuffix(suffix)
    return name
