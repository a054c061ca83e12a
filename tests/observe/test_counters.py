"""Checks counters derived from a tally that is filled by hand: names, sums, lines, units, and
Nsight Compute's metrics."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.core.errors import WarploomError
from warploom.cost.fields import FIELDS
from warploom.isa.instruction import Space
from warploom.machine.tally import Tally
from warploom.observe.counters import Counters
from warploom.observe.metrics import METRICS
from warploom.program.build import build
from warploom.ptx.parser import parse

PTX = """
.version 8.0
.target sm_75
.address_size 64
.const .align 4 .b32 scale;
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  .shared .align 4 .b8 tile[128];
  .loc 1 10 1
  ld.param.u64 %rd1, [p];
  ld.const.u32 %r5, [scale];
  .loc 1 11 1
  ld.global.u32 %r1, [%rd1];
  st.shared.u32 [tile], %r1;
  bar.sync 0;
  .loc 1 12 1
  setp.eq.s32 %p1, %r1, 0;
  @%p1 bra DONE;
  .loc 1 11 1
  atom.global.add.u32 %r2, [%rd1], 1;
DONE:
  .loc 1 13 1
  bar.warp.sync 0xffffffff;
  ret;
  .file 1 "k.cu"
}
"""

WARPS = [4, 4, 4, 4, 4, 4, 4, 3, 4, 4]
LOAD_PARAM, LOAD_CONST, LOAD, STORE_SHARED, BARRIER, SETP, BRANCH, ATOMIC, WARP_SYNC, RETURN = (
    range(10)
)


def made() -> Counters:
    """Returns the counters of four full warps; one of them skips the atomic, another diverges at
    the branch."""
    tally = Tally.empty(build(parse(PTX, "k.ptx"), "k"), launched_warps=4)
    tally.warps[:] = WARPS
    tally.threads[:] = np.array(WARPS) * 32
    tally.threads[ATOMIC] = 2 * 32 + 8
    tally.threads_on[:] = tally.threads
    tally.threads_on[BRANCH] = 56
    tally.divergent[BRANCH] = tally.reconvergences[BRANCH] = 1
    rows = {(row.instruction, row.space): i for i, row in enumerate(tally.access_records)}
    costs = {
        (LOAD, Space.GLOBAL): {"requests": 4, "sectors": 16, "bytes_requested": 512},
        (STORE_SHARED, Space.SHARED): {"requests": 4, "wavefronts": 12, "bank_conflicts": 8},
        (ATOMIC, Space.GLOBAL): {"requests": 3, "sectors": 3, "passes": 72},
        (LOAD_CONST, Space.CONST): {"requests": 4, "transactions": 4, "passes": 4},
    }
    for key, fields in costs.items():
        for field, value in fields.items():
            tally.accesses[rows[key], FIELDS.index(field)] = value
    return Counters(tally)


def test_instructions_and_control() -> None:
    counters = made()
    assert counters.warp_instructions == 39
    assert counters.thread_instructions == 36 * 32 + 72
    assert counters.thread_instructions_predicated_on == 32 * 32 + 72 + 56
    assert counters.branches == 4
    assert (counters.divergent_branches, counters.reconvergences) == (1, 1)
    assert counters.barriers == 4  # bar.sync, and not bar.warp.sync
    assert counters.average_active_lanes == pytest.approx((36 * 32 + 72) / 39)


def test_memory() -> None:
    counters = made()
    assert counters.global_load_sectors == 16
    assert counters["global_load_bytes_requested"] == 512
    assert counters.global_store_requests == 0
    assert (counters.shared_store_wavefronts, counters.shared_store_bank_conflicts) == (12, 8)
    assert counters.constant_load_transactions == 4
    assert (counters.atomic_requests, counters.atomic_passes) == (3, 72)
    assert counters.global_atomic_sectors == 3


def test_classes_sum_to_all_instructions() -> None:
    units = made().instructions_by_unit
    assert units["barrier"] == 4
    assert sum(units.values()) == 39


def test_lines_gather_their_instructions_and_sum_to_the_kernel() -> None:
    counters = made()
    lines = counters.by_line()
    assert list(lines) == ["k.cu:10", "k.cu:11", "k.cu:12", "k.cu:13"]
    assert lines["k.cu:11"].warp_instructions == 4 + 4 + 4 + 3
    assert lines["k.cu:12"].divergent_branches == 1
    for name, total in counters.items():
        assert sum(line[name] for line in lines.values()) == total


def test_instructions_stand_in_program_order() -> None:
    counters = made()
    each = counters.by_instruction()
    assert [one.warp_instructions for one in each] == WARPS
    assert each[ATOMIC].atomic_passes == 72
    assert each[ATOMIC].instructions_by_unit == {"atomic": 3}


def test_metrics_are_nsight_computes() -> None:
    counters = made()
    assert counters.metric("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") == 16
    assert counters.metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum") == 8
    assert set(METRICS.values()) <= set(counters)


def test_metrics_that_do_not_correspond_say_why() -> None:
    counters = made()
    with pytest.raises(WarploomError, match=r"machine instructions.*warp_instructions"):
        counters.metric("smsp__inst_executed.sum")
    with pytest.raises(WarploomError, match=r"op_ld\.sum"):
        counters.metric("l1tex__t_sectors_pipe_lsu_mem_global_op_load.sum")


def test_a_counter_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="register_load_sectors"):
        _ = made().register_load_sectors
    assert "register_load_sectors" not in made()
