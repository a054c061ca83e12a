"""Atomic functions (OpenCL C 3.0, 6.15.12; OpenCL C 1.2, 6.12.11). The machine's atomics are
relaxed and of the device; an order adds fences of the scope before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from warploom.frontends.opencl_library.elements import POINTED

Lines = Iterator[str]

_FETCH = {
    name: f"__atomic_fetch_{name}(p, v, __ATOMIC_RELAXED)"
    for name in ("add", "sub", "and", "or", "xor", "min", "max")
}
_OLD = {
    **_FETCH,
    "xchg": "__atomic_exchange_n(p, v, __ATOMIC_RELAXED)",
    "inc": "__atomic_fetch_add(p, 1, __ATOMIC_RELAXED)",
    "dec": "__atomic_fetch_sub(p, 1, __ATOMIC_RELAXED)",
}
_WORDS = {"float": "int", "double": "long"}
TYPES = ("int", "uint", "long", "ulong", "float", "double")
_CAS = "__atomic_compare_exchange_n(p, &e, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)"


def _old(name: str) -> Lines:
    """Yields `atomic_` functions of 32 bits, and `atom_` ones, which are there for 64 bits, too."""
    prefix, _, operation = name.partition("_")
    types = TYPES[:2] if prefix == "atomic" else TYPES[:4]
    for type, space in product(types, POINTED):
        head = f"__cl_inline {type} {name}(volatile {space} {type} *p"
        if operation == "cmpxchg":
            yield f"{head}, {type} e, {type} v) {{ {_CAS}; return e; }}"
        else:
            value = "" if operation in ("inc", "dec") else f", {type} v"
            yield f"{head}{value}) {{ return {_OLD[operation]}; }}"
    if operation == "xchg":
        for space in POINTED:
            yield (
                f"__cl_inline float {name}(volatile {space} float *p, float x)"
                f" {{ return __builtin_astype({name}((volatile {space} int *)p,"
                " __builtin_astype(x, int)), float); }"
            )


# ---- C11's ---------------------------------------------------------------------------------------

_HEADS = {
    "atomic_init": "void {name}(volatile {space} {atomic} *a, {type} x",
    "atomic_store": "void {name}(volatile {space} {atomic} *a, {type} x",
    "atomic_load": "{type} {name}(volatile {space} {atomic} *a",
    "atomic_exchange": "{type} {name}(volatile {space} {atomic} *a, {type} x",
}
_BODIES = {
    "atomic_init": "*p = v;",
    "atomic_store": "__atomic_store_n(p, v, __ATOMIC_RELAXED);",
    "atomic_load": "{word} r = __atomic_load_n(p, __ATOMIC_RELAXED);",
    "atomic_exchange": "{word} r = __atomic_exchange_n(p, v, __ATOMIC_RELAXED);",
    **{f"atomic_fetch_{n}": f"{{word}} r = {body};" for n, body in _FETCH.items()},
}
_CALLS = ("", ", memory_order order", ", memory_order order, memory_scope scope")
_RELEASE = "if (order != memory_order_relaxed && order != memory_order_acquire) __cl_fence(scope); "
_ACQUIRE = " if (order != memory_order_relaxed && order != memory_order_release) __cl_fence(scope);"


def _scoped(head: str, asked: str, body: str, result: str) -> str:
    """Returns a function with the fences of its order and scope."""
    order = "" if "order" in asked else "memory_order order = memory_order_seq_cst; "
    scope = "" if "scope" in asked else "memory_scope scope = memory_scope_device; "
    return f"__cl_inline {head}{asked}) {{ {order}{scope}{_RELEASE}{body}{_ACQUIRE}{result} }}"


def _calls(name: str) -> tuple[str, ...]:
    if name == "atomic_init":
        return ("",)
    return _CALLS[1:] if name.endswith("_explicit") else _CALLS[:1]


def _eleven(name: str) -> Lines:
    base = name.removesuffix("_explicit")
    arithmetic = base.startswith("atomic_fetch_")
    # A float's arithmetic is cl_ext_float_atomics, which is not there.
    for type, space in product(TYPES[:4] if arithmetic else TYPES, POINTED):
        word = _WORDS.get(type, type)
        # Pointers' integers take a difference of the other sign.
        others = {"ulong": ("ulong", "long"), "long": ("long",)} if arithmetic else {}
        for given in others.get(type, (type,)):
            head = _HEADS.get(base, "{type} {name}(volatile {space} {atomic} *a, {given} x").format(
                name=name, space=space, atomic=f"atomic_{type}", type=type, given=given
            )
            takes = base != "atomic_load"
            value = f"{word} v = __builtin_astype(x, {word}); " if takes else ""
            pointer = f"volatile {space} {word} *p = (volatile {space} {word} *)a; "
            body = _BODIES[base].format(word=word)
            result = (
                " return __builtin_astype(r, " + type + ");" if "{word} r" in _BODIES[base] else ""
            )
            for asked in _calls(name):
                yield _scoped(head, asked, f"{pointer}{value}{body}", result)


def _compare(name: str) -> Lines:
    for type, space, expected in product(TYPES, POINTED, POINTED):
        word = _WORDS.get(type, type)
        head = (
            f"int {name}(volatile {space} atomic_{type} *a, {expected} {type} *expected, {type} x"
        )
        body = (
            f"volatile {space} {word} *p = (volatile {space} {word} *)a;"
            f" {word} v = __builtin_astype(x, {word}), e = __builtin_astype(*expected, {word});"
            f" int done = {_CAS};"
            f" if (!done) *expected = __builtin_astype(e, {type});"
        )
        asked = ("",)
        if name.endswith("_explicit"):
            orders = ", memory_order order, memory_order failed"
            asked = (orders, f"{orders}, memory_scope scope")
        for one in asked:
            yield _scoped(f"_Bool {head[4:]}", one, body, " return done;")


def _flag(name: str) -> Lines:
    clears = "clear" in name
    for space in POINTED:
        head = f"{'void' if clears else '_Bool'} {name}(volatile {space} atomic_flag *a"
        pointer = f"volatile {space} int *p = (volatile {space} int *)a; "
        body = "__atomic_store_n(p, 0, __ATOMIC_RELAXED);"
        if not clears:
            body = "int r = __atomic_exchange_n(p, 1, __ATOMIC_RELAXED);"
        for asked in _calls(name):
            yield _scoped(head, asked, pointer + body, "" if clears else " return r != 0;")


_EXPLICIT = ("", "_explicit")
ATOMIC_FUNCTIONS: Mapping[str, Callable[[str], Lines]] = {
    **{f"{prefix}_{n}": _old for prefix in ("atomic", "atom") for n in (*_OLD, "cmpxchg")},
    **{f"{name}{end}": _eleven for name in _BODIES for end in _EXPLICIT if name[7:] != "init"},
    "atomic_init": _eleven,
    **{
        f"atomic_compare_exchange_{way}{end}": _compare
        for way in ("strong", "weak")
        for end in _EXPLICIT
    },
    **{f"atomic_flag_{n}{end}": _flag for n in ("test_and_set", "clear") for end in _EXPLICIT},
}
