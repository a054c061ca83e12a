"""The figures side by side, and how good they are in the whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from warploom.validation.benchmarks import CODES, Floats
from warploom.validation.figures import Figure


@dataclass(frozen=True)
class Row:
    """A figure, and the model's for it by PTX and by machine code."""

    figure: Figure
    ptx: float
    machine: float

    def error(self, code: str) -> float:
        """Modelled over published, less 1."""
        return getattr(self, code) / self.figure.published - 1


@dataclass(frozen=True)
class Summary:
    """The errors of rows: the mean of the absolute errors and the worst one, the median of modelled
    over published, and the least Spearman's coefficient of a benchmark with at least four figures
    on the device, None without one."""

    device: str
    figures: int
    mape: float
    worst: float
    median: float
    spearman: float | None


def summaries(rows: Sequence[Row], code: str) -> list[Summary]:
    """Returns a summary for each device, and one for all."""
    by_device: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_device[row.figure.device].append(row)
    return [_summary(*one, code) for one in (*by_device.items(), ("all", [*rows]))]


def as_markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yields the lines of both tables."""
    yield "| device | figure | published | with PTX | with machine code |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        figure = row.figure
        errors = (f"{getattr(row, code):,.1f} {100 * row.error(code):+.0f} %" for code in CODES)
        published = f"{figure.published:,g} {figure.unit}"
        yield f"| {figure.device} | {figure.title} | {published} | {' | '.join(errors)} |"
    yield ""
    yield "| device | figures | MAPE | worst | median ratio | lowest Spearman coefficient |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for ptx, machine in zip(*(summaries(rows, code) for code in CODES), strict=True):
        cells = [
            f"{100 * ptx.mape:.1f} -> {100 * machine.mape:.1f} %",
            f"{100 * ptx.worst:.0f} -> {100 * machine.worst:.0f} %",
            f"{ptx.median:.2f} -> {machine.median:.2f}",
            _both(ptx.spearman, machine.spearman),
        ]
        yield f"| {ptx.device} | {ptx.figures} | {' | '.join(cells)} |"


def _both(ptx: float | None, machine: float | None) -> str:
    return "" if ptx is None or machine is None else f"{ptx:.2f} -> {machine:.2f}"


def _summary(device: str, rows: list[Row], code: str) -> Summary:
    errors = np.array([row.error(code) for row in rows])
    by_kernel: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_kernel[row.figure.device, _family(row.figure)].append(row)
    ranks = [spearman(made, code) for made in by_kernel.values() if len(made) >= 4]
    return Summary(
        device,
        len(rows),
        float(np.abs(errors).mean()),
        float(np.abs(errors).max()),
        float(np.median(errors) + 1),
        min(ranks) if ranks else None,
    )


def _family(figure: Figure) -> str:
    return figure.kernel.partition("_")[0]


def spearman(rows: Sequence[Row], code: str) -> float:
    """Spearman's coefficient of published and modelled figures."""
    published = _ranks([row.figure.published for row in rows])
    modelled = _ranks([getattr(row, code) for row in rows])
    return float(np.corrcoef(published, modelled)[0, 1])


def _ranks(values: Sequence[float]) -> Floats:
    """Returns the rank of each value; equal ones share their mean."""
    array = np.asarray(values)
    return np.array([(array < one).sum() + ((array == one).sum() - 1) / 2 for one in array])
