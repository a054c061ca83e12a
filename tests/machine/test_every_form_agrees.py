"""Checks every computing form of the instruction tables on both machines: results are equal bit by
bit."""

from __future__ import annotations

import random

import pytest
from form_kernels import Kernel, assert_agreement, assert_valid, covering
from parts import some_now
from random_programs import COMPUTING, UNROUNDED

from warploom.isa.spec import decode

SPECS = COMPUTING
OLD_SPECS = UNROUNDED
KERNELS = 12


def kernel_of(part: int) -> Kernel:
    """Returns a kernel in which all forms of a part occur."""
    rng = random.Random(part)
    kernel = Kernel(rng)
    for spec in SPECS[part::KERNELS]:
        for operation in covering(spec, rng):
            kernel.add(operation)
    return kernel


@pytest.mark.parametrize("part", some_now(range(KERNELS), 5))
def test_both_machines_compute_the_same(part: int) -> None:
    assert_agreement(kernel_of(part), SPECS[part::KERNELS], part)


def test_all_programs_are_valid() -> None:
    """Parses those of the nightly job, too."""
    assert_valid(kernel_of(part).text() for part in range(KERNELS))


def old_kernel(rng: random.Random) -> Kernel:
    """Returns a kernel for a device of compute capability 1.x, where `.f32` is always flushed."""
    return Kernel(rng, target="sm_13", version="1.4")


def test_both_machines_compute_the_same_for_old_devices() -> None:
    rng = random.Random(0)
    kernel = old_kernel(rng)
    operations = {decode("mad.ftz.f32"), decode("mad.ftz.sat.f32")}
    for operation in operations:
        kernel.add(operation)
    assert operations <= assert_agreement(kernel, (), 0)
