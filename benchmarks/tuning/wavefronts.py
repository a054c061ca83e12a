"""Holds wavefronts of shared memory in a convolution against the counts that KTT published.

    python benchmarks/tuning/wavefronts.py PATH --nvrtc DIR

PATH is a clone of https://github.com/AutoTuningAssociation/benchmark_hub (`sample.py`), DIR has the
NVRTC of another release (`compiler.py`). Prints wavefronts of loads in configurations of
`spaces.json`; then of all published ones the largest share of the peak that wavefronts have, and
how many have another number of wavefronts with `use_padding`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from compiler import Compiler
from ktt import Result, results
from measure import Configuration, cases
from published import SPACES, Device, compiled

LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SHARE = "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed"
PARAMETERS = {
    "block_size_x": "BLOCK_SIZE_X",
    "block_size_y": "BLOCK_SIZE_Y",
    "read_only": "READ_ONLY",
    "tile_size_x": "TILE_SIZE_X",
    "tile_size_y": "TILE_SIZE_Y",
    "use_padding": "PADDING",
}
"""KTT's names of the parameters; padding is the last."""

ALIKE = 0.02
"""Numbers of wavefronts that differ by less are the same: launches of one kernel do."""

Key = tuple[int, ...]


def counted(configuration: Configuration, compiler: Compiler | None) -> float:
    """Return the wavefronts of loads of the published launch, all of whose blocks load alike."""
    space, gpu = SPACES["convolution"], Device("rtx-2080-ti")
    (part,) = space.parts(configuration)
    kernel = compiled(space, gpu, configuration, compiler)
    run = kernel[1, space.block(configuration)](*space.arguments(gpu, 0, 0))
    return run.metric(LOADS) * part.grid[0] * part.grid[1]


def with_padding(known: dict[Key, Result]) -> tuple[int, int]:
    """Return how many configurations ran with and without padding, and in how many of them the
    number of wavefronts differs."""
    pairs = [(known[key], known[(*key[:-1], 1)]) for key in known if (*key[:-1], 1) != key]
    ratios = [two.counters[LOADS] / one.counters[LOADS] for one, two in pairs]
    return len(ratios), sum(abs(ratio - 1) > ALIKE for ratio in ratios)


def report(known: dict[Key, Result], tried: Sequence[Configuration], nvrtc: Path | None) -> None:
    """Print the comparison, and what all published configurations show."""
    compiler = None if nvrtc is None else Compiler(nvrtc)
    for one in tried:
        theirs = known[tuple(one[name] for name in PARAMETERS)].counters[LOADS]
        ours = counted(one, compiler)
        print(
            f"{[*one.values()]}: {theirs:,.0f} published, {ours:,.0f} counted"
            f" ({100 * (ours / theirs - 1):+.1f} %)"
        )
    most = max(result.counters[SHARE] for result in known.values())
    pairs, others = with_padding(known)
    print(f"at most {most:.1f} % of the peak in {len(known):,} configurations")
    print(f"use_padding changes the number of wavefronts in {others} of {pairs:,} pairs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--nvrtc", type=Path)
    asked = parser.parse_args()
    found = results(asked.path, "Convolution")
    known = {tuple(one.parameters[name] for name in PARAMETERS.values()): one for one in found}
    case = next(case for case in cases() if case.space == "convolution")
    report(known, case.configurations, asked.nvrtc)


if __name__ == "__main__":
    main()
