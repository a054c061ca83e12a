"""Provides `cached_property` as Python 3.12 has it, without a lock.

Python 3.11 holds one lock for a property of all objects of a class while it computes: a thread that
compiles one kernel would wait for the thread that compiles another, and a process that is forked
meanwhile would wait for ever. Without the lock two threads may compute one value twice.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801  (the name of the standard one)
        """A property whose value is computed at its first use, and stored in the object."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Returns the value, which is computed and stored if the object has none."""
            if instance is None:
                return self
            value = self.func(instance)
            # If another thread was faster, its value stays: all users get the same object.
            return instance.__dict__.setdefault(self.attrname, value)
