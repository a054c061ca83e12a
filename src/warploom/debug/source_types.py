"""Reads types as CUDA C++ writes them: those of parameters, and those that casts name."""

from __future__ import annotations

from warploom.debug.scene import EvaluationError
from warploom.debug.types import CHAR, Arithmetic, Encoding, Pointer, Type
from warploom.host.programs.cpp_types import Class, CppType, read_type


def type_of(type: CppType) -> Type | None:
    """Returns the type of a parameter as its source declares it."""
    kind, size = type.element.kind, type.element.bytes
    encodings = {
        Class.SIGNED: Encoding.SIGNED,
        Class.UNSIGNED: Encoding.UNSIGNED,
        Class.FLOAT: Encoding.FLOAT,
        Class.BFLOAT: Encoding.BRAIN,
        Class.BOOL: Encoding.BOOLEAN,
    }
    names = {
        (Class.SIGNED, 1): "signed char",
        (Class.SIGNED, 2): "short",
        (Class.SIGNED, 4): "int",
        (Class.SIGNED, 8): "long long",
        (Class.UNSIGNED, 1): "unsigned char",
        (Class.UNSIGNED, 2): "unsigned short",
        (Class.UNSIGNED, 4): "unsigned int",
        (Class.UNSIGNED, 8): "unsigned long long",
        (Class.FLOAT, 2): "half",
        (Class.FLOAT, 4): "float",
        (Class.FLOAT, 8): "double",
        (Class.BFLOAT, 2): "bfloat16",
        (Class.BOOL, 1): "bool",
    }
    made: Type = Arithmetic(names.get((kind, size), kind.value), size, encodings[kind])
    for _ in range(type.pointers):
        made = Pointer(made)
    return made


def parsed_type(text: str) -> Type:
    """Returns the type that a cast names. Raises EvaluationError."""
    plain = " ".join(word for word in text.replace("*", " * ").split() if word != "const")
    stars = plain.count("*")
    name = plain.replace("*", "").strip()
    if name == "char":
        made: Type | None = CHAR
    elif name == "void" and stars:
        return _pointers(None, stars)
    else:
        found = read_type(name)
        made = type_of(found) if found is not None else None
    if made is None:
        raise EvaluationError(f"there is no type {text}")
    return _pointers(made, stars) if stars else made


def _pointers(made: Type | None, count: int) -> Type:
    for _ in range(count):
        made = Pointer(made)
    assert made is not None
    return made
