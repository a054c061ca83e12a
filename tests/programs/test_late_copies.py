"""`cp.async`, bulk copies, `st.async` and `red.async` complete when a thread waits for them, where
the order is adversarial, and at once by default (PTX ISA, "Asynchronous operations")."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ["compiled", "reference"]

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
  .shared .align 128 .b8 tile[2048];
  .shared .align 8 .b64 bar;
  .reg .b64 %in, %out, %from, %to, %state; .reg .b32 %t, %at, %other, %v, %four, %b; .reg .pred %p;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
  cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;
  mov.u32 %t, %tid.x; shl.b32 %four, %t, 2; cvt.u64.u32 %from, %four;
  add.u64 %to, %out, %from; add.u64 %from, %in, %from;
  mov.u32 %at, tile; add.u32 %at, %at, %four; mov.u32 %b, bar;
  mov.b32 %v, 7; st.shared.b32 [%at], %v; st.shared.b32 [%at + 512], %v; bar.sync 0;
"""
TAIL = "st.global.b32 [%to], %v; ret; }"
COPY = "cp.async.ca.shared.global [%at], [%from], 4;"
COMMIT = "cp.async.commit_group;"
READ = "ld.shared.b32 %v, [%at];"

OLD = np.full(64, 7, np.int32)
NEW = np.arange(1, 65, dtype=np.int32)


def left(body: str, engine: str, schedule: str, threads: int = 64) -> np.ndarray:
    """Returns what threads store, given NEW at `in`; `tile` holds OLD before."""
    kernel = wl.Device("h100", engine=engine).compile(HEAD + body + TAIL, "ptx")["k"]
    out = np.zeros(64, np.int32)
    kernel[1, threads](NEW.copy(), out, schedule=schedule)
    return out


WAITED = {
    "wait_all": f"{COPY} cp.async.wait_all; {READ}",
    "wait_group": f"{COPY} {COMMIT} cp.async.wait_group 0; {READ}",
    "a later group": f"{COPY} {COMMIT} {COMMIT} cp.async.wait_group 1; {READ}",
    "an mbarrier": "setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%b], 64; bar.sync 0;"
    f"{COPY} cp.async.mbarrier.arrive.noinc.shared.b64 [%b];"
    "L: mbarrier.test_wait.parity.shared.b64 %p, [%b], 0; @!%p bra L;" + READ,
}
TOO_EARLY = {
    "no wait": f"{COPY} {COMMIT} {READ}",
    "a group too many": f"{COPY} {COMMIT} cp.async.wait_group 1; {READ}",
    "not committed": f"{COPY} cp.async.wait_group 0; {READ}",
    "the group behind": f"{COPY} {COMMIT} {COMMIT} cp.async.wait_group 2; {READ}",
    "a barrier only": f"{COPY} {COMMIT} bar.sync 0; {READ}",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WAITED)
def test_copies_that_are_waited_for_are_there(name: str, engine: str) -> None:
    for schedule in ("converge", "adversarial"):
        assert left(WAITED[name], engine, schedule).tolist() == NEW.tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TOO_EARLY)
def test_copies_that_are_not_waited_for_come_late(name: str, engine: str) -> None:
    assert left(TOO_EARLY[name], engine, "converge").tolist() == NEW.tolist()
    assert left(TOO_EARLY[name], engine, "adversarial").tolist() == OLD.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_source_is_read_when_the_copy_completes(engine: str) -> None:
    changed = f"{COPY} mov.b32 %v, 9; st.global.b32 [%from], %v; cp.async.wait_all; {READ}"
    assert left(changed, engine, "adversarial").tolist() == [9] * 64


@pytest.mark.parametrize("engine", ENGINES)
def test_bytes_that_are_not_copied_become_zeros_late(engine: str) -> None:
    """Two of four bytes, of lane 63 none: PTX ISA, cp.async, src-size."""
    some = "mov.b32 %other, 2; setp.eq.u32 %p, %t, 63; @%p mov.b32 %other, 0;"
    copy = f"{some} cp.async.ca.shared.global [%at], [%from], 4, %other;"
    assert left(f"{copy} {READ}", engine, "adversarial").tolist() == OLD.tolist()
    expected = [*NEW[:63], 0]
    assert left(f"{copy} cp.async.wait_all; {READ}", engine, "adversarial").tolist() == expected


BULK = (
    "mov.b32 %v, 5; st.shared.b32 [%at], %v; fence.proxy.async.shared::cta; bar.sync 0;"
    "setp.eq.u32 %p, %t, 0; @!%p bra E; mov.u32 %at, tile;"
    "cp.async.bulk.global.shared::cta.bulk_group [%out], [%at], 256;"
    "cp.async.bulk.commit_group; WAIT E: bar.sync 0;"
    "mov.u32 %at, tile; add.u32 %at, %at, %four; mov.b32 %v, 6; st.shared.b32 [%at], %v;"
    "bar.sync 0; ret; }"
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("wait", "value"), [("", 6), ("cp.async.bulk.wait_group.read 0;", 5)])
def test_a_bulk_store_reads_shared_memory_until_it_is_waited_for(
    wait: str, value: int, engine: str
) -> None:
    kernel = wl.Device("h100", engine=engine).compile(HEAD + BULK.replace("WAIT", wait), "ptx")["k"]
    out = np.zeros(64, np.int32)
    kernel[1, 64](NEW.copy(), out, schedule="converge")
    assert out.tolist() == [5] * 64
    kernel[1, 64](NEW.copy(), out, schedule="adversarial")
    assert out.tolist() == [value] * 64


SENT = (
    "setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [%b], 1;"
    "@%p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 256;"
    "@%p mbarrier.arrive.shared.b64 %state, [%b]; bar.sync 0;"
    "add.u32 %other, %t, 100; "
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%at], %other, [%b]; WAIT"
    "ld.shared.b32 %v, [%at];"
)
LOOK = "L: mbarrier.try_wait.parity.shared.b64 %p, [%b], 0; @!%p bra L;"


@pytest.mark.parametrize("engine", ENGINES)
def test_stores_that_signal_an_mbarrier_come_when_it_is_waited_for(engine: str) -> None:
    sent = [100 + lane for lane in range(64)]
    assert left(SENT.replace("WAIT", LOOK), engine, "adversarial").tolist() == sent
    assert left(SENT.replace("WAIT", LOOK), engine, "converge").tolist() == sent
    assert left(SENT.replace("WAIT", ""), engine, "converge").tolist() == sent
    assert left(SENT.replace("WAIT", ""), engine, "adversarial").tolist() == OLD.tolist()


REDUCED = SENT.replace(
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%at]",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [tile]",
).replace("[%at];", "[tile];")


@pytest.mark.parametrize("engine", ENGINES)
def test_reductions_that_signal_an_mbarrier_come_when_it_is_waited_for(engine: str) -> None:
    """All threads add to one word, of which the first holds 7."""
    total = 7 + sum(100 + lane for lane in range(64))
    for schedule in ("converge", "adversarial"):
        assert left(REDUCED.replace("WAIT", LOOK), engine, schedule).tolist() == [total] * 64
    early = REDUCED.replace("WAIT", "bar.sync 0;")
    assert left(early, engine, "converge").tolist() == [total] * 64
    assert left(early, engine, "adversarial").tolist() == OLD.tolist()


@pytest.mark.parametrize(
    "engine", ["compiled", pytest.param("reference", marks=pytest.mark.nightly)]
)
def test_more_copies_than_are_kept_are_right(engine: str) -> None:
    """Every turn of a loop issues a copy of its own group; the last one is waited for."""
    body = (
        "mov.b32 %other, 0;"
        f"L: {COPY} {COMMIT} add.u32 %other, %other, 1; setp.lt.u32 %p, %other, 700; @%p bra L;"
        f"cp.async.wait_group 0; {READ}"
    )
    assert left(body, engine, "adversarial").tolist() == NEW.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_into_blocks_that_have_ended_are_forgotten(engine: str) -> None:
    kernel = wl.Device("h100", engine=engine).compile(
        HEAD + f"{READ} {COPY} {COMMIT}" + TAIL, "ptx"
    )["k"]
    out = np.zeros(64, np.int32)
    kernel[40, 64](NEW.copy(), out, schedule="adversarial")
    assert out.tolist() == OLD.tolist()


def test_both_engines_count_the_same() -> None:
    counted = []
    for engine in ENGINES:
        kernel = wl.Device("h100", engine=engine).compile(
            HEAD + WAITED["wait_group"] + TAIL, "ptx"
        )["k"]
        run = kernel[2, 64](NEW.copy(), np.zeros(64, np.int32), schedule="random", seed=3)
        counted.append(run.counters)
    assert counted[0] == counted[1]
