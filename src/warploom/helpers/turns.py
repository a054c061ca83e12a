"""Adapts the scheduler (`simt.scheduling`) to compiled code: helpers on plain pointers, by which
kernels choose the next warp and end its turn; compiled by Numba.

`plan`, `slots`, `states` and `contexts` are the arrays of `simt.schedule_layout`; `stride` is the
distance of two contexts in words. In warp order, all warps of a thread block run from barrier to
barrier one after the other in one call of `warp` (`lower.control.warp_order`)."""

from __future__ import annotations

from typing import Any

from numba import carray

from warploom.abi.environment import Slot
from warploom.llvm.lanes import LANES
from warploom.simt import clusters, register_pool, schedule_layout, scheduling
from warploom.simt.block_order import last_block
from warploom.simt.convergence import begin
from warploom.simt.schedule_layout import (
    BARRIER,
    BARRIER_THREADS,
    BARRIER_WAIT,
    CURRENT_BLOCK,
    ENDED,
    FRESH,
    INSTRUCTION,
    NEXT_BLOCK,
    POLICY,
    POSITION,
    RESIDENT,
    RESUME,
    ROUNDS,
    RUNNABLE,
    SLOT,
    SLOTS,
    STATE_WORDS,
    STATUS,
    THREADS,
    WARPS,
)
from warploom.simt.split_policy import CONVERGE
from warploom.simt.warp_table import NONE, table_words

_WARP, _SITE, _START, _OWN_SITE = (
    int(s) for s in (Slot.WARP, Slot.SITE, Slot.START, Slot.OWN_SITE)
)
_TABLE_WORDS = table_words(LANES)

Plan = Slots = States = Contexts = Any
"""Arrays of 64-bit integers, pointers in compiled code: the scheduler's state, the thread block in
each slot, and the scheduler state and the context of each warp in the slots."""


def begin_launch(plan: Plan, slots: Slots) -> int:
    """Initialises the schedule for a launch: all slots are empty, no block is resident
    (`simt.scheduling.start_blocks`); NEXT_BLOCK, the first to begin, is the host's. Returns 0."""
    scheduling.start_blocks(plan, slots)
    return 0


def choose_warp(plan: Plan, slots: Slots, states: States, contexts: Contexts, stride: int) -> int:
    """Begins the next turn: returns the number, in its thread block, of the warp that
    `simt.scheduling.next_warp` selects, whose block the plan then names; DONE if all blocks have
    ended, DEADLOCK if the current block, or all resident ones, can never progress. `stride`: the
    words of a context."""
    count = plan[SLOTS] * plan[WARPS]
    rows = carray(states, (count, STATE_WORDS))
    tables = carray(contexts, (count, stride))
    return scheduling.next_warp(plan, slots, rows, tables)


def end_turn(plan: Plan, state: Any, context: Any, status: int, words: int) -> int:
    """Updates a warp's `state` and the table in its `context` for the `status` with which it
    returned (`simt.scheduling.after_run`). Returns 0.

    At the end of a turn, the registers in the first `words` words of the context, behind the table,
    are digested: equal digests show that a warp spins without a change."""
    digest = 0
    if status == schedule_layout.TURN_END:
        for word in range(_TABLE_WORDS, words):
            # The step of FNV-1a, with its 64-bit prime, on words.
            digest = (digest ^ context[word]) * 1099511628211
    scheduling.after_run(plan, state, context, status, digest)
    return 0


def warp_order_start(plan: Plan, states: States, warp: int) -> int:
    """Returns the resume point of the current block's warps if they can run in warp order, else
    NONE. They can if all warps that have not ended are runnable at one resume point, `warp` is the
    first of them, and the policy is CONVERGE, which leaves the order of warps open. `states` are
    those of the block."""
    start = states[warp * STATE_WORDS + RESUME]
    if plan[POLICY] != CONVERGE:
        return NONE
    for other in range(plan[WARPS]):
        at = other * STATE_WORDS
        if states[at + STATUS] != ENDED:
            runs = states[at + STATUS] == RUNNABLE and states[at + RESUME] == start
            if other < warp or not runs:
                return NONE
    return start


def end_warp_order(
    plan: Plan, environment: Any, states: States, contexts: Contexts, sites: Any, stride: int
) -> int:
    """Writes the states of the block's warps, which warp order does not keep up to date, when a
    call in warp order returns before the end of the block. Returns 0. `states` are those of the
    block, `contexts` their contexts, `stride` words each, `sites` has two words for each site: the
    instruction, and the number of its barrier.

    By the environment, warps before the one that stopped wait at SITE; later ones are runnable at
    START, where the region began (0: they begin, with new tables); the stopped one waits at
    OWN_SITE, or if that is NONE its state is as `end_turn` records it. Warps that have ended stay
    so. The next turn is that of the warp after the stopped one (POSITION).
    """
    stopped, own = environment[_WARP], environment[_OWN_SITE]
    for warp in range(plan[WARPS]):
        at = warp * STATE_WORDS
        if states[at + STATUS] == ENDED or (warp == stopped and own == NONE):
            continue
        if warp > stopped:
            states[at + STATUS] = RUNNABLE
            states[at + RESUME] = environment[_START]
            if environment[_START] == 0:
                live = (1 << min(plan[THREADS] - 32 * warp, 32)) - 1
                begin(carray(contexts, (plan[WARPS], stride))[warp], live, LANES, CONVERGE)
        else:
            site = environment[_SITE] if warp < stopped else own
            states[at + STATUS] = BARRIER_WAIT
            states[at + RESUME] = site
            states[at + INSTRUCTION] = sites[2 * site]
            states[at + BARRIER] = sites[2 * site + 1]
            states[at + BARRIER_THREADS] = 0
    plan[POSITION] = min(stopped + 1, plan[WARPS])
    return 0


def next_in_warp_order(plan: Plan, slots: Slots, states: States) -> int:
    """Begins the next thread block in the slot of one that has ended in warp order: makes it
    current and FRESH, with its warps runnable from their start and their turns counted anew.
    Returns 1; or 0, and changes nothing, if several blocks are resident or none is left to begin,
    so that the scheduler has to choose."""
    if plan[RESIDENT] != 1 or plan[NEXT_BLOCK] >= last_block(plan):
        return 0
    plan[CURRENT_BLOCK] = slots[plan[SLOT]] = plan[NEXT_BLOCK]
    plan[NEXT_BLOCK] += 1
    plan[FRESH] = 1
    plan[POSITION] = plan[ROUNDS] = 0
    for warp in range(plan[WARPS]):
        states[warp * STATE_WORDS + STATUS] = RUNNABLE
        states[warp * STATE_WORDS + RESUME] = 0
    return 1


def cluster_wait(
    plan: Plan,
    slots: Slots,
    states: States,
    contexts: Contexts,
    stride: int,
    warp: int,
    live: int,
    mask: int,
) -> int:
    """Returns 1 if lanes `mask` of warp number `warp` of the current block have to wait at the
    barrier of their cluster, and sets CLUSTER_WAITS in the schedule; else 0, and if all threads
    have arrived, begins the next phase (`simt.clusters.must_wait`). `live`: the warp's lanes that
    have not exited; `stride`: the words of a context."""
    count = plan[SLOTS] * plan[WARPS]
    rows = carray(states, (count, STATE_WORDS))
    tables = carray(contexts, (count, stride))
    own = plan[SLOT] * plan[WARPS] + warp
    return 1 if clusters.must_wait(plan, slots, rows, tables, own, live, mask) else 0


def live_ranks(plan: Plan, slots: Slots) -> int:
    """Returns the ranks of the live blocks of the current block's cluster, one bit for each."""
    return clusters.live_blocks(plan, slots)


def set_registers(plan: Plan, states: States, warp: int, count: int, grows: int) -> int:
    """Sets the registers per thread of a warp of the current block to `count`; returns 0, or the
    error of `simt.register_pool.set_registers` (fewer for `inc`, more for `dec`, or too many in the
    block). `grows`: 1 for `inc`, 0 for `dec`. Without a register count in the kernel's directives
    nothing is set.
    """
    rows = carray(states, (plan[WARPS], STATE_WORDS))
    return register_pool.set_registers(plan, rows, warp, count, grows)
