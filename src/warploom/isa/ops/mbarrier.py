"""Barriers in memory: PTX ISA, "Parallel Synchronization and Communication: mbarrier".

An mbarrier is a word of 64 bits whose layout the manual leaves open. Here, from bit 0 on: the
arrivals that the current phase still waits for, those that each later phase will wait for (20 bits
each), the bytes of transactions that are not complete (21 bits, with sign), a bit that is set while
the mbarrier is valid, and the number of the phase (2 bits). The expected arrivals of a valid one
may be 0, after `mbarrier.arrive_drop` by all. A token is the whole word before an arrival. What
these instructions do to the word is atomic, so they are atomics of this table, and counted as such.
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.asynchronous.mbarrier import (
    COUNT_BITS,
    EXPECTED_AT,
    PHASE_AT,
    TX_AT,
    TX_BITS,
    VALID_AT,
)
from warploom.core.types import PRED, U32, U64
from warploom.isa.kinds import OpKind
from warploom.isa.preconditions import COUNT, INITIALIZED
from warploom.isa.spec import ALWAYS, Modifiers, Semantics, Since, Unit, declare, decode, op
from warploom.isa.terms import Term, constant, eq, ne, select, shift_left, shift_right, truncate

SPACES = ("shared", "shared::cta", "shared::cluster")
SCOPES = ("cta", "cluster")
RELEASES = {"sem": ("release", "relaxed"), "scope": SCOPES}
ACQUIRES = {"sem": ("acquire", "relaxed"), "scope": SCOPES}
PREFIX = "{.sem}{.scope}{.space}"
ARRIVALS = ("arrive", "arrive_drop")


def form(
    syntax: str,
    src: str,
    ops: tuple[str, ...],
    dst: str = "",
    kind: OpKind = OpKind.MBARRIER,
    since: Since = ALWAYS,
    /,
    needs: tuple[str, ...] = (INITIALIZED.name,),
    **choices: tuple[str, ...],
) -> Callable[[Semantics], Semantics]:
    """Declares one syntax line: what it does to the word, and what it gives besides the word."""
    choices |= {"op": ops, "space": SPACES, "type": ("b64",)}
    return op(syntax, kind, since, dst=dst, src=src, unit=Unit.ATOMIC, needs=needs, **choices)


def _up(value: Term, bits: int) -> Term:
    """Returns `value`, shifted left by `bits`."""
    return shift_left(value, constant(bits, U32))


def _down(value: Term, bits: int) -> Term:
    """Returns `value`, shifted right by `bits`."""
    return shift_right(value, constant(bits, U32))


def _field(word: Term, at: int, bits: int) -> Term:
    """Returns the field of `bits` bits of a word from bit `at` on."""
    return _down(word, at) & ((1 << bits) - 1)


def _with(word: Term, at: int, bits: int, value: Term) -> Term:
    """Returns the word with another value in a field, modulo the field's width."""
    inside = (1 << bits) - 1
    return (word & ~(inside << at)) | _up(value & inside, at)


def _added(word: Term, at: int, bits: int, amount: Term) -> Term:
    """Returns a word with `amount` added to that field, modulo 2^bits."""
    return _with(word, at, bits, _field(word, at, bits) + amount)


def _settled(word: Term) -> Term:
    """Returns the word with the next phase begun, where nothing is pending any more."""
    expected = _field(word, EXPECTED_AT, COUNT_BITS)
    fresh = _with(word, 0, COUNT_BITS, expected) + (1 << PHASE_AT)
    transactions = _field(word, TX_AT, TX_BITS)
    return select(eq(_field(word, 0, COUNT_BITS) | transactions, 0), fresh, word)


def _arrived(m: Modifiers, word: Term, count: Term) -> Term:
    """Returns the word after `count` arrivals, which with `arrive_drop` are expected no more."""
    if m["op"] == "arrive_drop":
        word = _added(word, EXPECTED_AT, COUNT_BITS, -count)
    return _settled(_added(word, 0, COUNT_BITS, -count))


LAYOUTS = Since((9, 3), (9, 0))
"""Since when there are layouts of mbarriers. Those of layout v1 hold reports of copies, which are
not modelled (`isa.ops.absent`): all here are of layout v0."""

# ---- life ---------------------------------------------------------------------------------------


@form(
    "mbarrier.op{.space}.type",
    "a:address, count:u32",
    ("init",),
    "",
    OpKind.MBARRIER_INIT,
    needs=(COUNT.name,),
)
@form(
    "mbarrier.op.layout::v0{.space}.type",
    "a:address, count:u32",
    ("init",),
    "",
    OpKind.MBARRIER_INIT,
    LAYOUTS,
    needs=(COUNT.name,),
)
def init(_: Modifiers, word: Term, count: Term) -> Term:
    """[a] = an mbarrier that expects count arrivals per phase      PTX ISA: mbarrier.init"""
    return _up(count, EXPECTED_AT) | count | (1 << VALID_AT)


@form("mbarrier.op{.space}.type", "a:address", ("inval",))
def inval(_: Modifiers, word: Term) -> Term:
    """makes the memory of the mbarrier at [a] available for other uses   PTX ISA: mbarrier.inval"""
    return word & 0


@form(
    "mbarrier.op.layout{.space}.type",
    "a:address",
    ("check_layout",),
    "p:pred",
    OpKind.MBARRIER,
    LAYOUTS,
    layout=("layout::v0", "layout::v1"),
)
def check_layout(m: Modifiers, word: Term) -> tuple[Term, Term]:
    """p = whether the mbarrier at [a] has this layout            PTX ISA: mbarrier.check_layout"""
    return word, constant(int(m["layout"] == "layout::v0"), PRED)


# ---- arrivals and transactions ------------------------------------------------------------------


@form(f"mbarrier.op{PREFIX}.type", "a:address, count:u32?", ARRIVALS, "state:type", **RELEASES)
@form(
    f"mbarrier.op.noComplete{PREFIX}.type",
    "a:address, count:u32",
    ARRIVALS,
    "state:type",
    **RELEASES,
)
def arrive(m: Modifiers, word: Term, count: Term | None = None) -> Term:
    """arrives at [a] count times (default: once); state = a token     PTX ISA: mbarrier.arrive"""
    return _arrived(m, word, constant(1, U64) if count is None else count)


@form(
    f"mbarrier.op.expect_tx{PREFIX}.type",
    "a:address, bytes:u32",
    ARRIVALS,
    "state:type",
    **RELEASES,
)
def arrive_expecting(m: Modifiers, word: Term, amount: Term) -> Term:
    """increases the number of bytes that [a] expects, then arrives; state = a token
    PTX ISA: mbarrier.arrive"""
    return _arrived(m, _added(word, TX_AT, TX_BITS, amount), constant(1, U64))


@form(
    f"mbarrier.op{PREFIX}.type",
    "a:address, bytes:u32",
    ("expect_tx", "complete_tx"),
    sem=("relaxed",),
    scope=SCOPES,
)
def transact(m: Modifiers, word: Term, amount: Term) -> Term:
    """increases the number of bytes that [a] expects, or reports bytes as complete
    PTX ISA: mbarrier.expect_tx, complete_tx"""
    change = amount if m["op"] == "expect_tx" else -amount
    return _settled(_added(word, TX_AT, TX_BITS, change))


COMPLETE_TX = decode("mbarrier.complete_tx.shared::cta.b64")
"""What a copy or a store does to the mbarrier that it names, with the bytes that it moved."""


@form(
    "cp.async.mbarrier.op{.space}.type",
    "a:address",
    ("arrive",),
    "",
    OpKind.COPY_ARRIVE,
)
def arrive_behind_copies(_: Modifiers, word: Term) -> Term:
    """arrives at [a] when earlier copies are complete; first increments the pending count, so
    the arrival leaves the count unchanged   PTX ISA: cp.async.mbarrier.arrive. A copy is complete
    when the next instruction begins."""
    return word


@form(
    "cp.async.mbarrier.op.noinc{.space}.type",
    "a:address",
    ("arrive",),
    "",
    OpKind.COPY_ARRIVE,
)
def arrive_behind_expected_copies(m: Modifiers, word: Term) -> Term:
    """arrives at [a] when earlier copies are complete
    PTX ISA: cp.async.mbarrier.arrive. A copy is complete when the next instruction begins."""
    return _arrived(m, word, constant(1, U64))


# ---- waiting ------------------------------------------------------------------------------------

WAITS = ("test_wait", "try_wait")
PHASE_TYPES = Since((9, 3), (9, 0))
"""Since when a wait can name the type of the phase: the primary one is the phase of arrivals,
and in an mbarrier of layout v0 the conditional one completes with it (PTX ISA,
"mbarrier.test_wait")."""


@form(
    f"mbarrier.op{PREFIX}.type",
    "a:address, state:b64, hint:u32?",
    WAITS,
    "p:pred",
    OpKind.MBARRIER_WAIT,
    **ACQUIRES,
)
@form(
    f"mbarrier.op.phase_type::primary{PREFIX}.type",
    "a:address, state:b64, hint:u32?",
    WAITS,
    "p:pred",
    OpKind.MBARRIER_WAIT,
    PHASE_TYPES,
    **ACQUIRES,
)
def wait(_: Modifiers, word: Term, state: Term) -> tuple[Term, Term]:
    """p = whether the token's phase is complete; never waits         PTX ISA: mbarrier.test_wait"""
    return word, ne(_down(word, PHASE_AT), _down(state, PHASE_AT))


@form(
    f"mbarrier.op.parity{PREFIX}.type",
    "a:address, parity:u32, hint:u32?",
    WAITS,
    "p:pred",
    OpKind.MBARRIER_WAIT,
    **ACQUIRES,
)
@form(
    f"mbarrier.op.parity.phase{PREFIX}.type",
    "a:address, parity:u32, hint:u32?",
    WAITS,
    "p:pred",
    OpKind.MBARRIER_WAIT,
    PHASE_TYPES,
    phase=("phase_type::primary", "phase_type::conditional"),
    **ACQUIRES,
)
def wait_parity(_: Modifiers, word: Term, parity: Term) -> tuple[Term, Term]:
    """p = whether the phase of this parity is complete; never waits  PTX ISA: mbarrier.test_wait"""
    return word, ne(_field(word, PHASE_AT, 1), parity & 1)


@op("mbarrier.pending_count.b64", dst="d:u32", src="state:b64", unit=Unit.INTEGER)
def pending_count(_: Modifiers, state: Term) -> Term:
    """d = the number of pending arrivals that the token holds    PTX ISA: mbarrier.pending_count"""
    return truncate(_field(state, 0, COUNT_BITS), U32)


declare(
    "fence.mbarrier_init.release.cluster",
    OpKind.FENCE,
    unit=Unit.MEMORY,
    doc="orders mbarrier.init before later accesses   PTX ISA: membar, fence",
)
