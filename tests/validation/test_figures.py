"""Published figures and the table of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from needs import NEEDS_PTXAS

from warploom.validation import rows as kept_rows
from warploom.validation.benchmarks import modelled
from warploom.validation.figures import Figure, figures
from warploom.validation.table import Row, spearman, summaries


def figure(published: float, device: str = "a100") -> Figure:
    return Figure(device, None, "triad", {"threads": 64}, published, "GB/s", "by hand")


def test_summaries_are_those_of_a_calculation_by_hand() -> None:
    published, by_ptx = (10.0, 20.0, 40.0, 80.0), (11.0, 18.0, 60.0, 40.0)
    rows = [Row(figure(a), b, a) for a, b in zip(published, by_ptx, strict=True)]
    one, everything = summaries(rows, "ptx")
    assert (one.device, everything.device, one.figures) == ("a100", "all", 4)
    assert one.mape == pytest.approx((0.1 + 0.1 + 0.5 + 0.5) / 4)
    assert one.worst == pytest.approx(0.5)
    assert one.median == pytest.approx((0.9 + 1.1) / 2)
    # Ranks 1 2 3 4 against 1 2 4 3: 1 - 6 * 2 / (4 * 15)
    assert one.spearman == pytest.approx(0.8)
    assert summaries(rows, "machine")[0].mape == 0
    assert spearman(rows, "machine") == pytest.approx(1)


def test_a_row_is_modelled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another published value changes nothing of the model; another device does."""
    asked: list[str] = []

    def model(one: Figure) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        asked.append(one.device)
        return np.array([1.0, 2.0])

    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kept_rows, "modelled", model)
    output = [figure(4.0), figure(8.0), figure(4.0, "a40"), figure(4.0)]
    rows = [*kept_rows.rows_of(output)]
    assert asked == ["a100", "a40"]
    assert [(row.figure, row.ptx, row.machine) for row in rows] == [(one, 1, 2) for one in output]


def test_every_figure_has_a_source_and_enough_devices_have_some() -> None:
    assert all(one.source and one.published > 0 for one in figures())
    assert len({(one.device, one.kernel) for one in figures()}) >= 25
    assert len({one.device for one in figures()}) >= 4


@NEEDS_PTXAS
@pytest.mark.parametrize("device", ["a100", "a40", "h200"])
@pytest.mark.parametrize("stride", [1, 4, 8])
def test_strided_loads_take_as_long_of_l1_as_was_measured(device: str, stride: int) -> None:
    [output] = [
        one
        for one in figures()
        if (one.device, one.kernel, one.parameters) == (device, "strided", {"stride": stride})
    ]
    assert modelled(output).tolist() == pytest.approx([output.published] * 2, rel=0.05)
