"""PTX programs: legal ones, on which both machines have to agree, and spoilt ones, which have to
end in a result or in an error of Warploom's."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

import hypothesis.strategies as st
import random_programs
import replays
import shaped_programs as shaped
import shaped_runs
import spoilt_programs
import store_batch_programs
import store_batch_runs
from random_schedules import schedules

from fuzzing.cases import Case, Target
from fuzzing.drawing import draw

Run = tuple[str, dict[str, Any]]
"""A text and the options of its runner."""


@cache
def any_programs() -> st.SearchStrategy[Run]:
    """Any instructions under any control flow."""
    options = st.fixed_dictionaries(
        {
            "shape": st.sampled_from([(1, 32), (1, 20), (2, 40), (1, 96)]),
            "seed": st.integers(0, 1 << 32),
            "schedule": schedules().map(asdict),
        }
    )
    return st.tuples(random_programs.kernels(), options)


@cache
def shaped_programs() -> st.SearchStrategy[Run]:
    """Index arithmetic, loops and barriers that the compiled engine treats separately."""
    short = [None, shaped.strided_chains(), shaped.predicated_blocks(), shaped.masked_loops()]
    kinds = [
        *((shaped.shaped_kernels(body), shaped_runs.BLOCKS) for body in short),
        (shaped.shaped_kernels(shaped.empty_warp_laps()), shaped_runs.LONG_BLOCKS),
        (shaped.warp_loop_kernels(), shaped_runs.LONG_BLOCKS),
        (shaped.tiled_kernels(), shaped_runs.WIDE),
        (shaped.static_schedule_kernels(), shaped_runs.LONG_BLOCKS),
    ]
    every = [
        st.tuples(
            kernels,
            st.fixed_dictionaries(
                {
                    "block": st.sampled_from(blocks),
                    "blocks": st.sampled_from((2, 3, 5)),
                    "schedule": (shaped_runs.schedules() | schedules()).map(asdict),
                }
            ),
        )
        for kernels, blocks in kinds
    ]
    return st.one_of(*every)


@cache
def store_batches() -> st.SearchStrategy[Run]:
    """Stores of several words a lane, some of them out of bounds."""
    options = st.fixed_dictionaries(
        {
            "runs": st.lists(store_batch_programs.places().map(asdict), min_size=6, max_size=6),
            "block": st.sampled_from(store_batch_runs.BLOCKS),
            "lanes": st.sampled_from([32, 32, 9, 0]),
            "schedule": store_batch_runs.schedules().map(asdict),
        }
    )
    return st.tuples(store_batch_programs.store_batch_kernels(), options)


@cache
def mutated() -> st.SearchStrategy[Run]:
    """Texts that are mostly not legal."""
    engines = st.sampled_from(["reference", "compiled"])
    return st.tuples(spoilt_programs.mutated(), st.fixed_dictionaries({"engine": engines}))


KINDS = {
    "programs": (any_programs, "agree", 4.0),
    "shaped": (shaped_programs, "agree_shaped", 3.0),
    "store_batches": (store_batches, "agree_store_batches", 1.0),
    "ptx": (mutated, "ends", 2.0),
}
"""By target: the strategy, the runner (see `replays`), the share of the processor's time."""


def generate(target: str, seed: int) -> Case:
    """Returns the program of a seed."""
    strategy, runner, _ = KINDS[target]
    text, options = draw(strategy(), seed)
    return Case(target, text, options, runner)


def check(case: Case) -> None:
    """Runs a program. Raises replays.Disagreement, or what a machine raised."""
    assert isinstance(case.content, str)
    replays.RUNNERS[case.runner](case.content, **case.options)


def _target(name: str, weight: float) -> Target:
    return Target(name, lambda seed: generate(name, seed), check, weight)


TARGETS = tuple(_target(name, weight) for name, (_, _, weight) in KINDS.items())
