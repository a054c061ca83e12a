"""Functions of OpenCL C that move, convert and combine: conversions, loads and stores, geometry,
shuffles, atomics, copies by a work-group, sub-groups. Expected values are exact, from OpenCL C 3.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from opencl_types import DTYPES, FLOATS

import warploom as wl
from warploom.frontends.opencl_compilers import opencl_is_missing
from warploom.frontends.opencl_library.elements import BITS, INTEGERS, SIGNED, WIDTHS

pytestmark = pytest.mark.skipif(bool(opencl_is_missing()), reason=opencl_is_missing())

Array = np.ndarray[Any, np.dtype[Any]]
COUNT = 128


@cache
def device() -> wl.Device:
    return wl.Device("h100")


def compiled(text: str, *options: str) -> wl.Module:
    return device().compile(text, "opencl", [*options])


def values_of(element: str) -> Array:
    """Numbers of all sizes, at the limits of all types, and halfway between whole ones."""
    dtype, rng = DTYPES[element], np.random.default_rng(BITS[element])
    if element in INTEGERS:
        info = np.iinfo(dtype)
        made = rng.integers(info.min, info.max, COUNT, dtype, endpoint=True)
        made[:4] = info.min, info.max, 0, 1
        made[4:64] >>= rng.integers(0, info.bits, 60).astype(dtype)
        return made
    edges = [
        s * 2.0**n + d
        for s in (1, -1)
        for n in (0, 7, 8, 15, 16, 31, 32, 63, 64)
        for d in (0, -0.5)
    ]
    halves = [n + 0.5 for n in range(-4, 5)] + [0.0, -0.0, 0.3, -0.7, 1e30, -1e30]
    special = [*edges, *halves, math.nan, math.inf, -math.inf]
    rest = rng.normal(0, 1e4, COUNT - len(special))
    return np.array([*special, *rest]).astype(dtype)


# ---- conversions ---------------------------------------------------------------------------------

ROUNDINGS: dict[str, Callable[[Any], int]] = {
    "_rte": round,
    "_rtz": math.trunc,
    "_rtp": math.ceil,
    "_rtn": math.floor,
}


def to_integer(value: float, target: str, mode: str) -> int | None:
    """A number as an integer with saturation; None for a NaN, which may become anything."""
    bits, is_signed = BITS[target], target in SIGNED
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    if isinstance(value, int):
        return min(max(value, least), most)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return most if value > 0 else least
    return min(max(ROUNDINGS[mode or "_rtz"](value), least), most)


def to_float(value: float, target: str, mode: str) -> float:
    """A number as a float: the nearest, or the next one in a direction."""
    dtype = DTYPES[target]
    if not math.isfinite(value):
        return value
    with np.errstate(over="ignore"):
        nearest = dtype(value)
    exact = Fraction(value)
    lower = upper = nearest
    if math.isinf(nearest) or Fraction(float(nearest)) != exact:
        above = math.isinf(nearest) and nearest > 0
        above = above or (math.isfinite(nearest) and Fraction(float(nearest)) > exact)
        with np.errstate(over="ignore"):
            other = np.nextafter(nearest, dtype(-np.inf if above else np.inf))
        lower, upper = (other, nearest) if above else (nearest, other)
    down = {"_rtn": True, "_rtp": False, "_rtz": value > 0}.get(mode)
    return float(nearest if down is None else lower if down else upper)


@pytest.mark.parametrize("target", [*INTEGERS, *FLOATS])
def test_conversions(target: str) -> None:
    """All sources, roundings and saturations of a target; scalars, and vectors of three."""
    saturations = ("", "_sat") if target in INTEGERS else ("",)
    modes = ["", *ROUNDINGS]
    for source in DTYPES:
        names = [f"{s}{m}" for s, m in product(saturations, modes)]
        body = "".join(
            f"to[{n} * {COUNT} + i] = convert_{target}{name}(x[i]);"
            f" if (i < {COUNT // 3}) vstore3(convert_{target}3{name}(vload3(i, x)), i,"
            f" three + {n} * {COUNT});"
            for n, name in enumerate(names)
        )
        text = (
            f"kernel void k(global const {source} *x, global {target} *to, global {target} *three)"
            f" {{ size_t i = get_global_id(0); {body} }}"
        )
        x = values_of(source)
        to, three = (np.zeros((len(names), COUNT), DTYPES[target]) for _ in range(2))
        compiled(text)["k"][1, COUNT](x, to, three)
        whole = COUNT // 3 * 3
        assert np.array_equal(to[:, :whole], three[:, :whole], equal_nan=target in FLOATS)
        for n, (saturation, mode) in enumerate(product(saturations, modes)):
            for value, found in zip(x.tolist(), to[n].tolist(), strict=True):
                if target in FLOATS:
                    expected = to_float(value, target, mode)
                    same = found == expected or (found != found and expected != expected)
                elif saturation:
                    same = found == to_integer(value, target, mode)
                elif isinstance(value, int):
                    same = (found - value) % (1 << BITS[target]) == 0
                else:  # outside the range anything may be
                    fitting = to_integer(value, target, mode)
                    rounded = math.isfinite(value) and ROUNDINGS[mode or "_rtz"](value)
                    same = found == fitting or rounded != fitting
                assert same, f"convert_{target}{saturation}{mode}({source} {value!r}) is {found!r}"


# ---- loads and stores ----------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_loads_and_stores(width: int) -> None:
    """Vectors lie close to each other, from any element on, in every address space."""
    for element, dtype in DTYPES.items():
        text = f"""kernel void k(global const {element} *x, constant {element} *c,
                                 global {element} *to, local {element} *part) {{
            size_t i = get_global_id(0); private {element} own[{2 * width + 1}];
            {element}{width} v = vload{width}(i, x + 1);
            vstore{width}(v, i, part + 1); vstore{width}(v, 1, own + 1);
            barrier(CLK_LOCAL_MEM_FENCE);
            vstore{width}(vload{width}(i, part + 1) + vload{width}(1, own + 1) + vload{width}(i, c),
                          i, to + 1); }}"""
        x = np.arange(8 * width + 1).astype(dtype)
        to = np.zeros_like(x)
        compiled(text)["k"][1, 8](x, x, to, wl.LocalMemory(x.nbytes))
        assert np.array_equal(to[1:], 2 * x[1:] + x[:-1]), element
        assert to[0] == 0


@pytest.mark.parametrize("aligned", ["", "a"])
def test_halves(aligned: str) -> None:
    x = np.concatenate(
        [values_of("float"), np.array([65504, 65519, 65520, 2.0**-25, 3e-8, 1e-9], np.float32)]
    )
    x = np.concatenate([x, np.random.default_rng(3).uniform(-1, 1, 62).astype(np.float32)])[:192]
    for width in (1, 2, 3, 4, 8, 16):
        n, step = ("" if width == 1 else width), 4 if aligned and width == 3 else width
        if aligned and width == 1:
            continue
        count = 192 // width
        for mode in ("", *ROUNDINGS):
            load = f"vload{n}(i, x)" if n else "x[i]"
            before, after = (f"vstore{n}(", ", i, to)") if n else ("to[i] = ", "")
            text = f"""kernel void k(global const float *x, global half *h, global float *to) {{
                size_t i = get_global_id(0);
                vstore{aligned}_half{n}{mode}({load}, i, h);
                {before}vload{aligned}_half{n}(i, h){after}; }}"""
            halves, to = np.zeros(count * step, np.float16), np.zeros(192, np.float32)
            compiled(text)["k"][1, count](x, halves, to)
            found = halves.reshape(count, step)[:, :width].ravel()
            assert np.array_equal(found.astype(np.float32), to[: len(found)], equal_nan=True)
            DTYPES["half"] = np.float16
            expected = [to_float(float(v), "half", mode) for v in x[: len(found)]]
            del DTYPES["half"]
            assert np.array_equal(found, np.array(expected, np.float16), equal_nan=True), (
                mode,
                width,
            )


# ---- geometry, choices, shuffles -----------------------------------------------------------------


@pytest.mark.parametrize("element", FLOATS)
def test_geometry(element: str) -> None:
    """Lengths of huge and tiny vectors neither overflow nor vanish."""
    dtype = DTYPES[element]
    wide = np.longdouble
    info = np.finfo(dtype)
    rng = np.random.default_rng(2)
    p, q = (rng.uniform(-2, 2, (64, 4)).astype(dtype) for _ in range(2))
    p[:4] *= info.max / 8
    p[4:8] *= info.tiny * 4
    p[8] = 0
    for width in (2, 3, 4):
        load = f"vload{width}(i, p), vload{width}(i, q)"
        cross = f"vstore{width}(cross(a, b), i, c);" if width > 2 else ""
        text = f"""kernel void k(global const {element} *p, global const {element} *q,
              global {element} *to, global {element} *n, global {element} *c) {{
            size_t i = get_global_id(0);
            {element}{width} a = vload{width}(i, p), b = vload{width}(i, q);
            to[4 * i] = length(a); to[4 * i + 1] = distance(b, 2 * b); to[4 * i + 2] = dot(b, b);
            vstore{width}(normalize(a), i, n); {cross} }}"""
        a, b = (np.ascontiguousarray(x[:, :width]) for x in (p, q))
        to, n, c = np.zeros((64, 4), dtype), np.zeros_like(a), np.zeros_like(a)
        compiled(text)["k"][1, 64](a, b, to, n, c)
        size = np.sqrt((a.astype(wide) ** 2).sum(axis=1))
        step = 8 * info.eps
        assert np.allclose(to[:, 0].astype(wide), size, rtol=step, atol=info.smallest_subnormal), (
            load
        )
        assert np.allclose(to[:, 1], np.sqrt((b.astype(wide) ** 2).sum(axis=1)), rtol=step)
        assert np.allclose(to[:, 2], (b.astype(wide) ** 2).sum(axis=1), rtol=step)
        with np.errstate(invalid="ignore"):
            unit = np.where(size[:, None] == 0, 0, a / size[:, None])
        assert np.allclose(n.astype(wide), unit, rtol=0, atol=step)
        if width > 2:
            expected = np.cross(b[:, :3] * 0 + a[:, :3], b[:, :3])
            assert np.allclose(c[8:, :3], expected[8:], rtol=1e-4, atol=1e-4)


def test_normalize_of_infinite_components() -> None:
    """OpenCL C 3.0, 6.15.5: infinite components count as 1 with their sign, others as 0."""
    text = "kernel void k(global float4 *x) { x[0] = normalize(x[0]); x[1] = normalize(x[1]); }"
    x = np.array([[np.inf, 3, -np.inf, 0], [1, np.nan, 2, 3]], np.float32)
    compiled(text)["k"][1, 1](x)
    assert np.allclose(x[0], [np.sqrt(0.5), 0, -np.sqrt(0.5), 0])
    assert np.isnan(x[1]).all()


def test_choices() -> None:
    """A vector's component is chosen by the highest bit, a scalar by any."""
    text = """kernel void k(global int4 *to, global float4 *f) {
        int4 c = (int4)(-1, 1, 0x80000000, 0);
        to[0] = select((int4)(1), (int4)(2), c);
        to[1] = (int4)(select(1, 2, 1), select(1, 2, 0), any(c), all(c));
        to[2] = (int4)(any((int2)(1, 2)), all((char2)(-1, -128)), any(-5), all((long3)(-1)));
        f[0] = select((float4)(1), (float4)(2), convert_uint4(c));
        to[3] = shuffle((int2)(5, 6), (uint4)(1, 0, 3, 2));
        to[4] = shuffle2((int4)(0, 1, 2, 3), (int4)(4, 5, 6, 7), (uint4)(7, 8, 3, 4)); }"""
    to, f = np.zeros((5, 4), np.int32), np.zeros(4, np.float32)
    compiled(text)["k"][1, 1](to, f)
    assert to.tolist() == [[2, 1, 2, 1], [2, 1, 1, 0], [0, 1, 1, 1], [6, 5, 6, 5], [7, 0, 3, 4]]
    assert f.tolist() == [2, 1, 2, 1]


# ---- atomics -------------------------------------------------------------------------------------

ATOMIC = {
    "add": lambda old, v: old + v,
    "sub": lambda old, v: old - v,
    "min": min,
    "max": max,
    "and": lambda old, v: old & v,
    "or": lambda old, v: old | v,
    "xor": lambda old, v: old ^ v,
    "xchg": lambda old, v: v,
    "inc": lambda old, v: old + 1,
    "dec": lambda old, v: old - 1,
}


@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize("element", ["int", "uint", "long", "ulong"])
def test_atomics_of_opencl_1(element: str, space: str) -> None:
    """One work-item at a time: the old value is returned, the new one stays."""
    dtype, prefix = DTYPES[element], "atomic" if BITS[element] == 32 else "atom"
    names = [*ATOMIC]
    calls = "".join(
        f"old[{n}] = {prefix}_{name}(p + {n}{'' if name in ('inc', 'dec') else ', v'});"
        for n, name in enumerate(names)
    )
    cells = len(names) + 2
    copy = f"for (int n = 0; n < {cells}; n++)"
    text = f"""kernel void k(global {element} *x, global {element} *old, {element} v,
                             local {element} *part) {{
        {space} {element} *p = {"x" if space == "global" else "part"};
        {f"{copy} part[n] = x[n];" if space == "local" else ""}
        {calls}
        old[{cells - 2}] = {prefix}_cmpxchg(p + {cells - 2}, ({element})1000, v);
        old[{cells - 1}] = {prefix}_cmpxchg(p + {cells - 1}, ({element})1001, v);
        {f"{copy} x[n] = part[n];" if space == "local" else ""} }}"""
    x, old, v = np.full(cells, 1000, dtype), np.zeros(cells, dtype), 77
    compiled(text)["k"][1, 1](x, old, dtype(v), wl.LocalMemory(x.nbytes))
    assert old.tolist() == [1000] * cells
    assert x.tolist() == [*(ATOMIC[name](1000, v) for name in names), v, 1000]


def test_atomics_of_c11() -> None:
    """128 work-items in 4 groups; each `fetch` is of every one, and one exchange is the first."""
    text = """kernel void k(global atomic_int *x, global atomic_ulong *wide,
                            global atomic_flag *flag, global atomic_float *f, global int *first) {
        int i = get_global_id(0);
        atomic_fetch_add(x, 2);
        atomic_fetch_sub_explicit(x + 1, 1, memory_order_relaxed);
        atomic_fetch_or_explicit(x + 2, 1 << i % 32, memory_order_acq_rel, memory_scope_work_group);
        atomic_fetch_max(x + 3, i);
        atomic_fetch_add(wide, 1ul << 33);
        if (!atomic_flag_test_and_set(flag)) atomic_store(f, 2.5f);
        int expected = 0;
        if (atomic_compare_exchange_strong(x + 4, &expected, i + 1)) first[0] = i + 1;
        else first[1] = expected;
        atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_device);
        first[2] = atomic_load(x + 4);
    }"""
    x, wide = np.zeros(5, np.int32), np.zeros(1, np.uint64)
    flag, f, first = np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros(3, np.int32)
    compiled(text, "-cl-std=CL2.0")["k"][4, 32](x, wide, flag, f, first)
    assert x[:4].tolist() == [256, -128, -1, 127]
    assert (wide[0], flag[0], f[0]) == (128 << 33, 1, 2.5)
    assert first.tolist() == [x[4]] * 3


# ---- work-groups and sub-groups ------------------------------------------------------------------


def test_copies_by_a_work_group() -> None:
    text = """kernel void k(global const float *x, global float *to, global float *strided,
                            local float *part) {
        prefetch(x, 100);
        event_t e = async_work_group_copy(part, x + 100 * get_group_id(0), 100, 0);
        wait_group_events(1, &e);
        e = async_work_group_copy(to + 100 * get_group_id(0), part, 100, 0);
        e = async_work_group_strided_copy(strided + 200 * get_group_id(0), part, 100, 2, e);
        wait_group_events(1, &e);
        e = async_work_group_strided_copy(part, x, 50, 2, 0);
        wait_group_events(1, &e);
        if (get_group_id(0) == 0 && get_local_id(0) < 50)
            strided[2 * get_local_id(0) + 1] = part[get_local_id(0)];
    }"""
    x = np.arange(300, dtype=np.float32)
    to, strided = np.zeros(300, np.float32), np.zeros(600, np.float32)
    compiled(text)["k"][3, 64](x, to, strided, wl.LocalMemory(400))
    assert np.array_equal(to, x)
    assert np.array_equal(strided[::2], x)
    assert np.array_equal(strided[1:101:2], x[:100:2])


@pytest.mark.parametrize("standard", ["-cl-std=CL2.0", "-cl-std=CL3.0"])
def test_sub_groups_are_warps(standard: str) -> None:
    """48 work-items are a sub-group of 32 and one of 16."""
    text = """kernel void k(global uint *ids, global int *to, global double *d) {
        size_t i = get_local_id(0);
        ids[5 * i] = get_sub_group_size(); ids[5 * i + 1] = get_sub_group_id();
        ids[5 * i + 2] = get_sub_group_local_id(); ids[5 * i + 3] = get_num_sub_groups();
        ids[5 * i + 4] = get_max_sub_group_size();
        int v = (int)i;
        to[6 * i] = sub_group_reduce_add(v); to[6 * i + 1] = sub_group_scan_exclusive_max(v);
        to[6 * i + 2] = sub_group_scan_inclusive_add(v); to[6 * i + 3] = sub_group_broadcast(v, 3);
        to[6 * i + 4] = sub_group_all(v < 40); to[6 * i + 5] = sub_group_any(v == 40);
        sub_group_barrier(CLK_LOCAL_MEM_FENCE);
        d[i] = sub_group_reduce_min((double)v + 0.5);
    }"""
    ids, to, d = np.zeros((48, 5), np.uint32), np.zeros((48, 6), np.int32), np.zeros(48)
    compiled(text, standard)["k"][1, 48](ids, to, d)
    i = np.arange(48)
    assert np.array_equal(ids[:, 0], np.where(i < 32, 32, 16))
    assert np.array_equal(ids[:, 1:3], np.stack([i // 32, i % 32], 1))
    assert (ids[:, 3:] == [2, 32]).all()
    for part in (i[:32], i[32:]):
        assert (to[part, 0] == part.sum()).all()
        assert to[part, 1].tolist() == [-(2**31), *part[:-1]]
        assert np.array_equal(to[part, 2], np.cumsum(part))
        assert (to[part, 3] == part[3]).all()
        assert (d[part] == part[0] + 0.5).all()
    assert to[[0, 47], 4].tolist() == [1, 0]
    assert to[[0, 47], 5].tolist() == [0, 1]


def test_sums_of_a_work_group() -> None:
    """80 work-items, 10 along x and 8 along y, in the order of their linear index."""
    text = """kernel void k(global const int *x, global int *to, global float *f) {
        size_t i = get_local_linear_id();
        to[5 * i] = work_group_reduce_add(x[i]);
        to[5 * i + 1] = work_group_scan_inclusive_add(x[i]);
        to[5 * i + 2] = work_group_scan_exclusive_max(x[i]);
        to[5 * i + 3] = work_group_broadcast(x[i], 4, 6);
        to[5 * i + 4] = work_group_reduce_min(x[i]);
        f[i] = work_group_scan_exclusive_add(x[i] + 0.5f); }"""
    x = np.random.default_rng(4).integers(-1000, 1000, 80).astype(np.int32)
    to, f = np.zeros((80, 5), np.int32), np.zeros(80, np.float32)
    compiled(text, "-cl-std=CL2.0")["k"][1, (10, 8)](x, to, f)
    assert (to[:, 0] == x.sum()).all()
    assert np.array_equal(to[:, 1], np.cumsum(x))
    assert to[:, 2].tolist() == [-(2**31), *np.maximum.accumulate(x)[:-1]]
    assert (to[:, 3] == x[64]).all()
    assert (to[:, 4] == x.min()).all()
    assert np.array_equal(f, np.cumsum(x + 0.5) - x - 0.5)


def test_votes_of_a_work_group() -> None:
    text = """kernel void k(global int *to) { int i = get_local_id(0);
        to[2 * i] = work_group_any(i == 70); to[2 * i + 1] = work_group_all(i != 70); }"""
    for size, expected in ((64, [0, 1]), (96, [1, 0])):
        to = np.zeros((size, 2), np.int32)
        compiled(text, "-cl-std=CL2.0")["k"][1, size](to)
        assert (to == expected).all()
