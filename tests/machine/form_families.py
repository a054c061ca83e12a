"""The instruction forms by family, and how programs of random operations of a family are compared
on both machines. Between them the families have every form that runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import test_every_access_agrees as accesses
import test_every_atomic_agrees as atomics
import test_every_form_agrees as computing
import test_every_group_form_agrees as groups
import test_every_tensor_form_agrees as tensors
import test_every_tensor_memory_form_agrees as tensor_memory
import test_every_texel_form_agrees as texels
import test_every_warp_form_agrees as warps
from form_kernels import Kernel, Prepare, assert_agreement, drawn
from random_programs import COMPUTING
from replays import Disagreement

from warploom.isa.spec import Operation, OpSpec, UnknownOpcode, decode

Agree = Callable[[Sequence[Operation], int], None]
"""Asserts that both machines do the same with a program of operations, in which a seed chooses
operands and data. Raises AssertionError."""


@dataclass(frozen=True)
class Family:
    """Forms that occur together in programs; `draw` returns a random operation of one."""

    specs: Sequence[OpSpec]
    agree: Agree
    draw: Callable[[OpSpec, random.Random], Operation] = drawn


def agree_forms(text: str, family: str, seed: int) -> None:
    """Compares both machines on a program of a family; `text` has an opcode in each line, and may
    have comments. Raises Disagreement; ValueError for other lines than the family's opcodes."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("//")]
    try:
        operations = [decode(line) for line in lines]
    except UnknownOpcode as error:
        raise ValueError(str(error)) from error
    forms = FAMILIES[family]
    if not operations or any(one.spec not in forms.specs for one in operations):
        raise ValueError(f"no operations of {family}")
    try:
        forms.agree(operations, seed)
    except AssertionError as error:
        raise Disagreement(f"{family}: {str(error)[:500]}") from error


def _in_a_kernel(
    add: Callable[[Kernel, Operation], object],
    begin: Callable[[random.Random], Kernel] = Kernel,
    prepare: Prepare = lambda _: None,
) -> Agree:
    """Returns the comparison of kernels to which `add` adds operations one after the other."""

    def agree(operations: Sequence[Operation], seed: int) -> None:
        kernel = begin(random.Random(seed))
        ordered = sorted(operations, key=lambda one: one.name == "exit")
        for operation in ordered:
            add(kernel, operation)
        missing = {*ordered} - assert_agreement(kernel, (), seed, prepare)
        assert not missing, missing

    return agree


def _under_a_policy(agree: Callable[[Sequence[Operation], int, str], None]) -> Agree:
    """Returns the comparison under the policy that a seed chooses."""

    def agree_under(operations: Sequence[Operation], seed: int) -> None:
        agree(operations, seed, groups.POLICIES[seed % len(groups.POLICIES)])

    return agree_under


def _add_atomic(kernel: Kernel, operation: Operation) -> None:
    atomics.add(kernel, operation, alone=kernel.rng.random() < 0.5)


def _agree_groups(operations: Sequence[Operation], seed: int, policy: str) -> None:
    groups.agree([operation.text for operation in operations], seed, policy)


FAMILIES = {
    "computing": Family(COMPUTING, _in_a_kernel(Kernel.add)),
    "computing, compute capability 1.x": Family(
        computing.OLD_SPECS,
        _in_a_kernel(Kernel.add, computing.old_kernel),
        lambda spec, rng: drawn(spec, rng, lambda operation: "ftz" in operation.modifiers),
    ),
    "accesses": Family(
        accesses.SPECS,
        _in_a_kernel(accesses.add, lambda rng: Kernel(rng, functions=accesses.ECHO)),
        lambda spec, rng: drawn(spec, rng, accesses.legal),
    ),
    "atomics": Family(atomics.SPECS, _in_a_kernel(_add_atomic)),
    "textures": Family(texels.SPECS, _in_a_kernel(texels.add, prepare=texels.objects)),
    "warps": Family(warps.SPECS, _in_a_kernel(warps.add, warps.kernel)),
    "warps, before sm_70": Family(warps.OLD_SPECS, _in_a_kernel(warps.add, warps.old_kernel)),
    "warp groups": Family(
        groups.PRODUCTS,
        _under_a_policy(_agree_groups),
        lambda spec, rng: decode(groups.opcode_of(spec, rng)),
    ),
    "tensors": Family(tensors.SPECS, _under_a_policy(tensors.agree)),
    "tensor memory": Family(tensor_memory.SPECS, _under_a_policy(tensor_memory.agree)),
}
