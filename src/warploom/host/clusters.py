"""Clusters of blocks in launches: what a launch and a kernel specify of them, and what a device can
do."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.core.errors import Dim3, LaunchError
from warploom.devices.spec import DeviceSpec
from warploom.ptx.module import Function
from warploom.simt.clusters import MOST_BLOCKS

SINCE = (9, 0)
"""The compute capability that brought clusters (CUDA C++ Programming Guide, "Thread Block
Clusters")."""

ALONE: Dim3 = (1, 1, 1)

PORTABLE_BLOCKS = 8
"""Blocks of a cluster that every device with clusters can have."""


def as_dims(given: int | Sequence[int] | None) -> Dim3 | None:
    """Returns the option of a launch as three numbers."""
    if given is None:
        return None
    x, y, z = (*([given] if isinstance(given, int) else given), 1, 1, 1)[:3]
    return x, y, z


def cluster_of(function: Function, asked: Dim3 | None) -> tuple[Dim3, bool]:
    """Returns the blocks of a cluster along each axis, and whether the launch or the kernel names
    them. Raises LaunchError where the two differ."""
    named: Dim3 | None = None
    for directive, values in function.directives:
        if directive == "reqnctapercluster":
            x, y, z = (*(int(value) for value in values), 1, 1)[:3]
            named = (x, y, z)
    if named is not None and asked is not None and asked != named:
        raise LaunchError(
            f"{function.name} requires clusters of {list(named)} blocks (__cluster_dims__ or "
            f".reqnctapercluster), but the launch requests {list(asked)}. Omit `cluster_dims`."
        )
    directives = {directive for directive, _ in function.directives}
    found = named or asked
    if found is None and "explicitcluster" in directives:
        raise LaunchError(
            f"{function.name} requires a launch that specifies its clusters (.explicitcluster): "
            "pass cluster_dims=(x, y, z)."
        )
    return found or ALONE, found is not None


def check_cluster(spec: DeviceSpec, function: Function, grid: Dim3, cluster: Dim3) -> None:
    """Raises LaunchError where a device cannot launch a grid in such clusters."""
    x, y, z = cluster
    size = x * y * z
    if min(cluster) < 1:
        raise LaunchError(
            f"invalid cluster of {list(cluster)} blocks: each dimension must be at least 1"
        )
    if size > 1 and spec.compute_capability < SINCE:
        raise LaunchError(
            f"{spec.title} (compute capability {spec.cc}) does not support clusters, but the "
            f"launch has clusters of {size} blocks. Launch without clusters, or choose a device "
            "of compute capability 9.0 or later."
        )
    limit = MOST_BLOCKS
    for directive, values in function.directives:
        if directive == "maxclusterrank":
            limit = min(limit, int(values[0]))
    if size > limit:
        raise LaunchError(
            f"a cluster of {list(cluster)} = {size} blocks is too large: the limit is {limit}.",
            resource="blocks of a cluster",
            requested=size,
            limit=limit,
        )
    if any(n % part for n, part in zip(grid, cluster, strict=True)):
        raise LaunchError(
            f"a grid of {list(grid)} blocks cannot be divided into clusters of {list(cluster)}: "
            "make each dimension of the grid a multiple of the corresponding dimension of the "
            "cluster."
        )
