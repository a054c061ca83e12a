"""Computes how the address of an access changes with each index of a thread: the stride along
threadIdx.x, .y and .z, between blocks, and between iterations of loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from warploom.analysis.linear.affine import LinearAnalysis
from warploom.analysis.linear.forms import Form
from warploom.analysis.linear.lanes import LaneVariables
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.core.errors import Dim3
from warploom.isa.instruction import Space
from warploom.observe.examples import Example
from warploom.program.program import Program

AXES = "xyz"


@dataclass(frozen=True, slots=True)
class Strides:
    """The strides of an access in bytes: along each axis of the block that is known (of extent 1:
    what the stride would be if the block were wider), along the axes of the grid, and of loops.
    `is_uniform`: all threads of the grid access one address."""

    threads: Mapping[str, int]
    blocks: Mapping[str, int]
    loops: frozenset[int] = frozenset()
    is_uniform: bool = False


class ThreadStrides:
    """Finds the strides of accesses of a launch: from the kernel's code where an address is linear
    in the indices (`analysis.linear`), else from the addresses of an example."""

    def __init__(self, program: Program, block: Dim3, inputs: LaunchInputs | None) -> None:
        """Without `inputs`, only examples are used."""
        self._program, self._block, self._inputs = program, block, inputs

    def of(self, example: Example) -> Strides:
        """Returns the strides of an example's instruction."""
        found = self.of_instruction(example.instruction)
        return found or Strides(fit_strides(example, self._block), {})

    def of_instruction(self, instruction: int) -> Strides | None:
        """Returns the strides of an instruction; None if its address is not linear in the indices
        of thread and block and in counts of iterations."""
        address = self._forms.get(instruction)
        found = None if address is None else _strides_of(address)
        if found is None:
            return None
        extents = zip(AXES, self._block, strict=True)
        along = {axis: found.threads.get(axis, 0) for axis, extent in extents if extent > 1}
        if self._block[0] == 1 and (wider := self._wider_forms.get(instruction)):
            along["x"] = {v.name: s for v, s in wider.strides}.get("%tid.x", 0)
        return replace(found, threads=along)

    def form_of(self, instruction: int) -> Form | None:
        """Returns the address of an instruction as a linear form; None if it is none."""
        return self._forms.get(instruction)

    def of_lanes(self, instruction: int) -> int | None:
        """Returns the bytes from the element of a lane to that of the next one, whose threadIdx.x
        is 1 more; None if that is not known or not constant."""
        address = self._forms.get(instruction)
        return None if address is None else self._lanes.stride(address)

    @cached_property
    def _lanes(self) -> LaneVariables:
        return LaneVariables.of(self._block)

    @cached_property
    def _forms(self) -> dict[int, Form | None]:
        """Returns the addresses of all accesses to memory, by instruction."""
        return self._forms_in(self._block)

    @cached_property
    def _wider_forms(self) -> dict[int, Form | None]:
        """Returns the addresses if a block one thread wide were two threads wide."""
        return self._forms_in((2, *self._block[1:]))

    def _forms_in(self, block: Dim3) -> dict[int, Form | None]:
        if self._inputs is None:
            return {}
        analysis = LinearAnalysis(self._program, replace(self._inputs, block=block))
        spaces = frozenset(Space) - {Space.TEXTURE, Space.SURFACE}
        return {a.instruction: a.address.form for a in analysis.memory_accesses(spaces)}


def _strides_of(address: Form) -> Strides | None:
    """Returns the strides of a linear form; None where it has other variables, such as the quotient
    of an index."""
    threads: dict[str, int] = {}
    blocks: dict[str, int] = {}
    loops: set[int] = set()
    for variable, stride in address.strides:
        register, _, axis = variable.name.partition(".")
        if register == "%tid" and axis in AXES:
            threads[axis] = stride
        elif register == "%ctaid" and axis in AXES:
            blocks[axis] = stride
        elif variable.counts:
            loops.add(stride)
        else:
            return None
    return Strides(threads, blocks, frozenset(loops), not (threads or blocks or loops))


def fit_strides(example: Example, block: Dim3) -> dict[str, int]:
    """Returns the strides along the axes in which the lanes of an example differ, if its addresses
    are a linear function of them; nothing otherwise. The example is of one warp of the block, which
    one is not recorded."""
    warps = -(-block[0] * block[1] * block[2] // 32)
    for warp in range(min(warps, block[0])):
        found = _fit(example, block, 32 * warp)
        if found:
            return found
    return {}


def _fit(example: Example, block: Dim3, first: int) -> dict[str, int]:
    """Returns the strides if lane 0 is thread number `first` of the block."""
    threads = np.array(example.lanes) % 32 + first
    indices = (
        threads % block[0],
        threads // block[0] % block[1],
        threads // (block[0] * block[1]),
    )
    varying = [axis for axis in range(3) if len(set(indices[axis].tolist())) > 1]
    if not varying or len(threads) <= len(varying):
        return {}
    offsets = np.array([address - example.addresses[0] for address in example.addresses], float)
    columns = np.stack([*(indices[axis] - indices[axis][0] for axis in varying)], axis=1)
    solved = np.rint(np.linalg.lstsq(columns.astype(float), offsets, rcond=None)[0])
    if not np.array_equal(columns @ solved, offsets):
        return {}
    return {AXES[axis]: int(stride) for axis, stride in zip(varying, solved, strict=True)}


def is_ordered(example: Example) -> bool:
    """Returns whether each lane accesses the element after that of the lane before."""
    places = list(zip(example.lanes, example.addresses, strict=True))
    return all(b - a == (n - m) * example.size for (m, a), (n, b) in pairwise(places))
