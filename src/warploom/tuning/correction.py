"""Corrects modelled times by some that were measured on the device.

The model's error is the logarithm of measured over modelled time. Errors of similar configurations
are alike, so that some of them predict the others: they are taken for a Gaussian process over the
parameters (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and
5), with a mean of its own, for a factor that all configurations share changes no choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.tuning.space import Configuration

Floats = npt.NDArray[np.float64]

SPREAD = 0.25
"""Standard deviation of the error of one configuration against that of others, where nothing was
measured: docs/timing.md, "Tuning against published search spaces"."""
NOISE = 0.02
"""Standard deviation of a measurement."""
_OFFSET = 1.0
"""Standard deviation of the mean error: it is not known before something was measured."""
_SPREADS = SPREAD * np.array([0.25, 0.5, 1.0, 2.0])
_LENGTHS = np.array([0.5, 1.0, 2.0, 4.0])
"""The length scale over which errors of configurations differ, in standard deviations of a
parameter."""


@dataclass(frozen=True)
class Belief:
    """Holds what is known of the logarithms of all configurations' seconds: a normal
    distribution."""

    mean: Floats
    covariance: Floats

    def draws(self, count: int) -> Floats:
        """Returns seconds drawn from the distribution, shape (count, configurations); the same ones
        each time."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.clip(values, 0, None))
        normal = np.random.default_rng(0).standard_normal((count, len(self.mean)))
        return np.exp(self.mean + normal @ root.T)


def believed(
    configurations: Sequence[Configuration],
    modelled: Sequence[float],
    measured: dict[int, float],
) -> Belief:
    """Returns what is known of the configurations' seconds, of which those in `measured`, by index,
    were measured."""
    points = _points(configurations)
    logs: Floats = np.log(np.asarray(modelled, np.float64))
    known = np.array(sorted(measured), int)
    errors = np.log([measured[index] for index in known.tolist()]) - logs[known]
    spread, length = _fitted(points[known], errors)
    covariance = _covariance(points, spread, length)
    if not len(known):
        return Belief(logs, covariance)
    inside = covariance[np.ix_(known, known)] + NOISE**2 * np.eye(len(known))
    gain = np.linalg.solve(inside, covariance[known]).T
    return Belief(logs + gain @ errors, covariance - gain @ covariance[known])


def _points(configurations: Sequence[Configuration]) -> Floats:
    """Returns the configurations as points, shape (configurations, dimensions): logarithms of
    positive numbers, other numbers as they are, a dimension for each value of a text; in standard
    deviations, over the square root of the dimensions."""
    columns: list[Floats] = []
    for name in configurations[0]:
        values = [one[name] for one in configurations]
        if any(isinstance(value, str) for value in values):
            columns += [
                np.array([float(v == one) for v in values]) for one in sorted(map(str, set(values)))
            ]
        else:
            numbers = np.array(values, float)
            columns.append(np.log2(numbers) if (numbers > 0).all() else numbers)
    varied = [column / column.std() for column in columns if column.std() > 0]
    if not varied:
        return np.zeros((len(configurations), 1))
    return np.stack(varied, axis=1) / np.sqrt(len(varied))


def _covariance(points: Floats, spread: float, length: float) -> Floats:
    squared_distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    return _OFFSET**2 + spread**2 * np.exp(-squared_distances / (2 * length**2))


def _fitted(points: Floats, errors: Floats) -> tuple[float, float]:
    """Returns the spread and the length that make the errors likeliest, with a logarithmic prior of
    a factor of two around SPREAD and 1."""
    best, found = -np.inf, (SPREAD, 1.0)
    for spread in _SPREADS.tolist():
        for length in _LENGTHS.tolist():
            prior = -0.5 * (np.log2(spread / SPREAD) ** 2 + np.log2(length) ** 2)
            likely = prior + _log_likelihood(points, errors, spread, length)
            if likely > best:
                best, found = likely, (spread, length)
    return found


def _log_likelihood(points: Floats, errors: Floats, spread: float, length: float) -> float:
    if not len(errors):
        return 0.0
    inside = _covariance(points, spread, length) + NOISE**2 * np.eye(len(errors))
    root = np.linalg.cholesky(inside)
    half = np.linalg.solve(root, errors)
    return float(-0.5 * half @ half - np.log(np.diag(root)).sum())
