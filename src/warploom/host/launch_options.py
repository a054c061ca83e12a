"""The options of a launch, beside its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from warploom.core.errors import LaunchError
from warploom.host.option_types import Cluster, Count, Order, Policy, Seed, Tools
from warploom.machine.launch import WarpId
from warploom.machine.observation import Observation


class LaunchOptions(TypedDict, total=False):
    """Options of a launch, beside its arguments.

    `max_instructions` bounds warp instructions. The blocks of a `cooperative` launch all run at
    once, so that they may wait for each other. `schedule` and `seed` choose who goes first, where
    not as the device says. `order` "any" lets several workers run blocks that may conflict: the
    result is one that the architecture allows, not the same each time. `strict` checks arguments
    against the types that the source declares, as the device does if the launch does not say.
    `sanitize` names the tools that check the launch, of "mem", "race", "sync" and "init", where not
    those of the device: `run.findings` has what they found. A warp gives up its turn before each of
    the instructions `interrupts` (by their numbers, as `explore` lists them), and the warps `turns`
    have the first turns, each given as its block and its number there; such a launch runs on the
    reference machine. `cluster_dims` is how many blocks a cluster has: an integer, or one for each
    of x, y, z. A `programmatic` launch in a stream may begin before the launch before it has ended,
    once that permits it (`griddepcontrol`): it runs after that one all the same, and the tool
    "race" reports what it does before it waits (CUDA's attribute "programmatic stream
    serialization"). `observe` is an observer with its state (`wl.observer`), whose functions the
    launch calls. `nd_range` is for programs that OpenCL's host API compiles, which read it: the
    global offset along x, y and z, and the number of dimensions."""

    max_instructions: Count | None
    cooperative: bool
    schedule: Policy | None
    seed: Seed | None
    order: Order | None
    strict: bool | None
    sanitize: Tools | None
    interrupts: Sequence[Count]
    turns: Sequence[Sequence[Count]]
    cluster_dims: Cluster | None
    programmatic: bool
    observe: Observation | None
    nd_range: tuple[Count, Count, Count, Count]


def turns_of(given: Sequence[Sequence[int]]) -> tuple[WarpId, ...]:
    """Returns the warps of an order's first turns. Raises LaunchError where one is no pair."""
    for one in given:
        if len(one) != 2:
            raise LaunchError(
                "each entry of turns must be a block index and the index of a warp in that block, "
                f"such as (0, 3), not {tuple(one)}"
            )
    return tuple((block, number) for block, number in given)
