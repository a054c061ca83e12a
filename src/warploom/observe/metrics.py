"""Maps Nsight Compute's metric names to Warploom's counters.

Only metrics with the same meaning are mapped: how a warp's memory accesses are split into requests,
sectors and wavefronts. Metrics of machine (SASS) instructions are not, since Warploom counts PTX
instructions. Source: Nsight Compute documentation, "Metrics Reference" and "Metrics Decoder".
"""

from __future__ import annotations

from difflib import get_close_matches

from warploom.core.errors import WarploomError

_OPS = {"ld": "load", "st": "store"}


def _table() -> dict[str, str]:
    """Returns the counter of each metric."""
    table: dict[str, str] = {}
    for short, op in _OPS.items():
        for space in ("global", "local"):
            pipe = f"pipe_lsu_mem_{space}_op_{short}.sum"
            table[f"l1tex__t_requests_{pipe}"] = f"{space}_{op}_requests"
            table[f"l1tex__t_sectors_{pipe}"] = f"{space}_{op}_sectors"
        for space in ("global", "local", "shared"):
            table[f"smsp__inst_executed_op_{space}_{short}.sum"] = f"{space}_{op}_requests"
        table[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{short}.sum"] = (
            f"shared_{op}_wavefronts"
        )
        table[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{short}.sum"] = (
            f"shared_{op}_bank_conflicts"
        )
    return table


METRICS = _table()
"""The counter of each metric."""

_NAMES = {counter: metric for metric, counter in reversed(METRICS.items())}


def metric_of(counter: str) -> str | None:
    """Returns the Nsight Compute metric that means the same as a counter, None if there is none."""
    return _NAMES.get(counter)


OF_MACHINE_INSTRUCTIONS = {
    "smsp__inst_executed.sum": "warp_instructions",
    "smsp__thread_inst_executed.sum": "thread_instructions",
    "smsp__thread_inst_executed_pred_on.sum": "thread_instructions_predicated_on",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "average_active_lanes",
}
"""Metrics of machine instructions, and the counter of the corresponding PTX instructions."""


def counter_of(metric: str) -> str:
    """Returns the counter of a metric. Raises WarploomError if there is none."""
    if metric in METRICS:
        return METRICS[metric]
    if metric in OF_MACHINE_INSTRUCTIONS:
        raise WarploomError(
            f"{metric} counts machine instructions, which are not executed here; the counter "
            f"{OF_MACHINE_INSTRUCTIONS[metric]} is the equivalent for PTX instructions."
        )
    similar = get_close_matches(metric, METRICS, n=3)
    hint = f"Similar: {', '.join(similar)}." if similar else f"Known: {', '.join(METRICS)}."
    raise WarploomError(f"no counter corresponds to the metric {metric!r}. {hint}")
