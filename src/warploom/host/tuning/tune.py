"""Tuning: one launch in many configurations, each counted and timed on a model of its device.

What a space is and what is made of the costs is for `warploom.tuning`. Trials are spread over
processes or a Dask cluster, and kept in a file as they end, so that a tuning can go on later.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from warploom.core.errors import WarploomError
from warploom.core.input_files import reading
from warploom.core.options import checked
from warploom.core.values import OneOf
from warploom.devices.catalog import find_device
from warploom.host.buffer import Buffer
from warploom.host.core_files import SUFFIX
from warploom.host.exploration.spread import spread
from warploom.host.option_types import Bytes, Count, Positive, Workers
from warploom.host.programs.sources import source_of
from warploom.host.tuning.trial import SAVED, TuneJob, tried
from warploom.host.tuning.trials import TrialFile
from warploom.timing.layout import SCHEDULERS
from warploom.tuning.measured import MeasuredTimes, read_measured
from warploom.tuning.restrictions import Restriction
from warploom.tuning.result import Tuned, check_objectives
from warploom.tuning.space import (
    AXES,
    Configuration,
    Division,
    compiler_options,
    configurations,
    plain,
)
from warploom.tuning.trial import About, Trial

Shape = int | str | Sequence[int]


@checked("tune(...)")
def tune(
    source: str | Path,
    kernel: str | None,
    space: Mapping[str, Sequence[Any]],
    *args: Any,
    restrictions: Sequence[Restriction] = (),
    problem_size: int | Sequence[int] = (),
    grid_div_x: Sequence[str] = (),
    grid_div_y: Sequence[str] = (),
    grid_div_z: Sequence[str] = (),
    block_size_names: Sequence[str] = AXES,
    grid: Shape = 1,
    block: Shape = 32,
    shared: Bytes = 0,
    device: str | None = None,
    options: Sequence[str] = (),
    objectives: Sequence[str] = ("seconds", "dram_bytes"),
    scheduler: Annotated[str, OneOf(SCHEDULERS)] | None = None,
    sample: Positive | None = None,
    max_instructions: Count | None = None,
    cooperative: bool = False,
    workers: Workers = 1,
    cluster: str | None = None,
    cache: str | Path | None = None,
    measured: MeasuredTimes | None = None,
    stop_early: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Tuned:
    """Launches a kernel in every configuration of a space; what each costs, and which is best.

    `source` is a file, or a text of CUDA C++ (with a line break in it), or a core file, whose
    launch has its arguments and can be tuned in block, grid, shared and device alone. `space` has
    the values of each parameter, as Kernel Tuner's `tune_params` does; `warploom.tuning.space` has
    the names that shape the launch, and all others are macros of the source. `args` are host arrays
    and numbers; every trial begins with the same content, and none of it is changed. With
    `problem_size` (threads in each dimension) the grid follows the block; else it is `grid`.
    `grid_div_x`, `_y`, `_z` and `block_size_names` are Kernel Tuner's: expressions of the
    parameters, by whose product the problem is divided, and the parameters that are the block.
    `grid`, `block`, `shared` and `device` count where the space does not say; shapes are
    numbers, tuples or texts such as "16x8". `scheduler` and `sample` are those of `Run.time`; with
    `sample` only so many blocks are executed as are needed to replay so many waves: it takes a
    fraction of the time, and what goes wrong in later blocks is not seen.

    A configuration counts where all `restrictions` hold: expressions of the parameters such as
    "block_size_x * TILE <= 1024", or functions that are given it as a dictionary, as Kernel Tuner
    has them.

    `objectives` are costs to be minimized (`warploom.tuning.result.OBJECTIVES`), the first of them
    ranks. `workers` processes share the trials (with more than one the main module must be one
    that can be imported), or the workers of the Dask scheduler at `cluster`. Trials that ran are
    kept in the file `cache`, as lines of JSON, and not run again.

    `measured` are seconds on hardware, by configuration or in a file of Kernel Tuner
    (`warploom.tuning.measured`): they correct what is modelled on the same device.
    `Tuned.measure(k)` says which to measure next, and what is lost by taking the best of them. With
    `stop_early` a configuration is not replayed once its instructions alone take longer to issue
    than the best one so far takes: it is a trial with that as its reason. `objectives` have to
    begin with "seconds" then. `progress` is called with how many are done, and of how many.

    A configuration that does not compile, is refused, or goes wrong is a trial with its reason.
    Raises WarploomError for a space, an objective or a device that means nothing.
    """
    wanted = configurations(space, restrictions)
    ranks = check_objectives(objectives)
    for one in {str(c["device"]) for c in wanted if "device" in c}:
        find_device(one)
    fixed = {"block": block, "grid": grid, "shared": shared, "device": find_device(device).name}
    division = Division(
        tuple(block_size_names), (tuple(grid_div_x), tuple(grid_div_y), tuple(grid_div_z))
    )
    division.check(space)
    known = read_measured(measured, space) if measured is not None else None
    job = TuneJob(
        *_source(source),
        kernel,
        tuple(_kept(value) for value in args),
        {name: plain(name, value) for name, value in fixed.items()},
        (problem_size,) if isinstance(problem_size, int) else tuple(problem_size),
        division,
        tuple(options),
        scheduler,
        sample,
        max_instructions,
        cooperative,
    )
    if stop_early and ranks[0] != "seconds":
        raise WarploomError(
            f"stop_early compares times, but the first objective is {ranks[0]}: put 'seconds' "
            "first in objectives, or omit stop_early"
        )
    search = _Search(job, wanted, workers, cluster, stop_early)
    found = _tuned(search, ranks, cache, progress)
    values = {name: tuple(plain(name, one) for one in given) for name, given in space.items()}
    about = About(kernel or job.name, str(job.fixed["device"]), job.problem_size, values)
    found = replace(found, about=about)
    return found if known is None else found.corrected(known)


@dataclass(frozen=True)
class _Search:
    """The configurations of a tuning, and how their trials are made: by so many processes or the
    workers of a cluster, with or without those that cannot win."""

    job: TuneJob
    wanted: Sequence[Configuration]
    workers: int
    cluster: str | None
    stop_early: bool


def _tuned(
    search: _Search,
    ranks: tuple[str, ...],
    cache: str | Path | None,
    progress: Callable[[int, int], object] | None,
) -> Tuned:
    """Returns the trials of all configurations: those that the cache has, and those that are made
    now."""
    wanted = search.wanted
    file = TrialFile(cache, search.job) if cache is not None else None
    known = {i: t for i, c in enumerate(wanted) if file and (t := file.find(c))}
    left = [i for i in range(len(wanted)) if i not in known]
    found = dict(known)

    def limit() -> float:
        ran = (trial.costs.seconds for trial in found.values() if trial.costs)
        return min(ran, default=math.inf) if search.stop_early else math.inf

    for index, trial in _trials(search, left, limit):
        found[index] = trial
        if file:
            file.keep(trial)
        if progress:
            progress(len(found), len(wanted))
    return Tuned(tuple(found[i] for i in range(len(wanted))), ranks, len(known))


def _source(source: str | Path) -> tuple[str, str, str]:
    """Returns the text, its language, and what it is called; of a core file a digest."""
    if isinstance(source, str) and "\n" in source:
        return source, "cuda", "kernel.cu"
    if Path(source).suffix == SUFFIX:
        with reading(source, "is not a Warploom core file"):
            return hashlib.sha256(Path(source).read_bytes()).hexdigest(), SAVED, str(source)
    return (*source_of(Path(source)), str(source))


def _kept(value: Any) -> Any:
    return value.copy_to_host() if isinstance(value, Buffer) else value


def _trials(
    search: _Search, left: Sequence[int], limit: Callable[[], float]
) -> Iterator[tuple[int, Trial]]:
    """Yields the trials of those configurations that are left, as they end; `limit` says in how
    many seconds the best of those before ran."""
    if not left:
        return
    job, wanted, tuning = search.job, search.wanted, uuid4().hex
    left = _grouped(wanted, left)
    if search.cluster is None and min(search.workers, len(left)) == 1:
        yield from ((index, tried(job, wanted[index], limit(), tuning)) for index in left)
        return
    waiting = list(reversed(left))
    with spread(min(search.workers, len(left)), search.cluster) as (executor, _):
        futures: dict[Future[Trial], int] = {}
        # Where trials depend on those before, no more are handed out than workers take soon.
        most = 2 * search.workers if search.stop_early else len(left)
        try:
            while waiting or futures:
                while waiting and len(futures) < most:
                    index = waiting.pop()
                    given = job, wanted[index], limit(), tuning
                    futures[executor.submit(tried, *given)] = index
                for future in wait(futures, return_when=FIRST_COMPLETED).done:
                    yield futures.pop(future), future.result()
        except BrokenExecutor:
            raise WarploomError(
                "a process that ran trials was killed, perhaps because memory ran out: use fewer "
                "workers (if you use a cache, finished trials are not run again)"
            ) from None
        finally:  # whoever interrupts does not wait for all that is left
            for future in futures:
                future.cancel()


def _grouped(wanted: Sequence[Configuration], left: Sequence[int]) -> list[int]:
    """Returns the configurations so that those which are compiled alike follow each other, in the
    order of the first of each kind."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index in left:
        one = wanted[index]
        groups.setdefault((one.get("device"), *compiler_options(one)), []).append(index)
    return [index for group in groups.values() for index in group]
