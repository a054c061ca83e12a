"""Checks that the table of access plans is complete, that docs/engine.md shows it, and that code is
emitted from it."""

from __future__ import annotations

import runpy
from itertools import product
from pathlib import Path

import pytest
from llvmlite import ir

import warploom as wl
from warploom.abi.access_type import STACK, AccessType
from warploom.abi.environment import CountLayout
from warploom.core.types import unsigned
from warploom.ir.access_plans import (
    ANY_OP,
    ANYWHERE,
    TABLE,
    AccessPlan,
    Addresses,
    Facts,
    Guard,
    Move,
    Pattern,
    general,
    select,
)
from warploom.ir.plan_listing import planned_accesses
from warploom.isa.instruction import Space
from warploom.lower.access.access_moves import MOVES
from warploom.lower.access.affine_access import AffineAccess
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.loads import LOADS, covering
from warploom.lower.access.stores import STORES
from warploom.lower.kernel.warp import WarpFunction
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.passes.pipeline import warp_ir
from warploom.shapes.vector_shape import VARYING, VectorShape

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "access_plans.py"))
REWRITE = "the choice of access plans has changed: run `python tools/access_plans.py` and look at"

SHAPES = [
    AccessType(op, space, unsigned(bits), parts, route)
    for op, space, bits, parts, route in product(
        ANY_OP, Space, (8, 16, 32, 64), (1, 2), ("", STACK)
    )
]
STRIDES = (-4, 0, 1, 2, 4, 8, 12, 16)
LANES = [VectorShape(w, s) for w, s in product((1, 2, 8, 16), STRIDES)]
LANES += [VectorShape(1, s, repeats=r) for s, r in product(STRIDES, (2, 16)) if s]
"""Vector shapes of addresses."""
FACTS = [
    Facts(deferred=True),
    Facts(deferred=False),
    Facts(inlined=False),
    Facts(fixed=False, deferred=True),
    Facts(steps=False, batched=False),
]


def all_addresses(access_type: AccessType) -> list[Addresses]:
    """Returns all descriptions of the addresses of an access."""
    known = [Addresses.of(access_type, lanes, lanes.runs) for lanes in LANES]
    unknown = [Addresses.of(access_type, VARYING, runs) for runs in (1, 2, 16, 32)]
    return [*known, *unknown, ANYWHERE, Addresses(Pattern.COLUMNS)]


def test_every_access_has_a_plan_and_every_row_is_chosen() -> None:
    chosen: set[int] = set()
    for access_type in SHAPES:
        for at, facts in product(all_addresses(access_type), FACTS):
            chosen.add(next(n for n, row in enumerate(TABLE) if row.fits(access_type, at, facts)))
    assert chosen == set(range(len(TABLE)))


def test_accesses_that_may_not_be_inlined_have_general_plans() -> None:
    for access_type in SHAPES:
        for at in all_addresses(access_type):
            assert select(access_type, at, Facts(inlined=False)) is general(access_type)


def test_stores_that_may_overlap_are_not_inlined_under_a_policy() -> None:
    """In an inlined store the highest lane's value stays; a policy may choose another lane."""
    for access_type in SHAPES:
        for lanes in (*LANES, VARYING):
            plan = select(
                access_type, Addresses.of(access_type, lanes, lanes.runs), Facts(fixed=False)
            )
            disjoint = lanes.runs == 1 and lanes.stride >= access_type.size
            if access_type.op == "store" and access_type.space is not Space.LOCAL and not disjoint:
                assert plan.is_general


@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize(("bits", "parts"), [(8, 1), (16, 1), (32, 1), (64, 1), (32, 2), (64, 2)])
def test_elements_that_lie_backwards_are_moved_in_reverse_order(
    width: int, bits: int, parts: int
) -> None:
    for op, space in product(("load", "store"), (Space.GLOBAL, Space.SHARED)):
        access_type = AccessType(op, space, unsigned(bits), parts, "")
        at = Addresses.of(access_type, VectorShape(width, -access_type.size), width)
        assert select(access_type, at, Facts()).move is Move.REVERSED
        pairs = Addresses.of(access_type, VectorShape(16, -access_type.size), 16)
        assert select(access_type, pairs, Facts()).move is not Move.REVERSED
        strided = Addresses.of(access_type, VectorShape(width, -2 * access_type.size), width)
        assert select(access_type, strided, Facts()).move is not Move.REVERSED


def test_every_move_has_a_function_that_emits_it() -> None:
    for row in TABLE:
        plan = row.plan
        if plan.guard in (Guard.CACHE, Guard.STEP, Guard.ELEMENT, Guard.LANES):
            emitters = {"load": LOADS, "store": STORES}
            assert all(plan.move in emitters[op] for op in row.ops)
        elif plan.is_general and plan.move is not Move.LANE_BY_LANE:
            assert plan.move in MOVES


@pytest.mark.parametrize("length", [4, 8, 16, 32])
@pytest.mark.parametrize(("stride", "parts"), [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (8, 1)])
def test_vectors_cover_a_run_and_nothing_beyond(length: int, stride: int, parts: int) -> None:
    accessed = {stride * lane + part for lane in range(length) for part in range(parts)}
    covered = {begin + n for begin in covering(length, stride, parts) for n in range(length)}
    assert accessed <= covered <= set(range(max(accessed) + 1))


def test_the_page_shows_the_table() -> None:
    assert TOOL["PAGE"].read_text("utf-8") == TOOL["page_with_table"](), f"{REWRITE} docs/engine.md"


def test_plans_of_kernels_are_as_recorded() -> None:
    """Compares plans with tests/ir/golden, which has a file for each kernel, so that a change of a
    plan shows in review."""
    files = sorted(TOOL["GOLDEN"].glob("*.txt"))
    assert len(files) >= 30
    made = files[0].read_text("utf-8").partition("\n")[0].rpartition(", ")[2]
    if made != TOOL["made_with"]():
        pytest.skip(f"the plans are of PTX by {made}, here is {TOOL['made_with']()}")
    now = dict(TOOL["golden"]())
    assert sorted(now) == files, f"{REWRITE} the diff"
    for path, text in now.items():
        assert path.read_text("utf-8") == text, f"{REWRITE} the diff of {path.relative_to(ROOT)}"


SOURCE = """
extern "C" __global__ void k(int *x, const int *y, const double *z, int step, int n) {
  __shared__ int own[256];
  int i = threadIdx.x;
  own[i] = y[i] + y[2 * i] + y[step * i] + y[blockIdx.x] + z[3 * i];
  x[i] = 1; x[i + 64] = 2; x[i + 128] = y[own[i]]; x[4 * i + 256] = 4;
  __syncthreads();
  int *p = x + n * i;
  p[0] = own[255 - i]; p[1] = 7;
}
"""


@pytest.mark.parametrize("block", [(256, 1, 1), (8, 8, 1), (6, 6, 1)])
def test_code_is_emitted_from_the_plans_that_are_shown(
    block: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    emitted: dict[int, set[AccessPlan]] = {}

    def noting(way: str) -> None:
        original = getattr(AffineAccess, way)

        def noted(self: AffineAccess, index: int, group: GroupValues, *others: object) -> object:
            emitted.setdefault(index, set()).add(group.plan)
            return original(self, index, group, *others)

        monkeypatch.setattr(AffineAccess, way, noted)

    noting("_load_hit")
    noting("_store_hit")
    program = wl.Device("h100").compile(SOURCE)["k"].program
    engine = CompiledEngine()
    layout = CountLayout(program, engine._rules)
    variant = engine._variant(program, Launch((1, 1, 1), block, b""), records=False)
    facts = warp_ir(layout, variant)
    WarpFunction(ir.Module("k"), facts).emit(lambda: None)
    deferred = {one.instruction: one.plan for one in planned_accesses(facts)}
    grouped = {i for i, plan in deferred.items() if not plan.is_general}
    assert grouped
    for index in grouped:
        plan = deferred[index]
        if plan.move is not Move.DEFERRED:
            assert emitted[index] <= {plan, plan.in_one_version()}
            assert plan in emitted[index]
    assert not any(deferred[i].is_general for i in emitted)
