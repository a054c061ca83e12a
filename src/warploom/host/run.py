"""What a launch left behind: its counters, its report, and how long it took."""

from __future__ import annotations

import json
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property

from warploom.machine.launch import Launch
from warploom.machine.tally import Tally
from warploom.observe.counters import Counters
from warploom.report.sections import Facts, Report, as_json, make_report


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of running a launch."""

    tally: Tally
    seconds: float


class Run:
    """One launch of a kernel. On a stream, asking for its results waits for it, and raises what
    the kernel did wrong."""

    def __init__(
        self,
        launch: Launch,
        outcome: Future[Execution],
        *,
        device: str,
        compute_capability: str,
        engine: str,
    ) -> None:
        self._launch, self._outcome = launch, outcome
        self._device, self._compute_capability, self._engine = device, compute_capability, engine

    @property
    def seconds(self) -> float:
        """The host's time for the launch, compilation of the kernel included where it was due."""
        return self._outcome.result().seconds

    @cached_property
    def counters(self) -> Counters:
        """Everything that was counted."""
        return Counters(self._outcome.result().tally)

    def metric(self, name: str) -> int:
        """One of Nsight Compute's metrics, such as
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"; WarploomError where none corresponds."""
        return self.counters.metric(name)

    def report(self) -> str:
        """The report as text."""
        from warploom.report.render import render_text

        return render_text(self.summary)

    def to_json(self) -> str:
        """The report as JSON, with all counters of the kernel and of each source line."""
        return json.dumps(as_json(self.summary), indent=2)

    @cached_property
    def summary(self) -> Report:
        """The report as data."""
        execution = self._outcome.result()
        program = execution.tally.program
        facts = Facts(
            kernel=program.name,
            device=self._device,
            compute_capability=self._compute_capability,
            engine=self._engine,
            grid=self._launch.grid,
            block=self._launch.block,
            warps=execution.tally.launched_warps,
            static_shared_bytes=program.shared_bytes,
            dynamic_shared_bytes=self._launch.dynamic_shared_bytes,
            local_bytes=program.local_bytes,
            seconds=execution.seconds,
        )
        return make_report(facts, self.counters)

    def __repr__(self) -> str:
        grid, block = self._launch.grid, self._launch.block
        state = "done" if self._outcome.done() else "queued"
        return f"Run(grid={grid}, block={block}, {state})"
