"""A digest of values that stays the same from process to process.

Two values have the same digest where they are equal: fields of data classes that take no part in
comparisons, such as places in a source, are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, cast

from warploom.isa.spec import Operation
from warploom.ptx.ir import Register


def digest(*values: object) -> str:
    """Returns the digest, as 64 hexadecimal digits, of numbers, texts, enumerations, operations,
    and of tuples, sets, mappings and data classes of these. Raises TypeError for anything else."""
    return hashlib.sha256(_Writer().written(values).encode()).hexdigest()


class _Writer:
    """Writes values as texts that only equal values have. A program names a register many times,
    which is written once."""

    def __init__(self) -> None:
        self._registers: dict[Register, str] = {}

    def written(self, value: object) -> str:
        """Returns the text of a value."""
        if type(value) is Register:
            text = self._registers.get(value)
            if text is None:
                text = self._registers[value] = self._fields(value)
            return text
        if value is None or isinstance(value, int | float | str | Enum):
            return f"{value!r};"
        if isinstance(value, tuple):
            return f"({''.join(map(self.written, cast('tuple[object, ...]', value)))})"
        if isinstance(value, Operation):
            return f"{value.text!r};"
        if is_dataclass(value):
            return self._fields(value)
        if isinstance(value, Mapping):
            return self._unordered(cast("Mapping[object, object]", value).items())
        if isinstance(value, frozenset):
            return self._unordered(cast("frozenset[object]", value))
        raise TypeError(f"{type(value).__name__} has no digest")

    def _fields(self, value: object) -> str:
        kind = type(value)
        parts = [self.written(getattr(value, name)) for name in _compared(kind)]
        return f"{kind.__name__}({''.join(parts)})"

    def _unordered(self, values: Iterable[object]) -> str:
        return f"{{{','.join(sorted(map(self.written, values)))}}}"


@lru_cache
def _compared(kind: type[Any]) -> tuple[str, ...]:
    """Returns the names of the fields that take part in comparisons."""
    return tuple(each.name for each in fields(kind) if each.compare)
