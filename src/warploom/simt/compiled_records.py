"""Registers `WordRecord` classes with Numba: in compiled code a record is a pointer to words and
the index of its first word, and its fields are read and written at constant offsets."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from warploom.simt.records import RECORDS, WordRecord


def register_records() -> None:
    """Registers with Numba the record classes defined since the last call (RECORDS, which it
    empties); has to run before functions that use them are compiled."""
    while RECORDS:
        _register_constructor(RECORDS.pop())


@cache
def _record_type() -> Any:
    """Returns the class of Numba types of record views (pointer `words`, first word `at`), each
    made from a record class and a pointer type; registers, once, their layout and attributes."""
    types: Any = import_module("numba.core.types")
    extending: Any = import_module("numba.extending")

    class RecordType(types.Type):
        """Numba's type of the views of a record class on words of one type."""

        def __init__(self, record: type[WordRecord], words: Any) -> None:
            """Stores the record class and the type of the pointer `words`, both of which the type's
            name states: Numba treats types of one name as equal."""
            self.record, self.words = record, words
            name = f"WordRecord({record.__module__}.{record.__qualname__}, {words})"
            types.Type.__init__(self, name)

    @extending.register_model(RecordType)
    class RecordModel(extending.models.StructModel):
        """Lays a record view out as a struct of its pointer and its first word."""

        def __init__(self, manager: Any, record: Any) -> None:
            """Declares the members `words`, the pointer, and `at`, an int64, for type `record`."""
            members = [("words", record.words), ("at", types.int64)]
            extending.models.StructModel.__init__(self, manager, record, members)

    _register_fields(RecordType)
    _register_layout()
    return RecordType


def _register_fields(record_type: Any) -> None:
    """Registers how a record's fields are typed, read and written: one word is loaded or stored, a
    field of several words is a pointer to the first, a nested record a view. Also its `words`, `at`
    and `WORDS`, which are read only."""
    types: Any = import_module("numba.core.types")
    templates: Any = import_module("numba.core.typing.templates")
    extending: Any = import_module("numba.extending")

    @templates.infer_getattr
    class FieldTemplate(templates.AttributeTemplate):
        """Types the attributes of a record view: its fields, `words`, `at` and `WORDS`."""

        key = record_type

        def generic_resolve(self, record: Any, name: str) -> Any:
            """Returns the Numba type of attribute `name` of a view of type `record`: of a nested
            record its record type, of a field of several words the pointer type, of one word the
            type of words; None if there is no such attribute."""
            if name in ("words", "at", "WORDS"):
                return record.words if name == "words" else types.int64
            if name not in record.record.OFFSETS:
                return None
            if name in record.record.PARTS:
                return record_type(record.record.PARTS[name], record.words)
            return record.words if name in record.record.RUNS else record.words.dtype

    def first_word(context: Any, builder: Any, record: Any, value: Any, name: str) -> Any:
        """Emits the view of a record that is at a field's first word."""
        view = context.make_helper(builder, record, value=value)
        view.at = builder.add(view.at, view.at.type(record.record.OFFSETS[name]))
        return view

    @extending.lower_getattr_generic(record_type)
    def read_field(context: Any, builder: Any, record: Any, value: Any, name: str) -> Any:
        """Emits the read of attribute `name` of view `value` and returns its LLVM value: a loaded
        word, the address of the first of several words, the view of a nested record, or `words`,
        `at` or `WORDS`."""
        if name in ("words", "at"):
            return getattr(context.make_helper(builder, record, value=value), name)
        if name == "WORDS":
            return context.get_constant(types.int64, record.record.WORDS)
        view = first_word(context, builder, record, value, name)
        if name in record.record.PARTS:
            return view._getvalue()
        pointer = builder.gep(view.words, [view.at])
        return pointer if name in record.record.RUNS else builder.load(pointer)

    @extending.lower_setattr_generic(record_type)
    def write_field(context: Any, builder: Any, signature: Any, args: Any, name: str) -> None:
        """Emits the store of a value to the first word of a view's field `name`; `args` are the
        view and the value."""
        record, value = args
        view = first_word(context, builder, signature.args[0], record, name)
        builder.store(value, builder.gep(view.words, [view.at]))


def _register_layout() -> None:
    """Registers the layout that compiled code reads from a record class as constants: `WORDS`, and
    by a field's name the offset of its first word."""
    types: Any = import_module("numba.core.types")
    templates: Any = import_module("numba.core.typing.templates")
    extending: Any = import_module("numba.extending")

    @templates.infer_getattr
    class LayoutTemplate(templates.AttributeTemplate):
        """Types the layout attributes of a record class, whose Numba type is that of a function."""

        key = types.Function

        def generic_resolve(self, function: Any, name: str) -> Any:
            """Returns int64 for `WORDS` and the fields of a record class, None for other attributes
            and other functions."""
            record = function.typing_key
            if not (isinstance(record, type) and issubclass(record, WordRecord)):
                return None
            return types.int64 if name in ("WORDS", *record.OFFSETS) else None

    @extending.lower_getattr_generic(types.Function)
    def read_layout(context: Any, _builder: Any, function: Any, _value: Any, name: str) -> Any:
        """Returns attribute `name` of a record class as an int64 constant."""
        return context.get_constant(types.int64, getattr(function.typing_key, name))


def _register_constructor(record: type[WordRecord]) -> None:
    """Registers the calls `record(words, at)` and `record(words, at, index)`, the latter `index`
    records after `at`; `words` is a pointer, or another record with the same pointer."""
    types: Any = import_module("numba.core.types")
    templates: Any = import_module("numba.core.typing.templates")
    extending: Any = import_module("numba.extending")
    record_type = _record_type()

    @templates.infer_global(record)
    class Constructor(templates.AbstractTemplate):
        """Types a call of the record class, which makes a view."""

        key = record

        def generic(self, arguments: Any, _keywords: Any) -> Any:
            """Returns the signature of a call with arguments of these types: the result is a view
            on the first argument's pointer, the others are int64."""
            words = arguments[0]
            pointer = words.words if isinstance(words, record_type) else words
            integers = [types.int64] * (len(arguments) - 1)
            return templates.signature(record_type(record, pointer), words, *integers)

    @extending.lower_builtin(record, types.Any, types.int64)
    @extending.lower_builtin(record, types.Any, types.int64, types.int64)
    def make_record(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        """Emits the view that a call of the class returns: its pointer, and its first word, `at`
        plus `index` times WORDS."""
        view = context.make_helper(builder, call.return_type)
        words, at, *index = arguments
        if isinstance(call.args[0], record_type):
            words = context.make_helper(builder, call.args[0], value=words).words
        if index:
            at = builder.add(at, builder.mul(index[0], at.type(record.WORDS)))
        view.words, view.at = words, at
        return view._getvalue()
