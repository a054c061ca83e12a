"""Makes autotuners take the first configuration that works, instead of timing all of them.

Times on the host say nothing of a GPU's, so the choice would differ from run to run; and tens of
launches of each configuration take minutes when they are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

EQUAL = 1.0
"""The time of every configuration, in ms: autotuners take the first of the fastest."""

NEVER = float("inf")
"""The time of a configuration that is not run."""

QUANTILES = 3
"""The times of a configuration that Triton's autotuner reads."""


def settle_inductor(benchmarking: Any) -> None:
    """Makes Inductor's module `benchmarking` run nothing for a time."""
    for benchmarker in (benchmarking.TritonBenchmarker, benchmarking.InductorBenchmarker):
        benchmarker.benchmark_gpu = _time_nothing


def _time_nothing(*_args: Any, **_options: Any) -> float:
    return EQUAL


def compile_first_configuration(heuristics: Any) -> None:
    """Makes Inductor compile one configuration of each kernel that it writes. Kernels of the
    program keep theirs: some may not fit the device."""
    all_configurations = heuristics.cached_autotune

    @wraps(all_configurations)
    def first_configuration(
        size_hints: Any, configs: Any, *args: Any, custom_kernel: bool = False, **options: Any
    ) -> Any:
        chosen = configs if custom_kernel else configs[:1]
        options["custom_kernel"] = custom_kernel
        return all_configurations(size_hints, chosen, *args, **options)

    heuristics.cached_autotune = first_configuration


def settle_triton(driver: Any) -> None:
    """Makes Triton's benchmarker run a kernel once."""

    def run_once(
        kernel_call: Callable[[], object], quantiles: tuple[float, ...] = (), **_options: Any
    ) -> list[float] | float:
        kernel_call()
        return [EQUAL] * len(quantiles) if quantiles else EQUAL

    def get_benchmarker(_driver: object) -> Callable[..., list[float] | float]:
        return run_once

    driver.CudaDriver.get_benchmarker = get_benchmarker


def compile_first_that_works(autotuner: Any) -> None:
    """Makes `triton.autotune` compile and run configurations until one works, unless the program
    has given it a function that times them."""
    run_configuration = autotuner.Autotuner._bench

    @wraps(run_configuration)
    def first_that_works(self: Any, *args: Any, **options: Any) -> Any:
        if getattr(self, "_do_bench", None) is not None:
            return run_configuration(self, *args, **options)
        # Each call of the tuned function has a new dictionary of its arguments.
        if getattr(self, "warploom_settled_for", None) is self.nargs:
            return [NEVER] * QUANTILES
        times = run_configuration(self, *args, **options)
        if times[0] == EQUAL:
            self.warploom_settled_for = self.nargs
        return times

    autotuner.Autotuner._bench = first_that_works
