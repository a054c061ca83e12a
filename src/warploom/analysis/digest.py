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
from typing import cast

from warploom.isa.spec import Operation


def digest(*values: object) -> str:
    """Returns the digest, as 64 hexadecimal digits, of numbers, texts, enumerations, operations,
    and of tuples, sets, mappings and data classes of these. Raises TypeError for anything else."""
    return hashlib.sha256(_written(values).encode()).hexdigest()


def _written(value: object) -> str:
    """Returns a text that only equal values have."""
    if value is None or isinstance(value, int | float | str | Enum):
        return f"{value!r};"
    if isinstance(value, tuple):
        return f"({''.join(map(_written, cast('tuple[object, ...]', value)))})"
    if isinstance(value, Operation):
        return f"{value.text!r};"
    if is_dataclass(value):
        parts = [_written(getattr(value, name)) for name in _compared(type(value))]
        return f"{type(value).__name__}({''.join(parts)})"
    if isinstance(value, Mapping):
        return _unordered(cast("Mapping[object, object]", value).items())
    if isinstance(value, frozenset):
        return _unordered(cast("frozenset[object]", value))
    raise TypeError(f"{type(value).__name__} has no digest")


def _unordered(values: Iterable[object]) -> str:
    return f"{{{','.join(sorted(map(_written, values)))}}}"


@lru_cache
def _compared(kind: type) -> tuple[str, ...]:
    """Returns the names of the fields that take part in comparisons."""
    return tuple(each.name for each in fields(kind) if each.compare)
