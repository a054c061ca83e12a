"""Checks the kinds of operations: each has syntax, and a handler wherever it is executed."""

from __future__ import annotations

import warploom.isa.ops  # noqa: F401  declares all operations
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import FORMS, decode
from warploom.lower.instructions import WITH_RESULTS, WITHOUT_RESULTS
from warploom.machine.reference.control import CONTROL
from warploom.machine.reference.warp import EXECUTE

DECLARED = {spec.kind for forms in FORMS.values() for spec in forms}
HIDDEN = {OpKind.WARP_GROUP_BARRIER, OpKind.REGISTER_WAIT, OpKind.ABSENT}
"""The first has no syntax: a barrier that is put after each wait for products of a warp group. The
second has no syntax that runs: what a module is refused for."""

REPLACED = {kind for kind in OpKind if kind.has(Effect.MOVES_STACK)} | {
    OpKind.MULTICAST_ACCESS,
    OpKind.ABSENT,
}
"""Become other instructions when a program is built, or are refused before."""

ENDS = {kind for kind in OpKind if kind.has(Effect.ENDS_BASIC_BLOCK)}
ISSUED = {kind for kind in OpKind if kind.has(Effect.ISSUE_ONLY)}


def test_every_kind_has_syntax_but_the_hidden_ones() -> None:
    assert set(OpKind) - DECLARED == HIDDEN


def test_the_interpreter_has_a_handler_for_every_kind() -> None:
    assert set(OpKind) - set(EXECUTE) - set(CONTROL) - REPLACED - ISSUED == set()


def test_compiled_code_has_an_emitter_for_every_kind_that_ends_no_basic_block() -> None:
    emitted = set(WITH_RESULTS) | set(WITHOUT_RESULTS)
    assert set(OpKind) - emitted - ENDS - REPLACED - ISSUED == set()


def test_no_kind_has_two_handlers() -> None:
    assert not set(WITH_RESULTS) & set(WITHOUT_RESULTS)
    assert not set(EXECUTE) & set(CONTROL)


def test_kinds_follow_the_manual() -> None:
    """PTX ISA: each of these is a section of its own, or a form that does something else."""
    kinds = {
        "ldu.global.u32": OpKind.LOAD,
        "st.bulk.shared::cta": OpKind.FILL,
        "red.global.add.u32": OpKind.REDUCTION,
        "bar.warp.sync": OpKind.WARP_BARRIER,
        "barrier.cluster.wait": OpKind.CLUSTER_BARRIER,
        "cp.async.wait_all": OpKind.COPY_WAIT,
        "cp.async.bulk.wait_group": OpKind.COPY_WAIT,
        "cp.async.mbarrier.arrive.b64": OpKind.COPY_ARRIVE,
        "mbarrier.try_wait.b64": OpKind.MBARRIER_WAIT,
        "membar.gl": OpKind.FENCE,
        "fence.sc.gpu": OpKind.FENCE,
        "setp.lt.s32": OpKind.COMPARE,
        "set.lt.u32.s32": OpKind.COMPUTE,
    }
    assert {text: decode(text).kind for text in kinds} == kinds
