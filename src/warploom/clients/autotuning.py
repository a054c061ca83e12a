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
    """Makes `triton.autotune` run each configuration once, to find those that do not work."""

    def run_once(
        kernel_call: Callable[[], object], quantiles: tuple[float, ...] = (), **_options: Any
    ) -> list[float] | float:
        kernel_call()
        return [EQUAL] * len(quantiles) if quantiles else EQUAL

    def get_benchmarker(_driver: object) -> Callable[..., list[float] | float]:
        return run_once

    driver.CudaDriver.get_benchmarker = get_benchmarker
