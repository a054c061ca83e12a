"""Decides where a launch stops: breakpoints, watched memory, events, and the ends of steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warploom.abi.environment import SPACE_CODES, CountLayout
from warploom.core.lazy import cached_property
from warploom.core.types import Kind
from warploom.cost.device_rules import AccessRules
from warploom.cost.fields import CostRecord
from warploom.debug.stepper import Stepper
from warploom.isa.instruction import Instruction, Register, Space
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit
from warploom.lower.instrument import watchpoints
from warploom.lower.instrument.watchpoints import ATOMIC, LOAD, STORE, WatchedRange
from warploom.machine.access_costs import record_rule
from warploom.machine.reference.state import Warp
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.sanitize.report import FindingSite

Words = npt.NDArray[np.int64]
Condition = Callable[[Stepper, Warp, int], bool]
"""Returns True where a lane of a warp meets a condition."""

FINDINGS = {"race": "race", "uninitialized": "init"}
"""Events that sanitizers find, and the tool that finds each."""

EVENTS = (
    *("divergence", "reconvergence", "barrier", "bank-conflict", "uncoalesced", "nan"),
    *FINDINGS,
)
"""Lists the events of `catch`, beside errors, at which every launch stops."""


COUNTED = {"bank-conflict": 1, "uncoalesced": 5}
"""Events that happen from some number on, and that number where none is given: of conflicts of an
access, and of its sectors."""


@dataclass(frozen=True)
class Watched:
    """Bytes of memory: `size` from an address in a space on; of shared memory those of a block, of
    local memory those of a lane of one of its warps."""

    space: Space
    address: int
    size: int
    block: int | None = None
    warp: int | None = None
    lane: int | None = None

    def words(self, warps_per_block: int, ops: int) -> Words:
        """Returns it as compiled code reads it (`lower.instrument.watchpoints`)."""
        words = np.zeros(WatchedRange.WORDS, np.int64)
        watch = WatchedRange(words, 0)
        watch.space, watch.ops = SPACE_CODES[self.space], ops
        watch.start, watch.end = self.address, self.address + self.size
        first, last = 0, 1 << 62
        if self.block is not None:
            first = self.block * warps_per_block
            last = first + warps_per_block
        if self.block is not None and self.warp is not None:
            first += self.warp
            last = first + 1
        watch.first_warp, watch.last_warp = first, last
        watch.lanes = 0xFFFFFFFF if self.lane is None else 1 << self.lane
        return words


OPS = {"write": STORE | ATOMIC, "read": LOAD | ATOMIC, "access": LOAD | STORE | ATOMIC}
"""Maps each kind of watchpoint to the accesses that it stops at, as bits of
`lower.instrument.watchpoints`."""


@dataclass
class Breakpoint:
    """A place, an event or memory at which a launch stops. `instructions` are those before which it
    does; `ignored` so many times it does not. `condition` has to hold in some lane, `blocks` are
    those in which alone it can. `site` is the access of an event of FINDINGS."""

    number: int
    text: str
    instructions: frozenset[int] = frozenset()
    event: str = ""
    least: int = 0
    watched: Watched | None = None
    site: FindingSite | None = None
    kind: str = "write"
    condition: Condition | None = None
    condition_text: str = ""
    blocks: range | None = None
    enabled: bool = True
    temporary: bool = False
    ignored: int = 0
    hits: int = 0
    place: str = ""


@dataclass
class Hit:
    """Holds what a search has found: breakpoints, and the lanes in which they are hit."""

    breakpoints: list[Breakpoint] = field(default_factory=list[Breakpoint])
    step: str = ""
    lanes: int = 0
    warp: Warp | None = None


class Step:
    """The end of a step of one lane: where it comes to an instruction that `ends` the step, or has
    left the kernel."""

    def __init__(self, block: int, warp: int, lane: int, ends: Callable[[Warp, int], bool]) -> None:
        self.block, self._warp, self.lane, self._ends = block, warp, lane, ends

    def is_here(self, stepper: Stepper) -> bool:
        """Returns whether the lane is about to execute an instruction that ends the step."""
        warp = stepper.warp
        own = warp.block.number == self.block and warp.number == self._warp
        return own and bool(warp.splits.active >> self.lane & 1) and self._ends(warp, warp.next)

    def has_left(self, stepper: Stepper) -> bool:
        """Returns whether the lane has exited with the last instruction."""
        warp = stepper.last
        if warp is None or warp.block.number != self.block or warp.number != self._warp:
            return False
        return not warp.splits.live >> self.lane & 1


class Stops:
    """Looks for the next, or the last, place where a launch stops: any of some breakpoints, or the
    end of a step."""

    def __init__(
        self,
        program: Program,
        rules: AccessRules,
        warps_per_block: int,
        breakpoints: list[Breakpoint],
        step: Step | None = None,
    ) -> None:
        self._program, self._rules = program, rules
        self._breakpoints = [b for b in breakpoints if b.enabled]
        self._step = step
        self.hit = Hit()
        watched = [b for b in self._breakpoints if b.watched is not None]
        self.watch: Words | None = None
        if len(watched) == 1 and step is None and watched[0].watched is not None:
            self.watch = watched[0].watched.words(warps_per_block, OPS[watched[0].kind])
        self.blocks = self._common_blocks()

    def _common_blocks(self) -> range | None:
        """Returns the blocks between the first and the last in which it can be."""
        given = [b.blocks for b in self._breakpoints]
        if self._step is not None:
            given.append(range(self._step.block, self._step.block + 1))
        known = [r for r in given if r is not None]
        if len(known) < len(given) or not known:
            return None
        return range(min(r.start for r in known), max(r.stop for r in known))

    @property
    def steps(self) -> bool:
        """Returns whether the end of a step is looked for."""
        return self._step is not None

    # ---- counts ---------------------------------------------------------------------------------

    def may_hit(self, counts: Words, *, watched: bool) -> bool:
        """Returns whether it may be in an interval with these counts."""
        if self.watch is not None and watched:
            return bool(counts[-1]) or bool(counts[self._counted_unwatched].any())
        return bool(counts[self._counted].any())

    @cached_property
    def _counted(self) -> Words:
        """Returns the counts of which one is not zero wherever it is."""
        return self._counts_of(self._breakpoints)

    @cached_property
    def _counted_unwatched(self) -> Words:
        """Returns such counts of the breakpoints that compiled code does not watch."""
        return self._counts_of([b for b in self._breakpoints if b.watched is None])

    def _counts_of(self, breakpoints: list[Breakpoint]) -> Words:
        layout = CountLayout(self._program, self._rules)
        if self._step is not None:
            return np.arange(0, 2 * len(self._program.blocks), 2)
        found: set[int] = set()
        for breakpoint in breakpoints:
            match breakpoint.event:
                case "divergence":
                    found |= set(layout.branches.values())
                case "reconvergence":
                    found |= {at + 1 for at in layout.branches.values()}
                case event if event in ("", *FINDINGS):
                    wanted = breakpoint.instructions
                    if breakpoint.site is not None:
                        wanted = frozenset([breakpoint.site.instruction])
                    elif breakpoint.watched is not None:
                        wanted = frozenset(row.instruction for row in layout.records)
                    found |= self._blocks_of(wanted)
                case _:
                    found |= set(range(0, 2 * len(self._program.blocks), 2))
        return np.array(sorted(found), np.int64)

    def _blocks_of(self, instructions: frozenset[int]) -> set[int]:
        """Returns the counts of the basic blocks that have some instructions."""
        every = self._program.blocks
        return {2 * b.index for b in every if not instructions.isdisjoint(range(b.start, b.stop))}

    # ---- looking --------------------------------------------------------------------------------

    @cached_property
    def _by_instruction(self) -> dict[int, list[Breakpoint]]:
        found: dict[int, list[Breakpoint]] = {}
        for breakpoint in self._breakpoints:
            for instruction in breakpoint.instructions:
                found.setdefault(instruction, []).append(breakpoint)
        return found

    @cached_property
    def _late(self) -> list[Breakpoint]:
        """Returns the breakpoints that are only known when an instruction has been executed."""
        return [b for b in self._breakpoints if b.event or b.watched is not None]

    def before(self, stepper: Stepper) -> bool:
        """Returns whether it is where a warp is about to execute an instruction."""
        hit = Hit(warp=stepper.warp)
        for breakpoint in self._by_instruction.get(stepper.index, ()):
            lanes = self._lanes(breakpoint, stepper, stepper.warp, stepper.warp.splits.active)
            if lanes and self._counts(breakpoint):
                hit.breakpoints.append(breakpoint)
                hit.lanes |= lanes
        if self._step is not None and self._step.is_here(stepper):
            hit.step = "step"
            hit.lanes |= 1 << self._step.lane
        return self._found(hit)

    def after(self, stepper: Stepper) -> bool:
        """Returns whether it is what the last instruction has done."""
        warp = stepper.last
        assert warp is not None
        hit = Hit(warp=warp)
        for breakpoint in self._late:
            lanes = self._happened(breakpoint, stepper, warp)
            lanes = self._lanes(breakpoint, stepper, warp, lanes)
            if lanes and self._counts(breakpoint):
                hit.breakpoints.append(breakpoint)
                hit.lanes |= lanes
        if self._step is not None and self._step.has_left(stepper):
            hit.step = "exited"
            hit.lanes |= 1 << self._step.lane
        return self._found(hit)

    def _found(self, hit: Hit) -> bool:
        if hit.breakpoints or hit.step:
            self.hit = hit
            return True
        return False

    def _lanes(self, breakpoint: Breakpoint, stepper: Stepper, warp: Warp, lanes: int) -> int:
        """Returns those of some lanes that meet the condition of a breakpoint."""
        condition = breakpoint.condition
        if breakpoint.blocks is not None and warp.block.number not in breakpoint.blocks:
            return 0
        if condition is None or not lanes:
            return lanes
        every = (lane for lane in range(lanes.bit_length()) if lanes >> lane & 1)
        return sum(1 << lane for lane in every if condition(stepper, warp, lane))

    def _counts(self, breakpoint: Breakpoint) -> bool:
        """Counts a hit; returns whether it is one to stop at."""
        if breakpoint.ignored > 0:
            breakpoint.ignored -= 1
            return False
        return True

    def _happened(self, breakpoint: Breakpoint, stepper: Stepper, warp: Warp) -> int:
        """Returns the lanes to which an event has happened with the last instruction."""
        site = breakpoint.site
        if site is not None and site.instruction != stepper.executed:
            return 0
        if breakpoint.watched is not None:
            return _touching(breakpoint.watched, OPS[breakpoint.kind], stepper, warp)
        made = self._program.instructions[stepper.executed]
        active = warp.splits.active or warp.existing
        match breakpoint.event:
            case "divergence":
                return active if stepper.divergences else 0
            case "reconvergence":
                return active if stepper.reconvergences else 0
            case "barrier":
                return active if made.operation.spec.unit is Unit.BARRIER else 0
            case "nan":
                return _new_nans(made, warp)
            case "bank-conflict":
                return self._costly(
                    stepper, (Space.SHARED,), CostRecord.bank_conflicts, breakpoint.least
                )
            case _:
                spaces = (Space.GLOBAL, Space.LOCAL)
                return self._costly(stepper, spaces, CostRecord.sectors, breakpoint.least)

    def _costly(self, stepper: Stepper, spaces: tuple[Space, ...], what: int, least: int) -> int:
        """Returns the lanes of an access that costs at least so much."""
        rows = {(row.instruction, row.space): row for row in stepper.grid.run.tally.access_records}
        for access in stepper.events.accesses:
            row = rows.get((access.instruction, access.space))
            if access.space not in spaces or row is None:
                continue
            pattern, _ = access.pattern(self._rules.unit)
            cost = record_rule(self._program, row, self._rules).cost(pattern)
            if cost[what] >= least:
                return pattern.lanes
        return 0


def _touching(watched: Watched, ops: int, stepper: Stepper, warp: Warp) -> int:
    """Returns the lanes whose last access has touched watched memory."""
    found = 0
    if watched.block is not None and warp.block.number != watched.block:
        return 0
    if watched.warp is not None and warp.number != watched.warp:
        return 0
    for access in stepper.events.accesses:
        if access.space is not watched.space or not watchpoints.OP_BITS[access.op] & ops:
            continue
        for lane, address in zip(access.lanes, access.addresses, strict=True):
            end = watched.address + watched.size
            touches = address < end and address + access.size > watched.address
            if touches and watched.lane in (None, lane):
                found |= 1 << lane
    return found


def _new_nans(made: Instruction, warp: Warp) -> int:
    """Returns the lanes in which an instruction has made a NaN of numbers that are none."""
    if Kind.FLOAT not in {r.type.kind for r in writes(made)} and not _is_float(made):
        return 0
    own = [r for r in reads(made) if r not in set(writes(made))]
    given = np.zeros(warp.size, bool)
    for register in own:
        given |= _nans(register, warp)
    results = np.zeros(warp.size, bool)
    for register in writes(made):
        results |= _nans(register, warp)
    mask = int.from_bytes(np.packbits(results & ~given, bitorder="little").tobytes(), "little")
    return mask & warp.splits.active


def _is_float(made: Instruction) -> bool:
    texts = made.operation.text.split(".")
    moved = (OpKind.COMPARE, OpKind.LOAD, OpKind.MOVE, OpKind.STORE)
    computed = made.operation.kind not in moved and made.operation.spec.unit is not Unit.CONVERT
    return computed and texts[-1] in ("f32", "f64")


def _nans(register: Register, warp: Warp) -> npt.NDArray[np.bool_]:
    """Returns the lanes in which a register of 32 or 64 bits holds a NaN."""
    values = warp.registers[register.name]
    if register.type.bits not in (32, 64):
        return np.zeros(warp.size, bool)
    floats = {32: np.float32, 64: np.float64}[register.type.bits]
    return np.isnan(values.view(floats))
