"""Checks every form of `atom` and `red` with every choice of every modifier, on both machines: each
lane at an address of its own, then all lanes of a warp at two; over edge values."""

from __future__ import annotations

import random

import pytest
from form_kernels import Kernel, assert_agreement, assert_valid, covering, elements, width
from parts import some_now

import warploom.isa.ops  # noqa: F401  (fills FORMS)
from warploom.isa.spec import FORMS, Operation

SPECS = [spec for name in ("atom", "red") for spec in FORMS[name] if "async" not in spec.syntax]
KERNELS = 12


def add(kernel: Kernel, operation: Operation, *, alone: bool) -> None:
    """Adds one atomic on memory that was just initialized, and stores the memory afterwards."""
    m, spec = operation.modifiers, operation.spec
    shared = m.text("space", "").startswith("shared")
    own = "%cell" if shared else "%own"
    at = own if alone else "%near" if shared else "%both"
    value = next(form for form in spec.sources if form.type == "type")
    bits, count = width(operation, value), elements(operation, value)
    space = "shared" if shared else "global"
    for number in range(count):
        first = kernel.register(bits)
        kernel.lines.append(f"st.{space}.b{bits} [{own}+{number * bits // 8}], {first}")
    shown: list[str] = []
    for form in spec.shown:
        if form.type == "address":
            shown.append(f"[{at}]")
        elif form.name == "policy":
            shown += [kernel.register(64)] if "L2::cache_hint" in m else []
        else:
            shown.append(kernel.operand(operation, form))
    kernel.add(operation, shown)
    for offset in range(0, max(8, bits * count // 8), 8):
        kernel.lines.append(f"ld.{space}.b64 %at, [{own}+{offset}]")
        kernel.put("b64", "%at")


def kernel_of(part: int) -> Kernel:
    """Returns a kernel in which all forms of a part occur."""
    rng = random.Random(part)
    kernel = Kernel(rng)
    for spec in SPECS[part::KERNELS]:
        for number, operation in enumerate(covering(spec, rng)):
            add(kernel, operation, alone=number % 2 == 0)
    return kernel


@pytest.mark.parametrize("part", some_now(range(KERNELS), 5))
def test_both_machines_leave_the_same(part: int) -> None:
    assert_agreement(kernel_of(part), SPECS[part::KERNELS], part)


def test_all_programs_are_valid() -> None:
    """Parses those of the nightly job, too."""
    assert_valid(kernel_of(part).text() for part in range(KERNELS))
