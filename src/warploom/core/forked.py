"""Resets state in a forked child: threads, and locks that those held, stay in the parent."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forgetful(Protocol):
    def forget(self) -> None:
        """Drops the state that belongs to threads of the parent."""


_known: weakref.WeakSet[Forgetful] = weakref.WeakSet()


def forget_in_child(thing: Forgetful) -> None:
    """Has `thing.forget()` called in each child that is forked from this process."""
    _known.add(thing)


def _forget() -> None:
    for thing in tuple(_known):
        thing.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
