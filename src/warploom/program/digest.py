"""Computes digests of values that are stable across processes, by which compiled code is cached.

Equal values have equal digests: fields of data classes that comparisons leave out, such as
positions in a source, are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from warploom.isa.instruction import Register
from warploom.isa.spec import Operation


def digest(*values: object) -> str:
    """Returns the SHA-256 digest of values, as 64 hexadecimal digits: None, numbers, texts,
    enumerations, operations, and tuples, frozen sets, mappings and data classes of these. Raises
    TypeError for other types."""
    return hashlib.sha256(_Serialiser().written(values).encode()).hexdigest()


class _Serialiser:
    """Serializes values to texts that are equal only for equal values. Texts of registers are
    cached, since programs name the same registers many times; so are the serializers of types."""

    def __init__(self) -> None:
        """Prepares a serializer for registers; those of other types are made when a value of the
        type is first written."""
        self._registers: dict[tuple[str, str], str] = {}
        self._new_register = self._writer_of_fields(Register)
        self._writers: dict[type, Callable[[Any], str]] = {}

    def written(self, value: object) -> str:
        """Returns the text of a value, by a serializer that is chosen once for each type."""
        write = self._writers.get(type(value))
        if write is None:
            write = self._writers[type(value)] = self._writer_of(value)
        return write(value)

    def _writer_of(self, value: object) -> Callable[[Any], str]:
        """Returns the function that serializes values of a value's type: constants, enumerations
        and operations by their texts, tuples in order, data classes field by field, mappings and
        frozen sets in sorted order. Raises TypeError for other types."""
        if type(value) is Register:
            return self._register
        if value is None or isinstance(value, int | float | str | Enum):
            # `repr`, by which 1, 1.0, True and "1" are four different texts.
            return "{!r};".format
        if isinstance(value, tuple):
            return lambda item: f"({''.join(map(self.written, item))})"
        if isinstance(value, Operation):
            return lambda item: f"{item.text!r};"
        if is_dataclass(value):
            return self._writer_of_fields(type(value))
        if isinstance(value, Mapping):
            return lambda item: self._unordered(item.items())
        if isinstance(value, frozenset):
            return self._unordered
        raise TypeError(f"{type(value).__name__} has no digest")

    def _register(self, register: Register) -> str:
        """Returns the text of a register, cached by its name and type."""
        key = register.name, register.type.name
        text = self._registers.get(key)
        if text is None:
            text = self._registers[key] = self._new_register(register)
        return text

    def _writer_of_fields(self, kind: type) -> Callable[[Any], str]:
        """Returns a serializer for data classes of type `kind` that writes the fields which
        comparisons include."""
        names = tuple(field.name for field in fields(kind) if field.compare)

        def written(value: object) -> str:
            """Returns the text of a data class: the name of its type and its compared fields in
            order."""
            # With the type's name: two classes with equal fields are different values.
            parts = [self.written(getattr(value, name)) for name in names]
            return f"{kind.__name__}({''.join(parts)})"

        return written

    def _unordered(self, values: Iterable[object]) -> str:
        """Returns the text of values in sorted order, so that their order makes no difference."""
        return f"{{{','.join(sorted(map(self.written, values)))}}}"
