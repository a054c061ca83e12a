"""Emits the guards of inlined accesses, one for each access group (accesses of a basic block from
one base register), and the exits to slower versions of the block where a guard fails.

Accesses of a basic block with one base register form a group, and one lookup in the range cache
guards all of them. A block with groups gets a fast version, which assumes full masks and cache
hits, and a slow version, which guards each access on its own. A warp with lanes off leaves at the
first guard: for the slow version or, where a group has several accesses, for a masked version,
which retains the groups and masks their moves:

    fast:  br (hit %rd1), next, exit4     ; guards ld [%rd1], ld [%rd1+4]
    next:  ...                            ; loads without masks
    exit4: flush deferred stores, count accesses so far; br slow4
    slow:  ...                            ; each access checked on its own
    slow4: ...                            ; entered at instruction 4

Which accesses form groups, and their plans, is in the Warp IR (`passes.groups`,
`ir.access_plans`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from llvmlite import ir

from warploom.core.types import unsigned
from warploom.ir.access_groups import AccessGroup
from warploom.ir.access_plans import Exit, Guard
from warploom.ir.warp_ir import BlockAccesses
from warploom.isa.instruction import Address, Instruction, Register
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.access.group_bases import GroupBases
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.range_cache import RangeCache
from warploom.lower.access.store_batching import StoreBatch
from warploom.program.cfg import ProgramBlock

RARELY = (1 << 20, 1)
"""Branch weights of an exit that is almost never taken: they hold the values that are live there in
registers on the fast path."""

SOMETIMES = (8, 1)
"""Branch weights of an exit that warps at the edges of a grid branch to, which may be most
warps."""


class GroupGuards:
    """Emits guards of access groups: accesses of a basic block from one base register.

    One lookup in the range cache guards a group; if the guard fails in a block's fast version, code
    exits to a slower one. `groups`: by instruction, the group of each access in the version of the
    block being emitted; `begin` sets them. `on` has an instruction's executing lanes. The fast
    version needs all lanes active and all guards to hold; the slow one guards each access; the
    masked one is for warps with lanes off."""

    def __init__(self, memory: MemoryCode) -> None:
        """Creates the range cache and the store batch; no group until `begin`."""
        self.memory = memory
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self.cache, self.store_batch = RangeCache(memory), StoreBatch(memory)
        self._bases = GroupBases(memory)
        self.groups: dict[int, GroupValues] = {}
        self._slow_paths: dict[int, ir.Block] = {}
        self._masked: dict[int, ir.Block] = {}
        self._accesses = BlockAccesses()
        self._all_on = False
        """True where a guard before has established that all lanes are active."""
        self._awaiting_count: dict[int, GroupValues] = {}
        """By instruction, the accesses already emitted that are not counted yet, as the last member
        of their group, which counts them all, is still to be emitted."""
        self.prefetches_lines = False
        """True if loads of consecutive elements prefetch in this basic block: its batched stores
        each wait for a line, and loads after them would queue up."""

    def begin(self, block: ProgramBlock, *, masked: bool) -> None:
        """Begins a basic block: reads its groups from the Warp IR, and drops all state of the last
        block; no groups in divergent code. `masked`: the block is predicated, and has one
        version."""
        self._forget()
        self.cache.sets.begin(single_entry=True)
        self.groups.clear()
        self._slow_paths.clear()
        self._masked.clear()
        # Divergent code stores registers lane by lane, so no address is affine.
        if not self.frame.position.convergent:
            self.prefetches_lines, self._accesses = False, BlockAccesses()
            return
        facts = self.frame.warp_ir.blocks[block.index]
        self._accesses = facts.masked if masked else facts.accesses
        self.prefetches_lines = self._accesses.defers
        for access_group in self._accesses.groups:
            self._add_group(GroupValues(access_group))

    def _add_group(self, group: GroupValues) -> None:
        """Adds a group under the instructions of its accesses; one with several gets a variable
        (`miss_flag`) that records whether its first access missed."""
        if len(group.members) > 1:
            group.miss_flag = self.frame.variable(I1)
        self.groups |= dict.fromkeys((index for index, _ in group.members), group)

    def begin_batch(self, groups: Iterable[AccessGroup], checked: Collection[int]) -> None:
        """Begins a basic block inside of a batch of loop iterations, with its groups. Those whose
        first access is in `checked` (instructions) have been guarded, and are counted, for the
        whole batch. The batch has no other way in (`single_entry`), so that lane sets which are
        looked up in it hold in all its blocks."""
        self._forget()
        self.cache.sets.begin(single_entry=True)
        self.groups.clear()
        self._slow_paths.clear()
        self.prefetches_lines = False
        for access_group in groups:
            batched = access_group.members[0][0] in checked
            self._add_group(GroupValues(access_group, batched=batched))

    def evaluate(self, access_group: AccessGroup) -> GroupValues:
        """Emits the base addresses of a group from its registers as they are now, without a guard,
        and returns the group with them; a batch checks them."""
        group = GroupValues(access_group)
        instruction = self.frame.program.instructions[access_group.members[0][0]]
        self._bases.emit(group, instruction, self.frame.active.mask())
        return group

    def slow_path(self) -> dict[int, ir.Block]:
        """Begins the slow version of a basic block, in which each access is guarded and counted
        separately, and deferred stores have no group, so are done at once. Returns the LLVM blocks
        at which exits enter it, by the instruction that follows; empty if no exit was emitted."""
        self._forget()
        self.cache.sets.begin(single_entry=False)
        # Values of the fast version do not dominate code that is entered from any of its exits:
        # each access gets a group without them, and evaluates its address again.
        groups, self.groups = self.groups, {}
        for index, group in groups.items():
            if group.plan.guard is not Guard.COMPARED:
                self.groups[index] = group.without_values(index)
        return dict(self._slow_paths)

    def masked(self) -> dict[int, ir.Block]:
        """Begins the masked version of a basic block, for warps with lanes off: its groups retain
        their one guard, moves are masked, and deferred stores have no group, so are done one by
        one. Returns the LLVM block at which it is entered, by the instruction that follows; empty
        if the block has none."""
        self._forget()
        self.cache.sets.begin(single_entry=True)
        self.groups.clear()
        for access_group in self._accesses.groups:
            if access_group.plan.guard is not Guard.COMPARED:
                masked = replace(access_group, plan=access_group.plan.in_one_version())
                self._add_group(GroupValues(masked))
        return dict(self._masked)

    def _forget(self) -> None:
        """Resets what holds of code emitted before: no accesses that are still to be counted, no
        pending stores, and no test that all lanes are active."""
        self._awaiting_count.clear()
        self.store_batch.reset()
        self._all_on = False

    def mask(self, group: GroupValues, on: Value) -> Value | None:
        """Returns the mask for the move of an access whose guard holds: `on`, or None on the fast
        path and in batches of loop iterations, where all lanes are active."""
        return None if self.hit_is_certain(group) else on

    def hit_is_certain(self, group: GroupValues) -> bool:
        """Returns true if the code after an access's guard runs only where it holds: the plan's
        exit is the slow version, to which the fast path has branched otherwise, or the whole batch
        of loop iterations has been checked."""
        return group.batched or group.plan.exit is Exit.SLOW_VERSION

    def check(self, index: int, group: GroupValues, instruction: Instruction, on: Value) -> Value:
        """Emits the guard of a group at its first access, stores it in `group.hit`, and returns
        whether it holds, an i1; at later accesses returns that result. It is constant true in
        batches, which have been checked, and on the fast path. There the guard is an exit to the
        slow version, taken on a miss, after an exit to the masked version, taken with lanes off, if
        the block gets one. Elsewhere a miss first fills the range cache, but in a slow version only
        at the group's first member."""
        if group.hit is None:
            is_strided = self._bases.emit(group, instruction, on)
            if group.batched:
                group.hit = ir.Constant(I1, 1)
            elif self.hit_is_certain(group):
                if not self._all_on and instruction.guard is None and self._has_masked():
                    self._exit_masked(index, on)
                self._exit_unless(index, self._fast_path_holds(group, instruction, on))
                group.hit = ir.Constant(I1, 1)
                self._store_miss(group, group.hit)
            elif group.separate_member in (None, group.members[0][0]):
                group.hit = self._hit_or_fill(group, instruction, on, is_strided)
                self._store_miss(group, group.hit)
            else:
                group.hit = self._member_hit(group, instruction, on, is_strided)
        assert group.hit is not None
        return group.hit

    def _hit_or_fill(
        self, group: GroupValues, instruction: Instruction, on: Value, is_strided: Value | None
    ) -> Value:
        """Emits a lookup in the range cache that fills it on a miss, and sets the group's counter,
        by which `count` counts. Returns true (an i1) if the group hits, or the filled entry can
        count the access. `is_strided` (an i1, or None): a condition without which it neither hits
        nor is filled."""
        b, lane_set = self.b, self.cache.sets.of(instruction, on)
        hit = self.cache.hits(group, lane_set)
        miss = b.not_(hit)
        if is_strided is not None:
            hit, miss = b.and_(hit, is_strided), b.and_(miss, is_strided)
        entry, fill, done = b.block, *(b.append_basic_block(n) for n in ("miss", "looked_up"))
        b.cbranch(miss, fill, done).set_weights([1, 1 << 20])
        assert group.counter_key is not None
        _, hit_counter = group.counter_key
        b.position_at_end(fill)
        filled = self.cache.fill(group, lane_set)
        can_count = b.icmp_unsigned("!=", filled, I64(0))
        counter, fill_end = b.sub(filled, I64(1)), b.block
        b.branch(done)
        b.position_at_end(done)
        result, counter_key = b.phi(I1), b.phi(I64)
        for phi, value, origin in (
            (result, hit, entry), (result, can_count, fill_end),
            (counter_key, hit_counter, entry), (counter_key, counter, fill_end),
        ):  # fmt: skip
            phi.add_incoming(value, origin)
        self.cache.set_counter(group, lane_set, counter_key)
        return result

    def _store_miss(self, group: GroupValues, hit: Value) -> None:
        """Stores whether a group's first access missed (the inverse of `hit`) to `miss_flag`, if it
        has further members: these may be emitted in the slow version of the block, which reads
        it."""
        if len(group.members) > 1:
            self.b.store(self.b.not_(hit), group.miss_flag)

    def _member_hit(
        self, group: GroupValues, instruction: Instruction, on: Value, is_strided: Value | None
    ) -> Value:
        """Returns true (an i1) if a later member of a group, guarded separately in a slow version,
        hits, and the group's first access did. Nothing is filled."""
        hit = self.cache.hits(group, self.cache.sets.of(instruction, on))
        hit = hit if is_strided is None else self.b.and_(hit, is_strided)
        # A hit is counted as a difference from the first member's count, so that one must have been
        # counted in the same entry.
        return self.b.and_(hit, self.b.not_(self.b.load(group.miss_flag, typ=I1)))

    def _fast_path_holds(self, group: GroupValues, instruction: Instruction, on: Value) -> Value:
        """Returns true (an i1) if the fast path can continue: the group hits in the full warp's
        entry, all lanes execute the access, and its addresses are disjoint from pending stores.
        Once an access without a predicate has tested the lanes, only those with one test them
        again."""
        b = self.b
        # The lookup by the full lane set needs no hash of the mask; that the mask is full is a
        # separate condition, tested once in a block.
        holds = self.cache.hits(group, self.cache.sets.full_warp())
        if not self._all_on or instruction.guard is not None:
            holds = b.and_(holds, b.icmp_unsigned("==", self.lanes.bits(on), I32(-1)))
            self._all_on = self._all_on or instruction.guard is None
        disjoint = self.store_batch.disjoint(group)
        return holds if disjoint is None else b.and_(holds, disjoint)

    def _exit_unless(self, index: int, holds: Value) -> None:
        """Emits the exit to the slow version before instruction `index`, taken unless `holds` (an
        i1): it performs pending stores, counts the accesses so far, and enters at a new LLVM block
        that `slow_path` returns."""
        b, onward, miss = self.b, *(self.b.append_basic_block() for _ in range(2))
        b.cbranch(holds, onward, miss).set_weights(RARELY)
        # Entered in the middle: at this instruction, not at the block's begin, since those before
        # it have had their effects.
        self._slow_paths[index] = b.append_basic_block(f"slow_path{index}")
        b.position_at_end(miss)
        self.exit_fast_path()
        b.branch(self._slow_paths[index])
        b.position_at_end(onward)

    def _has_masked(self) -> bool:
        """Returns true if the block gets a masked version. Some group guarded by the affine range
        cache (CACHE) must have several accesses, which the slow version would check one by one. As
        code enters the masked version only at the first guard, no exit to the slow version must
        have been emitted, and no access that is still to be counted."""
        groups = [group for group in self._accesses.groups if group.plan.guard is Guard.CACHE]
        shared = any(len(group.members) > 1 for group in groups)
        return shared and not (self._awaiting_count or self._slow_paths)

    def _exit_masked(self, index: int, on: Value) -> None:
        """Emits the exit to the masked version before instruction `index`, the first access of a
        block, taken if some lanes are off, and stores its entry for `masked`. After it, all lanes
        are active."""
        b, onward = self.b, self.b.append_basic_block()
        self._masked[index] = b.append_basic_block(f"masked{index}")
        all_on = b.icmp_unsigned("==", self.lanes.bits(on), I32(-1))
        b.cbranch(all_on, onward, self._masked[index]).set_weights(SOMETIMES)
        b.position_at_end(onward)
        self._all_on = True

    def batch_store(
        self, index: int, group: GroupValues, instruction: Instruction, on: Value
    ) -> None:
        """Begins the batch of a group's deferred stores at the first of them: emits an exit to the
        slow version. It is not taken if all lanes are active, all stores can be deferred to the
        last one (`StoreBatch.begin`), and the loads between the first and the last store are
        disjoint from them. Loads whose group has not been evaluated yet are compared in the guards
        of these. Does nothing at later stores."""
        if index != group.members[0][0]:
            return
        b, address = self.b, instruction.operands[0]
        assert isinstance(address, Address)
        assert isinstance(address.base, Register)
        holds = self.store_batch.begin(group, self.memory.operands.read(address.base, unsigned(64)))
        holds = b.and_(holds, b.icmp_unsigned("==", self.lanes.bits(on), I32(-1)))
        loads = map(self.groups.__getitem__, group.accesses.crossed)
        # Loads between the first and the last store: those emitted before are compared here, later
        # ones in their own guards.
        for crossed in {id(load_group): load_group for load_group in loads}.values():
            disjoint = self.store_batch.disjoint(crossed) if crossed.hit is not None else None
            holds = holds if disjoint is None else b.and_(holds, disjoint)
        self._exit_unless(index, holds)
        self._all_on = True

    def count(self, index: int, group: GroupValues) -> None:
        """Counts an access that hits, in the range cache: for all members once, at the group's last
        one (earlier ones are noted for exits before it); in a slow version each on its own; not in
        batches of loop iterations, which count at their end."""
        if group.batched:
            return
        if group.separate_member is not None:
            self.cache.count_separately(group, index)
            return
        if index != group.members[-1][0]:
            self._awaiting_count[index] = group
            return
        self._awaiting_count = {
            i: awaiting for i, awaiting in self._awaiting_count.items() if awaiting is not group
        }
        self.cache.count(group, I64(1))

    def exit_fast_path(self) -> None:
        """Emits, on an exit in the middle of a block, the pending stores, and counts the executed
        accesses of groups that have hit but whose last member, which counts, comes later. The
        emitter's own state stays, as the fast path continues after the exit."""
        self.store_batch.flush()
        groups = {id(group): group for group in self._awaiting_count.values()}
        for group in groups.values():
            assert group.hit is not None
            with self.b.if_then(group.hit):
                self.cache.count(group, I64(1))
                for index, _ in group.members:
                    if index not in self._awaiting_count:
                        # The entry counts whole groups: subtract the members after this exit, which
                        # are not executed here; the slow version counts them.
                        self.cache.uncount(group, index)
