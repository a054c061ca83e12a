"""Tells Numba what a `Record` is: a pointer to words and an index, whose fields are read and written
at offsets that are constants."""

from __future__ import annotations

from typing import Any

from warploom.simt.records import RECORDS, Record


def register_records() -> None:
    """Registers with Numba the records that have been defined; has to run before functions that use
    them are compiled."""
    if RECORDS:
        compiled = _register_fields()
        while RECORDS:
            _register_constructor(RECORDS.pop(), compiled)


def _register_fields() -> Any:
    """Registers how fields of a record are read and written, and how `Record.WORDS` is; returns
    Numba's type of records, which is made from a class and a type of pointer."""
    from numba.core import types
    from numba.core.typing.templates import AttributeTemplate, infer_getattr
    from numba.extending import (
        lower_getattr_generic,
        lower_setattr_generic,
        models,
        register_model,
    )

    class RecordType(types.Type):
        """Is Numba's type of the views of a record class on words of one type."""

        def __init__(self, record: type[Record], words: Any) -> None:
            self.record, self.words = record, words
            super().__init__(name=f"Record({record.__module__}.{record.__qualname__}, {words})")

    @register_model(RecordType)
    class RecordModel(models.StructModel):
        """Lays a view out as its two members."""

        def __init__(self, manager: Any, record: Any) -> None:
            super().__init__(manager, record, [("words", record.words), ("at", types.int64)])

    @infer_getattr
    class FieldTemplate(AttributeTemplate):
        """Types the fields: a word, or a pointer to the first of several."""

        key = RecordType

        def generic_resolve(self, record: Any, name: str) -> Any:
            if name in ("words", "at"):
                return record.words if name == "words" else types.int64
            if name not in record.record.OFFSETS:
                return None
            is_run = name in record.record.RUNS
            return record.words if is_run else record.words.dtype

    @infer_getattr
    class SizeTemplate(AttributeTemplate):
        """Types `Record.WORDS`."""

        key = types.Function

        def generic_resolve(self, function: Any, name: str) -> Any:
            return types.int64 if name == "WORDS" and _is_record(function.typing_key) else None

    @lower_getattr_generic(types.Function)
    def read_size(context: Any, _builder: Any, function: Any, _value: Any, _name: str) -> Any:
        return context.get_constant(types.int64, function.typing_key.WORDS)

    def address(context: Any, builder: Any, record: Any, value: Any, name: str) -> Any:
        """Emits the address of a field's first word."""
        view = context.make_helper(builder, record, value=value)
        at = builder.add(view.at, view.at.type(record.record.OFFSETS[name]))
        return builder.gep(view.words, [at])

    @lower_getattr_generic(RecordType)
    def read_field(context: Any, builder: Any, record: Any, value: Any, name: str) -> Any:
        if name in ("words", "at"):
            return getattr(context.make_helper(builder, record, value=value), name)
        pointer = address(context, builder, record, value, name)
        return pointer if name in record.record.RUNS else builder.load(pointer)

    @lower_setattr_generic(RecordType)
    def write_field(context: Any, builder: Any, signature: Any, args: Any, name: str) -> None:
        record, value = args
        builder.store(value, address(context, builder, signature.args[0], record, name))

    return RecordType


def _is_record(key: object) -> bool:
    """Returns whether what a function of Numba is registered for is a class of records."""
    return isinstance(key, type) and issubclass(key, Record)


def _register_constructor(record: type[Record], record_type: Any) -> None:
    """Registers how a record is made: of a pointer, or of another record, and one or two
    integers."""
    from numba.core import types
    from numba.core.typing.templates import AbstractTemplate, infer_global, signature
    from numba.extending import lower_builtin

    @infer_global(record)
    class Constructor(AbstractTemplate):
        """Types a call of the class."""

        key = record

        def generic(self, arguments: Any, _keywords: Any) -> Any:
            words = arguments[0]
            pointer = words.words if isinstance(words, record_type) else words
            integers = [types.int64] * (len(arguments) - 1)
            return signature(record_type(record, pointer), words, *integers)

    @lower_builtin(record, types.Any, types.int64)
    @lower_builtin(record, types.Any, types.int64, types.int64)
    def make_record(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        view = context.make_helper(builder, call.return_type)
        words, at, *index = arguments
        if isinstance(call.args[0], record_type):
            words = context.make_helper(builder, call.args[0], value=words).words
        if index:
            at = builder.add(at, builder.mul(index[0], at.type(record.WORDS)))
        view.words, view.at = words, at
        return view._getvalue()
