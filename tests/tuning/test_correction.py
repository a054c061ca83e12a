"""Modelled times corrected by measured ones, and the choice of what to measure."""

from __future__ import annotations

import numpy as np
import pytest
from test_measured_times import tuned

from warploom.core.errors import WarploomError
from warploom.tuning.correction import NOISE, SPREAD, Belief, believed
from warploom.tuning.measured import Measurement
from warploom.tuning.plan import chosen
from warploom.tuning.space import Configuration

LINE: list[Configuration] = [{"tile": 2**k} for k in range(6)]
MODELLED = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]


def test_what_was_measured_is_believed() -> None:
    belief = believed(LINE, MODELLED, {0: 9.0, 5: 0.5})
    assert np.exp(belief.mean[[0, 5]]) == pytest.approx([9.0, 0.5], rel=2 * NOISE)
    assert (np.sqrt(np.diag(belief.covariance)[[0, 5]]) <= NOISE).all()


def test_one_factor_for_all_changes_no_order() -> None:
    """The model is three times too fast everywhere: so it is where nothing was measured."""
    belief = believed(LINE, MODELLED, {0: 18.0, 3: 9.0, 5: 3.0})
    assert np.exp(belief.mean) == pytest.approx(3 * np.array(MODELLED), rel=0.05)


def test_neighbours_learn_more_than_the_distant() -> None:
    """Measured are the ends of the line, one as modelled, one at twice the time."""
    belief = believed(LINE, MODELLED, {0: 12.0, 5: 1.0})
    errors = belief.mean - np.log(MODELLED)
    assert (np.diff(errors) < 0).all()


def test_the_mean_and_variance_are_those_of_the_formula() -> None:
    """Two configurations, one measured: by the conditional of a normal distribution of two
    variables. Their distance is two standard deviations; spread and length are at their priors."""
    belief = believed(LINE[:2], MODELLED[:2], {0: 12.0})
    rows: list[tuple[float, float, float]] = []
    for spread in SPREAD * np.array([0.25, 0.5, 1, 2]):
        for length in (0.5, 1, 2, 4):
            own = 1 + spread**2 + NOISE**2
            prior = np.log2(spread / SPREAD) ** 2 + np.log2(length) ** 2
            score = -0.5 * (prior + np.log(2) ** 2 / own + np.log(own))
            both = 1 + spread**2 * np.exp(-4 / (2 * length**2))
            rows.append((score, both / own * np.log(2), 1 + spread**2 - both**2 / own))
    _, mean, variance = max(rows)
    assert belief.mean[1] - np.log(MODELLED[1]) == pytest.approx(mean)
    assert belief.covariance[1, 1] == pytest.approx(variance)


def test_the_loss_of_two_equal_configurations_is_that_of_the_formula() -> None:
    """Two independent logarithms with mean 0 and deviation s, d their difference, of deviation s
    times the root of 2: taking either loses E[max(1, exp(d))] - 1, which is
    exp(s^2) Phi(s sqrt(2)) + 1/2 - 1. Measuring both loses nothing."""
    s = 0.25
    taken, losses = chosen(Belief(np.zeros(2), s**2 * np.eye(2)), {}, 2)
    share = 0.63816  # Phi(0.35355), from a table
    assert losses[0] == pytest.approx(np.exp(s**2) * share - 0.5, abs=0.02)
    assert losses[2] == 0
    assert sorted(taken) == [0, 1]


def test_what_is_certainly_slower_is_measured_last() -> None:
    belief = Belief(np.array([0.0, 3.0, 0.1]), 0.01 * np.eye(3))
    assert chosen(belief, {}, 3)[0][2] == 1


def test_what_was_measured_is_not_asked_for_again() -> None:
    belief = Belief(np.zeros(3), np.diag([0.0, 0.04, 0.09]))
    taken, losses = chosen(belief, {0: 1.0}, 5)
    assert taken == [2, 1]  # the least certain first
    assert losses == sorted(losses, reverse=True)


def test_a_tuning_is_corrected() -> None:
    one = tuned(1e-3, 2e-3, 3e-3, None)
    assert one.measure(2).configurations[0] == {"block_size_x": 64, "TILE": 1}
    slow = Measurement({"block_size_x": 64, "TILE": 1}, 9e-3)
    quick = Measurement({"block_size_x": 64, "TILE": 2}, 1e-3)
    other = one.corrected([slow, quick])
    assert other.best.configuration == quick.configuration
    assert (other.best.measured, other.best.seconds) == (1e-3, 1e-3)
    assert other.measure(3).configurations == ({"block_size_x": 128, "TILE": 1},)


def test_measurements_of_nothing_that_ran_are_an_error() -> None:
    failed = Measurement({"block_size_x": 128, "TILE": 2}, 1.0)
    with pytest.raises(WarploomError, match="none of the measured configurations"):
        tuned(1.0, 1.0, 1.0, None).corrected([failed])
    with pytest.raises(WarploomError, match="matches 2 configurations in the search space"):
        tuned(1.0, 1.0, 1.0, None).corrected([Measurement({"block_size_x": 64}, 1.0)])
