"""Checks every computing form of the instruction tables on both machines: results are equal bit by
bit."""

from __future__ import annotations

import random

import pytest
from form_kernels import Kernel, assert_agreement, covering
from parts import some_now
from random_programs import COMPUTING

SPECS = COMPUTING
KERNELS = 12


@pytest.mark.parametrize("part", some_now(range(KERNELS), 5))
def test_both_machines_compute_the_same(part: int) -> None:
    rng = random.Random(part)
    kernel = Kernel(rng)
    for spec in SPECS[part::KERNELS]:
        for operation in covering(spec, rng):
            kernel.add(operation)
    assert_agreement(kernel, SPECS[part::KERNELS], part)
