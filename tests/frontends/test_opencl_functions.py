"""Built-in functions of OpenCL C, all of those that the library states, against NumPy and exact
integers (`opencl_function_models`): with drawn and special operands, and each in one of its vector
forms, whose components are the scalar function's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from opencl_function_models import (
    HALVES,
    INTEGERS,
    MATHEMATICS,
    NATIVE_LOGARITHMS,
    NATIVES,
    RELATIONS,
    WIDE,
    Array,
    Model,
    Range,
)
from opencl_types import DTYPES, FLOATS

import warploom as wl
from warploom.frontends.opencl_compilers import opencl_is_missing
from warploom.frontends.opencl_library.assemble import elementwise
from warploom.frontends.opencl_library.elements import (
    BITS,
    SIGNED,
    WIDTHS,
    signed_of,
    unsigned_of,
)
from warploom.frontends.opencl_library.elementwise import wide_of

pytestmark = pytest.mark.skipif(bool(opencl_is_missing()), reason=opencl_is_missing())

COUNT = 1024
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, -1.5, 2.5, 3.0, -2.0, 7.0]


@cache
def device() -> wl.Device:
    return wl.Device("h100")


def floats(element: str, seed: int) -> Array:
    """Floats of all sizes, of sizes around 1, and special ones, in an order that the seed has."""
    dtype = DTYPES[element]
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    bits = rng.integers(0, 2 ** BITS[element] - 1, COUNT // 4, np.uint64, endpoint=True)
    any_size = bits.astype(DTYPES[unsigned_of(element)]).view(dtype)
    large = min(1e30, float(info.max) / 2)
    extremes = [info.max, -info.max, info.tiny, info.smallest_subnormal, 1 + info.eps, large, -8.5]
    near = np.concatenate([rng.uniform(-1, 1, COUNT // 4), rng.normal(0, 20, COUNT // 2)])
    made = np.concatenate([any_size, near.astype(dtype)])
    chosen = np.array([*SPECIAL, *extremes], dtype)
    made[: 16 * len(chosen)] = np.repeat(chosen, 16) if seed % 2 else np.tile(chosen, 16)
    return made


def integers(element: str, seed: int) -> Array:
    rng, info = np.random.default_rng(seed), np.iinfo(DTYPES[element])
    made = rng.integers(info.min, info.max, COUNT, DTYPES[element], endpoint=True)
    made[COUNT // 2 :] >>= rng.integers(0, info.bits, COUNT // 2).astype(made.dtype)
    special = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 100], made.dtype)
    made[:256] = np.repeat(special, 32) if seed % 2 else np.tile(special, 32)
    return made


def operands(form: str, element: str) -> list[Array]:
    """The operands of a function by the letters of `elementwise`."""
    made: list[Array] = []
    for seed, letter in enumerate(form):
        if letter in "nm":
            rng = np.random.default_rng(9)
            values = rng.integers(-40, 40, COUNT).astype(np.int32)
            values[::7] = rng.integers(-(2**31), 2**31 - 1, len(values[::7]))
            values[1::9], values[2::9] = 3, -3
            made.append(values)
        elif letter in "gsiu":
            of = {"i": signed_of(element), "u": unsigned_of(element)}.get(letter, element)
            draw = floats if of in (*FLOATS, "half") else integers
            made.append(draw(of, seed))
    return made


def result_of(letter: str, element: str) -> str:
    named = {"g": element, "u": unsigned_of(element), "n": "int", "r": "int", "w": wide_of(element)}
    return named[letter]


def call(name: str, form: str, result: str, element: str, width: int) -> Iterator[str]:
    """Writes a kernel `name` for vectors of a width: `w` operands and results follow each other in
    memory, with `vload` and `vstore`."""
    n = "" if width == 1 else width
    types = {"n": "int", "m": "int", "i": signed_of(element), "u": unsigned_of(element)}
    pointers, parameters, given = [], [], []
    for place, letter in enumerate(form):
        if letter in "pq":
            pointers.append("int" if letter == "q" else element)
            given.append("&second")
            continue
        type = types.get(letter, element)
        parameters.append(f"global const {type} *x{place}")
        given.append(f"vload{n}(i, x{place})" if n else f"x{place}[i]")
    of_vector = signed_of(element) if result == "r" and n else result_of(result, element)
    yield f"kernel void {name}_{n or 1}({', '.join(parameters)}, global {of_vector} *to,"
    yield f" global {(pointers or ['int'])[0]} *also) {{ size_t i = get_global_id(0);"
    if pointers:
        yield f" {pointers[0]}{n} second;"
    yield f" {of_vector}{n} value = {name}({', '.join(given)});"
    store = "vstore{n}({v}, i, {p});" if n else "{p}[i] = {v};"
    yield " " + store.format(n=n, v="value", p="to")
    if pointers:
        yield " " + store.format(n=n, v="second", p="also")
    yield " }\n"


def computed(names: Sequence[str], element: str) -> dict[str, tuple[list[Array], Array, Array]]:
    """Runs functions for scalars and for one width of vectors; returns operands and results by
    name, of scalars, of which those of vectors are the same."""
    rows = {name: next(r for r in elementwise()[name] if element in r.types) for name in names}
    text, widths = "", {}
    for number, (name, row) in enumerate(rows.items()):
        widths[name] = WIDTHS[(number + len(element)) % len(WIDTHS)]
        for width in (1, widths[name]):
            text += "".join(call(name, row.forms[0], row.result, element, width))
    # Programs get half arithmetic where they ask clang for it: NVIDIA's driver reports none.
    fp16 = ["-Xclang", "-cl-ext=+cl_khr_fp16"] if element == "half" else []
    module = device().compile(text, "opencl", ["-cl-std=CL2.0", *fp16])
    results: dict[str, tuple[list[Array], Array, Array]] = {}
    for name, row in rows.items():
        given = operands(row.forms[0], element)
        if name.endswith("24"):
            given = [(x >> 8) if n < 2 else x for n, x in enumerate(given)]
        kind, also = DTYPES[result_of(row.result, element)], DTYPES["int"]
        if "p" in row.forms[0]:
            also = DTYPES[element]
        runs: list[tuple[Array, Array]] = []
        for width in (1, widths[name]):
            size = COUNT // width // 16 * 16 if width == 3 else COUNT // width
            vector = DTYPES[signed_of(element)] if row.result == "r" and width > 1 else kind
            to, second = np.zeros(COUNT, vector), np.zeros(COUNT, also)
            module[f"{name}_{width}"][size // 16, 16](*given, to, second)
            runs.append((to[: size * width], second[: size * width]))
        (to, second), (vectors, seconds) = runs
        expected = -to if row.result == "r" else to
        same = np.array_equal(
            vectors,
            expected[: len(vectors)],
            equal_nan=kind in (np.float16, np.float32, np.float64),
        )
        assert same, f"{name} of {element}{widths[name]} differs from that of {element}"
        if "p" in row.forms[0] or "q" in row.forms[0]:
            assert np.array_equal(seconds, second[: len(seconds)], equal_nan="p" in row.forms[0]), (
                name
            )
        results[name] = (given, to, second)
    return results


def errors(found: Array, expected: Array, ulps: float, scale: Array) -> Array:
    """Returns where results are farther from the exact ones than allowed, in units of the last
    place of `scale`."""
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        exact = expected.astype(WIDE)
        size = np.maximum(np.abs(scale.astype(WIDE)), WIDE(info.tiny))
        unit = WIDE(2) ** (np.floor(np.log2(np.minimum(size, WIDE(info.max)))) - info.nmant)
        wrong = ~(np.abs(found.astype(WIDE) - exact) <= ulps * unit)
        most = WIDE(info.max) + unit * max(ulps, 0.5)
        over = np.abs(exact) > WIDE(info.max) - ulps * unit
    infinite = np.isinf(found)
    wrong[infinite] = ~over[infinite] | (np.sign(found) != np.sign(exact))[infinite]
    wrong |= np.isfinite(found) & (np.abs(exact) > most)
    wrong[np.isnan(exact)] = ~np.isnan(found[np.isnan(exact)])
    # Zeros have the sign of the exact result.
    zero = (found == 0) & (exact == 0)
    wrong[zero] = (np.signbit(found) != np.signbit(exact))[zero]
    return wrong


def check(names: Sequence[str], models: dict[str, Model], element: str) -> list[str]:
    failures: list[str] = []
    for name, (given, to, second) in computed(names, element).items():
        model = models[name]
        with np.errstate(all="ignore"):
            expected = np.asarray(model.reference(*given))
            valid = np.ones(COUNT, bool)
            if model.without is not None:
                valid = ~np.asarray(model.without(*given))
            scale = expected if model.scale is None else model.scale(*given)
        is_float = to.dtype.kind == "f"
        wrong = errors(to, expected, model.ulps, scale) if is_float else to != expected
        for what, flags, got, want in (("", wrong, to, expected), *_second(model, given, second)):
            for at in np.flatnonzero(flags & valid)[:3]:
                shown = ", ".join(repr(x[at]) for x in given)
                failures.append(
                    f"{name}({shown}){what} of {element}: {got[at]!r}, not {want[at]!r}"
                )
    return failures


def _second(
    model: Model, given: list[Array], second: Array
) -> Iterator[tuple[str, Array, Array, Array]]:
    if model.second is None:
        return
    with np.errstate(all="ignore"):
        expected = np.asarray(model.second(*given))
    wrong = ~((second == expected) | ((second != second) & (expected != expected)))
    yield " writes", wrong, second, expected


def parts(names: list[str], count: int) -> list[list[str]]:
    return [names[n::count] for n in range(count)]


@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("element", FLOATS)
def test_mathematics(element: str, part: int) -> None:
    assert check(parts([*MATHEMATICS], 6)[part], MATHEMATICS, element) == []


def test_half_functions() -> None:
    assert check([*HALVES], HALVES, "float") == []


def test_native_functions() -> None:
    assert check([*NATIVES], NATIVES, "float") == []
    assert check([*NATIVE_LOGARITHMS], NATIVE_LOGARITHMS, "float") == []


@pytest.mark.parametrize("part", range(3))
def test_mathematics_of_halves(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenCL C, "ULP values for half precision": at most 4 units, and correctly rounded where
    `float` is."""
    monkeypatch.setitem(DTYPES, "half", np.float16)
    names = [n for n in MATHEMATICS if any("half" in row.types for row in elementwise()[n])]
    models = {
        name: model if model.scale else replace(model, ulps=min(4, model.ulps))
        for name, model in MATHEMATICS.items()
    }
    assert len(names) > 60
    assert check(parts(names, 3)[part], models, "half") == []


@pytest.mark.parametrize(
    "element", ["char", "uchar", "short", "ushort", "int", "uint", "long", "ulong"]
)
def test_functions_of_integers(element: str) -> None:
    names = [n for n in INTEGERS if any(element in row.types for row in elementwise()[n])]
    range_ = Range(BITS[element], element in SIGNED)
    for name, (given, to, _) in computed(names, element).items():
        columns = zip(*(x.tolist() for x in given), strict=True)
        values = [INTEGERS[name](range_, *x) for x in columns]
        bits = 8 * to.dtype.itemsize
        expected = np.array([v & (1 << bits) - 1 for v in values], np.uint64)
        found = to.view(f"u{to.dtype.itemsize}").astype(np.uint64)
        wrong = np.flatnonzero(found != expected)
        assert not len(wrong), (name, [x[wrong[0]] for x in given], to[wrong[0]], values[wrong[0]])


@pytest.mark.parametrize("element", [*FLOATS, "half"])
def test_relations(element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DTYPES, "half", np.float16)
    for name, (given, to, _) in computed([*RELATIONS], element).items():
        assert np.array_equal(to != 0, RELATIONS[name](*given)), name


def test_every_function_of_components_has_a_model() -> None:
    tested = {*MATHEMATICS, *HALVES, *NATIVES, *INTEGERS, *RELATIONS, "nan"}
    assert {*elementwise()} == tested
