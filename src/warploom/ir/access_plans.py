"""Chooses how a memory access is emitted (its plan), by a table of which the first matching row
applies.

A row (`PlanRow`) matches operations, state spaces, patterns of addresses and further needs, and
gives a plan: the guard that has to hold before data move, the move, what counts the access, and the
exit if the guard fails. Passes select the plans and store them in the Warp IR (`passes.groups`,
`passes.plans`); `lower.access` emits them.

    ld.global.f32, affine<4>          ->  consecutive / cache / vector / cache / slow version
    ld.global.f32, varying addresses  ->  step / step / by step / cache / general
    atom.shared.add.u32               ->  any / window / lane by lane / list / general

docs/engine.md shows the table, `warploom ptx --plan` the plans of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from warploom.abi.access_type import STACK, AccessType
from warploom.cost.atomics import WORD_BYTES
from warploom.isa.instruction import Space
from warploom.shapes.vector_shape import LANES, VARYING, VectorShape

MOST_RUNS_BY_STEP = 8
"""The number of runs in a warp up to which varying addresses are tested for a stride in each run.
In warps of more runs each lane is treated as a run: a gather is as fast as that many vectors."""


class Pattern(Enum):
    """Names patterns of the addresses of a warp. A run is a number of consecutive lanes that are
    threads along x."""

    AGREED = "one address for each run"
    CONSECUTIVE = "consecutive elements in each run"
    STRIDED = "any other constant stride in each run"
    STEP = "varying addresses, in convergent code"
    LAYOUT = "varying addresses, in convergent code; the block's width is not a multiple of 4"
    COLUMNS = "several stores to varying or strided addresses, all relative to one base register"
    ANY = "any"


class Guard(Enum):
    """Names the conditions that are checked before data move. CACHE, STEP, ELEMENT, LANES: a hit in
    the range cache (`abi.range_cache`); BOUNDS: a check of every lane's address."""

    CACHE = "a hit in the range cache"
    STEP = "a hit in the range cache, and a constant stride between lanes in each run"
    ELEMENT = "a hit in the range cache, and consecutive elements in each run"
    LANES = "a hit in the range cache, with each lane as a run of its own"
    COMPARED = "the stores do not overlap any load between them"
    WINDOW = "all lanes access words in one window of 1 KiB"
    BOUNDS = "a bounds check of every lane's address"


class Move(Enum):
    """Names the ways in which data move; each has an emitter (`lower.access.loads`, `stores`)."""

    SCALAR = "a scalar for each run of lanes"
    VECTOR = (
        "a vector for each run of lanes; for loads, one vector for all runs with the same addresses"
    )
    EACH = "a gather of one element for each run of lanes"
    PAIRS = "a gather or a scatter of pairs of words"
    STRUCTURES = "vectors that cover each run, and shuffles; a gather if some lanes are inactive"
    REVERSED = "a vector for each run of lanes, in reverse order"
    GATHER = "a gather"
    SCATTER = "a scatter"
    BY_STEP = "vectors if the stride is one element, otherwise a gather or a scatter"
    ROWS = "a 128-byte vector for each word of an element"
    DEFERRED = "deferred, then stored lane by lane"
    LANE_BY_LANE = "lane by lane"
    WORDS = "a gather or a scatter for each word"
    EACH_LANE = "a gather, or one store per lane"
    BY_PATTERN = "a vector for consecutive lanes, otherwise a gather or one store per lane"


class Cost(Enum):
    """Names the structures that count an access and memoise its cost."""

    CACHE = "the range cache"
    PATTERNS = "the pattern table"
    LIST = "a list of costs"
    NONE = "nothing"


class Exit(Enum):
    """Names the paths that code follows if a guard fails."""

    SLOW_VERSION = "the slow version of the block"
    GENERAL = "the plan for any addresses"
    FAULT = "a fault"


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """Describes how an access is emitted. In basic blocks that have no slow version, the exit
    SLOW_VERSION means GENERAL."""

    pattern: Pattern
    guard: Guard
    move: Move
    cost: Cost
    exit: Exit

    @property
    def is_general(self) -> bool:
        """Returns whether the access is done out of line, for any addresses."""
        return self.guard is Guard.BOUNDS

    def in_one_version(self) -> AccessPlan:
        """Returns the plan for a basic block without a slow version: a failed guard leads to the
        general path instead of jumping there."""
        return replace(self, exit=Exit.GENERAL) if self.exit is Exit.SLOW_VERSION else self


@dataclass(frozen=True, slots=True)
class Addresses:
    """Describes the addresses of an access: their pattern, and `lanes`, their vector shape if the
    pattern follows from it. `scattered`: the addresses or the active mask depend on loaded data, so
    that no stride is expected (`analysis.scattered`)."""

    pattern: Pattern
    lanes: VectorShape = VARYING
    scattered: bool = False

    @classmethod
    def of(
        cls, access_type: AccessType, lanes: VectorShape, runs: int, *, scattered: bool = False
    ) -> Addresses:
        """Returns the description of addresses with vector shape `lanes`, in convergent code of
        warps of `runs` runs (32: no two lanes are a run). Affine ones: AGREED at stride 0,
        CONSECUTIVE at the access's size, else STRIDED. Varying ones: LAYOUT, each lane a run, if
        `runs` is 32, or more than MOST_RUNS_BY_STEP (8) and elements have 4 bytes or more; else
        STEP, a stride looked for at run time, the only pattern for which `scattered` is stored."""
        if not lanes.is_affine:
            gathers = runs > MOST_RUNS_BY_STEP and access_type.type.bytes >= WORD_BYTES
            if gathers or runs == LANES:
                return cls(Pattern.LAYOUT, VectorShape(LANES))
            return cls(Pattern.STEP, VectorShape(runs), scattered)
        by_stride = {0: Pattern.AGREED, access_type.size: Pattern.CONSECUTIVE}
        return cls(by_stride.get(lanes.stride, Pattern.STRIDED), lanes)

    def are_distinct(self, access_type: AccessType) -> bool:
        """Returns whether lanes certainly access disjoint bytes: one run, with a positive stride of
        at least an access."""
        return self.lanes.runs == 1 and self.lanes.stride >= access_type.size

    def base(self, access_type: AccessType, plan: AccessPlan) -> VectorShape:
        """Returns the vector shape of the addresses as a plan reads them: with equal runs
        (`VectorShape.repeats`) for loads of a vector for each run, which then load one for all
        equal runs; else each run with an address of its own."""
        loads_once = access_type.op == "load" and plan.move is Move.VECTOR
        return self.lanes if loads_once else self.lanes.without_repeats


ANYWHERE = Addresses(Pattern.ANY)


@dataclass(frozen=True, slots=True)
class Facts:
    """Holds the options of a kernel that the choice of plans depends on.

    `inlined`: accesses may be emitted inline. `fixed`: the order of lanes is fixed, not chosen by a
    policy. `steps`: strides of varying addresses are looked for (`Pass.STEPS`). `batched`: stores
    may be deferred (`Pass.STORE_BATCHING`). `deferred`: the device's rules allow that atomics are
    counted in batches (`cost.deferred_atomics`).
    """

    inlined: bool = True
    fixed: bool = True
    steps: bool = True
    batched: bool = True
    deferred: bool = False


MOST_ELEMENTS_BETWEEN = 8
"""The largest stride, in elements, for which a run is loaded by contiguous vectors and shuffles; a
gather is faster for larger ones."""


class Need(Enum):
    """Names further conditions of a row."""

    WORDS = "elements of 4 bytes or more"
    LONG = "elements of more than 4 bytes"
    ONE_WORD = "one element of 4 bytes"
    ONE_ELEMENT = "one element of 4 or 8 bytes"
    NEAR = f"a stride of up to {MOST_ELEMENTS_BETWEEN} elements between lanes"
    BACKWARDS = "consecutive elements in reverse order, in runs of four lanes or more"
    ONE_RUN = "the warp is one run"
    PAIRS = "runs of two lanes"
    NO_OVERLAP = "the lanes' stores do not overlap, or they take effect in a fixed order"
    STEPS = "the `steps` pass is enabled"
    NOT_SCATTERED = "neither the addresses nor the active lanes depend on loaded data"
    DEFERS = (
        "the `store-batching` pass is enabled; no scheduling policy, detector or "
        "observer requires in-order stores"
    )
    LISTS = "no scheduling policy chooses the order of lanes"
    ON_STACK = "the access is to the call stack, where calls save registers"


def _near_strides(access_type: AccessType) -> range:
    """Returns the strides, in bytes, that meet `Need.NEAR`: multiples of an element's size, more
    than an access, at most MOST_ELEMENTS_BETWEEN (8) elements."""
    step = access_type.type.bytes
    return range(access_type.size + step, MOST_ELEMENTS_BETWEEN * step + 1, step)


_HOLDS: Mapping[Need, Callable[[AccessType, Addresses, Facts], bool]] = {
    Need.WORDS: lambda access_type, _addresses, _facts: access_type.type.bytes >= WORD_BYTES,
    Need.LONG: lambda access_type, _addresses, _facts: access_type.type.bytes > WORD_BYTES,
    Need.ONE_WORD: lambda access_type, _addresses, _facts: access_type.size == WORD_BYTES,
    Need.ONE_ELEMENT: lambda access_type, _addresses, _facts: (
        access_type.parts == 1 and access_type.size in (4, 8)
    ),
    Need.PAIRS: lambda _access_type, addresses, _facts: addresses.lanes.runs == LANES // 2,
    Need.NEAR: lambda access_type, addresses, _facts: (
        addresses.lanes.stride in _near_strides(access_type)
    ),
    Need.BACKWARDS: lambda access_type, addresses, _facts: (
        addresses.lanes.stride == -access_type.size and addresses.lanes.runs < LANES // 2
    ),
    Need.ONE_RUN: lambda _access_type, addresses, _facts: addresses.lanes.runs == 1,
    Need.NO_OVERLAP: lambda access_type, addresses, facts: (
        facts.fixed or addresses.are_distinct(access_type)
    ),
    Need.STEPS: lambda _access_type, _addresses, facts: facts.steps,
    Need.NOT_SCATTERED: lambda _access_type, addresses, _facts: not addresses.scattered,
    Need.DEFERS: lambda _access_type, _addresses, facts: facts.batched and facts.fixed,
    Need.LISTS: lambda _access_type, _addresses, facts: facts.deferred and facts.fixed,
    Need.ON_STACK: lambda access_type, _addresses, _facts: access_type.route == STACK,
}


@dataclass(frozen=True, slots=True)
class PlanRow:
    """Maps accesses to a plan: those of `ops` to `spaces` whose addresses have the plan's pattern
    (ANY matches all) and that meet all `needs`."""

    ops: tuple[str, ...]
    spaces: tuple[Space, ...]
    plan: AccessPlan
    needs: tuple[Need, ...] = ()

    def fits(self, access_type: AccessType, addresses: Addresses, facts: Facts) -> bool:
        """Returns whether the row matches an access by operation, space, pattern and needs. Rows
        whose plan is not general match only accesses that may be inlined: where the variant inlines
        at all, and not those of the stack of calls (route STACK)."""
        can_be_inlined = facts.inlined and access_type.route != STACK
        is_kind = access_type.op in self.ops and access_type.space in self.spaces
        has_pattern = self.plan.pattern in (addresses.pattern, Pattern.ANY)
        if not (is_kind and has_pattern and (can_be_inlined or self.plan.is_general)):
            return False
        return all(_HOLDS[need](access_type, addresses, facts) for need in self.needs)


def _cached(pattern: Pattern, move: Move) -> AccessPlan:
    """Returns the plan of an affine access that is guarded and counted by the range cache, with the
    slow version of the basic block as its exit."""
    return AccessPlan(pattern, Guard.CACHE, move, Cost.CACHE, Exit.SLOW_VERSION)


def _by_step(guard: Guard, move: Move) -> AccessPlan:
    """Returns the plan of a varying access whose stride in each run is found at run time: guarded
    by `guard`, counted by the range cache, with the general path as its exit."""
    return AccessPlan(Pattern.STEP, guard, move, Cost.CACHE, Exit.GENERAL)


def _laid_out(move: Move) -> AccessPlan:
    """Returns the plan of a varying access each of whose lanes is a run: guarded and counted by the
    range cache, with the general path as its exit."""
    return AccessPlan(Pattern.LAYOUT, Guard.LANES, move, Cost.CACHE, Exit.GENERAL)


def _general(move: Move, cost: Cost = Cost.PATTERNS) -> AccessPlan:
    """Returns the plan of an access out of line, with a check of every lane, whose failure is a
    fault, counted by `cost`."""
    return AccessPlan(Pattern.ANY, Guard.BOUNDS, move, cost, Exit.FAULT)


LOAD, STORE, ATOMIC = ("load",), ("store",), ("atomic",)
LOAD_STORE = LOAD + STORE
LINEAR = (Space.GLOBAL, Space.SHARED, Space.CONST)
"""The spaces in which an address means the same byte in all lanes."""

LOCAL = (Space.LOCAL,)
ANY_OP, ANY_SPACE = LOAD_STORE + ATOMIC, tuple(Space)
_WORDS, _PAIRS = (Need.WORDS, Need.NO_OVERLAP), (Need.PAIRS, Need.NO_OVERLAP)
_BACKWARDS = (Need.BACKWARDS, Need.NO_OVERLAP)
_STEPS = (Need.STEPS, Need.NOT_SCATTERED)

_DEFERRED = AccessPlan(
    Pattern.COLUMNS, Guard.COMPARED, Move.DEFERRED, Cost.PATTERNS, Exit.SLOW_VERSION
)
_DEFERRED_ATOMIC = AccessPlan(Pattern.ANY, Guard.WINDOW, Move.LANE_BY_LANE, Cost.LIST, Exit.GENERAL)

TABLE = (
    # Accesses that are inlined, in convergent code. A row without needs is what is left where the
    # needs of the rows above it do not hold, so the order within a pattern matters.
    #
    # Local memory is interleaved: word k of all 32 lanes is one row of 128 bytes. One address in
    # all lanes is therefore whole rows, which a vector moves; an element of less than a word is
    # not.
    PlanRow(LOAD_STORE, LOCAL, _cached(Pattern.AGREED, Move.ROWS), (Need.WORDS, Need.ONE_RUN)),
    # In warps of 16 runs one gather replaces 16 scalars, or 16 vectors of two elements.
    PlanRow(LOAD, LINEAR, _cached(Pattern.AGREED, Move.EACH), (Need.PAIRS, Need.WORDS)),
    PlanRow(LOAD, LINEAR, _cached(Pattern.CONSECUTIVE, Move.PAIRS), (Need.PAIRS, Need.ONE_WORD)),
    PlanRow(LOAD, LINEAR, _cached(Pattern.CONSECUTIVE, Move.GATHER), (Need.PAIRS,)),
    PlanRow(LOAD, LINEAR, _cached(Pattern.STRIDED, Move.GATHER), (Need.PAIRS,)),
    PlanRow(LOAD, LINEAR, _cached(Pattern.AGREED, Move.SCALAR)),
    PlanRow(LOAD, LINEAR, _cached(Pattern.CONSECUTIVE, Move.VECTOR)),
    PlanRow(LOAD, LINEAR, _cached(Pattern.STRIDED, Move.REVERSED), (Need.BACKWARDS,)),
    PlanRow(LOAD, LINEAR, _cached(Pattern.STRIDED, Move.STRUCTURES), (Need.NEAR,)),
    PlanRow(LOAD, LINEAR, _cached(Pattern.STRIDED, Move.GATHER)),
    # Where lanes store to one address, one value lasts. In the fixed order that is the highest
    # active lane's, which a scalar store and LLVM's scatter both leave; a policy may choose
    # another.
    PlanRow(STORE, LINEAR, _cached(Pattern.AGREED, Move.SCALAR), (*_WORDS, Need.ONE_RUN)),
    PlanRow(STORE, LINEAR, _cached(Pattern.CONSECUTIVE, Move.PAIRS), (*_PAIRS, Need.ONE_WORD)),
    PlanRow(STORE, LINEAR, _cached(Pattern.CONSECUTIVE, Move.SCATTER), (*_PAIRS, Need.WORDS)),
    PlanRow(STORE, LINEAR, _cached(Pattern.CONSECUTIVE, Move.VECTOR), (Need.NO_OVERLAP,)),
    PlanRow(STORE, LINEAR, _cached(Pattern.STRIDED, Move.REVERSED), _BACKWARDS),
    PlanRow(STORE, LINEAR, _cached(Pattern.STRIDED, Move.SCATTER), _WORDS),
    # Without a shape. Hosts gather elements of 4 and 8 bytes only: shorter ones are moved inline
    # just where they turn out to be consecutive (ELEMENT).
    PlanRow(LOAD, LINEAR, _by_step(Guard.STEP, Move.BY_STEP), (*_STEPS, Need.WORDS)),
    PlanRow(LOAD, LINEAR, _by_step(Guard.ELEMENT, Move.VECTOR), _STEPS),
    PlanRow(STORE, LINEAR, _by_step(Guard.STEP, Move.BY_STEP), (*_STEPS, *_WORDS)),
    PlanRow(STORE, LINEAR, _by_step(Guard.ELEMENT, Move.VECTOR), (*_STEPS, Need.NO_OVERLAP)),
    PlanRow(LOAD, LINEAR, _laid_out(Move.BY_STEP), (Need.STEPS, Need.WORDS)),
    PlanRow(LOAD, LINEAR, _laid_out(Move.GATHER), (Need.STEPS,)),
    PlanRow(STORE, LINEAR, _laid_out(Move.BY_STEP), (Need.STEPS, *_WORDS)),
    PlanRow(STORE, (Space.GLOBAL, Space.SHARED), _DEFERRED, (Need.DEFERS, Need.ONE_ELEMENT)),
    PlanRow(ATOMIC, (Space.SHARED,), _DEFERRED_ATOMIC, (Need.LISTS, Need.ONE_WORD)),
    # Accesses out of line.
    PlanRow(ATOMIC, ANY_SPACE, _general(Move.LANE_BY_LANE)),
    PlanRow(LOAD_STORE, LOCAL, _general(Move.WORDS, Cost.NONE), (Need.LONG, Need.ON_STACK)),
    PlanRow(LOAD_STORE, LOCAL, _general(Move.WORDS), (Need.LONG,)),
    PlanRow(LOAD_STORE, ANY_SPACE, _general(Move.EACH_LANE, Cost.NONE), (Need.ON_STACK,)),
    PlanRow(LOAD_STORE, (Space.PARAM,), _general(Move.EACH_LANE, Cost.NONE)),
    PlanRow(LOAD_STORE, LOCAL, _general(Move.EACH_LANE)),
    PlanRow(LOAD_STORE, ANY_SPACE, _general(Move.BY_PATTERN)),
)


def select(access_type: AccessType, addresses: Addresses, facts: Facts) -> AccessPlan:
    """Returns the plan of an access: that of the first row of TABLE that matches."""
    # Some row matches: the last ones have no needs, and take each operation in every space.
    return next(row.plan for row in TABLE if row.fits(access_type, addresses, facts))


def general(access_type: AccessType) -> AccessPlan:
    """Returns the plan of an access of a type that is done out of line, at any addresses, with a
    check of every lane, whatever the options of the kernel."""
    return select(access_type, ANYWHERE, Facts(inlined=False))
