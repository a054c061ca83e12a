"""Chooses how an access to memory is done: by a table whose first row that fits holds.

A row says for which accesses it is (`Row`) and gives their plan: what is known of the addresses,
what has to hold before the data move, how they move, how the access is counted, and where code goes
where it does not hold. What emits an access looks its plan up and decides nothing. docs/engine.md
shows the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from warploom.abi.access_type import STACK, AccessType
from warploom.analysis.vector_shape import LANES, VECTOR, VectorShape
from warploom.cost.atomics import WORD_BYTES
from warploom.ptx.ir import Space

MOST_RUNS_BY_STEP = 8
"""Where warps have more runs, each of its lanes is one in accesses of words without a shape: a
gather is as fast as that many vectors."""


class Pattern(Enum):
    """Says what is known of the addresses of a warp. A run: consecutive lanes, which are threads
    along x."""

    AGREED = "one address in each run"
    CONSECUTIVE = "consecutive elements in each run"
    STRIDED = "any other stride in each run"
    STEP = "no shape, all lanes together"
    LAYOUT = "no shape, all lanes together, in blocks whose width is no multiple of 4"
    COLUMNS = "several stores from one register, no shape or a stride"
    ANY = "any"


class Guard(Enum):
    """Says what has to hold before the data move."""

    CACHE = "known by the access cache"
    STEP = "known by the access cache, and one step leads from lane to lane in each run"
    ELEMENT = "known by the access cache, and elements follow each other in each run"
    LANES = "known by the access cache, each lane a run"
    COMPARED = "places apart from those of the loads between, like earlier ones"
    WINDOW = "all words in a window of 1 KiB"
    BOUNDS = "bounds of all lanes"


class Move(Enum):
    """Says how the data move."""

    SCALAR = "a scalar for each run of lanes"
    VECTOR = "a vector for each run of lanes"
    EACH = "a gather of one element for each run of lanes"
    PAIRS = "a gather or a scatter of two words at once"
    STRUCTURES = "vectors that cover each run, and shuffles; a gather where some lanes are off"
    GATHER = "a gather"
    SCATTER = "a scatter"
    BY_STEP = "vectors where the step is the element's size, else a gather or a scatter"
    ROWS = "one row of 128 bytes for each word"
    DEFERRED = "kept, then stored row by row"
    LANE_BY_LANE = "lane by lane"
    BY_SPACE = "as at any addresses, in each space that lanes reach"
    WORDS = "a gather or a scatter for each word"
    EACH_LANE = "a gather, or a store in each lane in turn"
    BY_PATTERN = "a vector where lanes follow, else a gather or a store in each lane in turn"


class Cost(Enum):
    """Says what counts the access."""

    CACHE = "the access cache"
    PATTERNS = "the pattern table"
    LIST = "a list of several"
    NONE = "nothing"


class Exit(Enum):
    """Says where code goes where the guard does not hold."""

    SLOW_VERSION = "the slow version of the block"
    GENERAL = "as at any addresses"
    FAULT = "a fault"


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """Says how an access is done. SLOW_VERSION as `exit` is GENERAL in blocks that have no slow
    version."""

    pattern: Pattern
    guard: Guard
    move: Move
    cost: Cost
    exit: Exit

    @property
    def is_general(self) -> bool:
        """Returns whether the access is done out of line, whatever its addresses are."""
        return self.guard is Guard.BOUNDS

    def in_one_version(self) -> AccessPlan:
        """Returns the plan in a block, or a version of it, that code does not leave."""
        return replace(self, exit=Exit.GENERAL) if self.exit is Exit.SLOW_VERSION else self


@dataclass(frozen=True, slots=True)
class Addresses:
    """Holds what is known of the addresses of an access: their pattern and, where that is from
    their shape, the shape; `scattered`: they, or which lanes are on, depend on data
    (`analysis.scattered`)."""

    pattern: Pattern
    lanes: VectorShape = VECTOR
    scattered: bool = False

    @classmethod
    def of(
        cls, shape: AccessType, lanes: VectorShape, runs: int, *, scattered: bool = False
    ) -> Addresses:
        """Returns what the shape of the addresses says, where all lanes go together, in warps of so
        many runs."""
        if not lanes.is_known:
            gathers = runs > MOST_RUNS_BY_STEP and shape.type.bytes >= WORD_BYTES
            if gathers or runs == LANES:
                return cls(Pattern.LAYOUT, VectorShape(LANES))
            return cls(Pattern.STEP, VectorShape(runs), scattered)
        by_stride = {0: Pattern.AGREED, shape.size: Pattern.CONSECUTIVE}
        return cls(by_stride.get(lanes.stride, Pattern.STRIDED), lanes)

    def are_distinct(self, shape: AccessType) -> bool:
        """Returns whether each lane is known to reach bytes of its own."""
        return self.lanes.width == 1 and self.lanes.stride >= shape.size


ANYWHERE = Addresses(Pattern.ANY)


@dataclass(frozen=True, slots=True)
class Facts:
    """Holds what a choice depends on beside the access: whether its code may be `inlined`, its
    order is `fixed` rather than chosen by a policy, steps are looked for (`Pass.STEPS`), stores may
    be `batched` (`Pass.PUT_OFF`), and atomics are `deferred` by the device's rules."""

    inlined: bool = True
    fixed: bool = True
    steps: bool = True
    batched: bool = True
    deferred: bool = False


MOST_ELEMENTS_BETWEEN = 8
"""Elements from lane to lane up to which vectors that cover a run take the place of a gather."""


class Need(Enum):
    """Says what else a row demands."""

    WORDS = "elements of 4 bytes or more"
    LONG = "elements of more than 4 bytes"
    ONE_WORD = "one element of 4 bytes"
    ONE_ELEMENT = "one element of 4 or 8 bytes"
    NEAR = f"up to {MOST_ELEMENTS_BETWEEN} elements from lane to lane"
    ONE_RUN = "the warp is one run"
    PAIRS = "runs of two lanes"
    NO_OVERLAP = "no policy chooses whose store lasts, or lanes are known not to overlap"
    STEPS = "with the pass `steps`"
    NOT_SCATTERED = "neither addresses nor which lanes are on depend on data"
    DEFERS = "with the pass `store-batching`, where no detector or observer sees the order"
    LISTS = "no policy chooses the order of lanes"
    ON_STACK = "what a call keeps"


def _near(shape: AccessType) -> range:
    """Returns the strides of lanes that do not adjoin, but are NEAR."""
    step = shape.type.bytes
    return range(shape.size + step, MOST_ELEMENTS_BETWEEN * step + 1, step)


_HOLDS: Mapping[Need, Callable[[AccessType, Addresses, Facts], bool]] = {
    Need.WORDS: lambda shape, _at, _facts: shape.type.bytes >= WORD_BYTES,
    Need.LONG: lambda shape, _at, _facts: shape.type.bytes > WORD_BYTES,
    Need.ONE_WORD: lambda shape, _at, _facts: shape.size == WORD_BYTES,
    Need.ONE_ELEMENT: lambda shape, _at, _facts: shape.parts == 1 and shape.size in (4, 8),
    Need.PAIRS: lambda _shape, at, _facts: at.lanes.width == LANES // 2,
    Need.NEAR: lambda shape, at, _facts: at.lanes.stride in _near(shape),
    Need.ONE_RUN: lambda _shape, at, _facts: at.lanes.width == 1,
    Need.NO_OVERLAP: lambda shape, at, facts: facts.fixed or at.are_distinct(shape),
    Need.STEPS: lambda _shape, _at, facts: facts.steps,
    Need.NOT_SCATTERED: lambda _shape, at, _facts: not at.scattered,
    Need.DEFERS: lambda _shape, _at, facts: facts.batched and facts.fixed,
    Need.LISTS: lambda _shape, _at, facts: facts.deferred and facts.fixed,
    Need.ON_STACK: lambda shape, _at, _facts: shape.route == STACK,
}


@dataclass(frozen=True, slots=True)
class Row:
    """The accesses of `ops` to `spaces` at addresses of the plan's pattern (ANY: of any one) that
    have all that the row `needs`, and their plan."""

    ops: tuple[str, ...]
    spaces: tuple[Space, ...]
    plan: AccessPlan
    needs: tuple[Need, ...] = ()

    def fits(self, shape: AccessType, at: Addresses, facts: Facts) -> bool:
        """Returns whether the row is for an access at such addresses."""
        can_be_inlined = facts.inlined and shape.route != STACK
        reached = shape.op in self.ops and shape.space in self.spaces
        known = self.plan.pattern in (at.pattern, Pattern.ANY)
        if not (reached and known and (can_be_inlined or self.plan.is_general)):
            return False
        return all(_HOLDS[need](shape, at, facts) for need in self.needs)


def _cached(pattern: Pattern, move: Move) -> AccessPlan:
    return AccessPlan(pattern, Guard.CACHE, move, Cost.CACHE, Exit.SLOW_VERSION)


def _by_step(guard: Guard, move: Move) -> AccessPlan:
    return AccessPlan(Pattern.STEP, guard, move, Cost.CACHE, Exit.GENERAL)


def _laid_out(move: Move) -> AccessPlan:
    return AccessPlan(Pattern.LAYOUT, Guard.LANES, move, Cost.CACHE, Exit.GENERAL)


def _general(move: Move, cost: Cost = Cost.PATTERNS) -> AccessPlan:
    return AccessPlan(Pattern.ANY, Guard.BOUNDS, move, cost, Exit.FAULT)


LOAD, STORE, ATOMIC = ("load",), ("store",), ("atomic",)
LOAD_STORE = LOAD + STORE
LINEAR = (Space.GLOBAL, Space.SHARED, Space.CONST)
"""Spaces in which an address is a place of its own for all lanes."""

LOCAL = (Space.LOCAL,)
ANY_OP, ANY_SPACE = LOAD_STORE + ATOMIC, tuple(Space)
_WORDS, _PAIRS = (Need.WORDS, Need.NO_OVERLAP), (Need.PAIRS, Need.NO_OVERLAP)
_STEPS = (Need.STEPS, Need.NOT_SCATTERED)

_DEFERRED = AccessPlan(
    Pattern.COLUMNS, Guard.COMPARED, Move.DEFERRED, Cost.PATTERNS, Exit.SLOW_VERSION
)
_DEFERRED_ATOMIC = AccessPlan(Pattern.ANY, Guard.WINDOW, Move.LANE_BY_LANE, Cost.LIST, Exit.GENERAL)

TABLE = (
    # Accesses that are inlined, where lanes go together.
    Row(LOAD_STORE, LOCAL, _cached(Pattern.AGREED, Move.ROWS), (Need.WORDS, Need.ONE_RUN)),
    Row(LOAD, LINEAR, _cached(Pattern.AGREED, Move.EACH), (Need.PAIRS, Need.WORDS)),
    Row(LOAD, LINEAR, _cached(Pattern.CONSECUTIVE, Move.PAIRS), (Need.PAIRS, Need.ONE_WORD)),
    Row(LOAD, LINEAR, _cached(Pattern.CONSECUTIVE, Move.GATHER), (Need.PAIRS,)),
    Row(LOAD, LINEAR, _cached(Pattern.STRIDED, Move.GATHER), (Need.PAIRS,)),
    Row(LOAD, LINEAR, _cached(Pattern.AGREED, Move.SCALAR)),
    Row(LOAD, LINEAR, _cached(Pattern.CONSECUTIVE, Move.VECTOR)),
    Row(LOAD, LINEAR, _cached(Pattern.STRIDED, Move.STRUCTURES), (Need.NEAR,)),
    Row(LOAD, LINEAR, _cached(Pattern.STRIDED, Move.GATHER)),
    Row(STORE, LINEAR, _cached(Pattern.AGREED, Move.SCALAR), (*_WORDS, Need.ONE_RUN)),
    Row(STORE, LINEAR, _cached(Pattern.CONSECUTIVE, Move.PAIRS), (*_PAIRS, Need.ONE_WORD)),
    Row(STORE, LINEAR, _cached(Pattern.CONSECUTIVE, Move.SCATTER), (*_PAIRS, Need.WORDS)),
    Row(STORE, LINEAR, _cached(Pattern.CONSECUTIVE, Move.VECTOR), (Need.NO_OVERLAP,)),
    Row(STORE, LINEAR, _cached(Pattern.STRIDED, Move.SCATTER), _WORDS),
    Row(LOAD, LINEAR, _by_step(Guard.STEP, Move.BY_STEP), (*_STEPS, Need.WORDS)),
    Row(LOAD, LINEAR, _by_step(Guard.ELEMENT, Move.VECTOR), _STEPS),
    Row(STORE, LINEAR, _by_step(Guard.STEP, Move.BY_STEP), (*_STEPS, *_WORDS)),
    Row(STORE, LINEAR, _by_step(Guard.ELEMENT, Move.VECTOR), (*_STEPS, Need.NO_OVERLAP)),
    Row(LOAD, LINEAR, _laid_out(Move.BY_STEP), (Need.STEPS, Need.WORDS)),
    Row(LOAD, LINEAR, _laid_out(Move.GATHER), (Need.STEPS,)),
    Row(STORE, LINEAR, _laid_out(Move.BY_STEP), (Need.STEPS, *_WORDS)),
    Row(STORE, (Space.GLOBAL, Space.SHARED), _DEFERRED, (Need.DEFERS, Need.ONE_ELEMENT)),
    Row(ATOMIC, (Space.SHARED,), _DEFERRED_ATOMIC, (Need.LISTS, Need.ONE_WORD)),
    # Accesses out of line.
    Row(ANY_OP, (Space.GENERIC,), _general(Move.BY_SPACE)),
    Row(ATOMIC, ANY_SPACE, _general(Move.LANE_BY_LANE)),
    Row(LOAD_STORE, LOCAL, _general(Move.WORDS, Cost.NONE), (Need.LONG, Need.ON_STACK)),
    Row(LOAD_STORE, LOCAL, _general(Move.WORDS), (Need.LONG,)),
    Row(LOAD_STORE, ANY_SPACE, _general(Move.EACH_LANE, Cost.NONE), (Need.ON_STACK,)),
    Row(LOAD_STORE, (Space.PARAM,), _general(Move.EACH_LANE, Cost.NONE)),
    Row(LOAD_STORE, LOCAL, _general(Move.EACH_LANE)),
    Row(LOAD_STORE, ANY_SPACE, _general(Move.BY_PATTERN)),
)


def select(shape: AccessType, at: Addresses, facts: Facts) -> AccessPlan:
    """Returns the plan of an access: that of the first row of the table that is for it."""
    return next(row.plan for row in TABLE if row.fits(shape, at, facts))


def general(shape: AccessType) -> AccessPlan:
    """Returns the plan of an access out of line."""
    return select(shape, ANYWHERE, Facts(inlined=False))
