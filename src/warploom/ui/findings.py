"""Adds findings of the sanitizers to the trace of a launch, with the steps of their threads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from warploom.core.errors import Dim3
from warploom.observe import schema
from warploom.observe.trace import StepAccess, Trace
from warploom.sanitize.findings import Finding, Thread

NOT_RECORDED = -1


def with_findings(trace: Trace, findings: Sequence[Finding]) -> Trace:
    """Returns the trace with findings of the same launch, whose accesses are steps of the trace
    where those were recorded."""
    return msgspec.structs.replace(trace, findings=tuple(_finding(trace, one) for one in findings))


def _finding(trace: Trace, finding: Finding) -> schema.Finding:
    """Returns a finding as a trace has it: with its elements, and a step for each thread."""
    parties = [
        _party(trace, finding, thread, instruction)
        for thread, instruction in zip(finding.threads, finding.instructions, strict=False)
    ]
    later, earlier = ([steps for _, steps in parties] + [[], []])[:2]
    return schema.Finding(
        tool=finding.tool,
        kind=finding.kind,
        severity=finding.severity,
        message=finding.message,
        space=finding.space,
        buffer=finding.buffer,
        offset=finding.offset,
        size=_size(trace, finding),
        parties=tuple(
            schema.Party(*who, step)
            for (who, _), step in zip(parties, _pair(later, earlier), strict=False)
        ),
    )


def _party(
    trace: Trace, finding: Finding, thread: Thread, instruction: int
) -> tuple[tuple[int, int, int, int], list[int]]:
    """Returns a thread as block, warp, lane and instruction, and the steps at which it touches the
    bytes of a finding by that instruction."""
    block = _number(thread.block, trace.launch.grid)
    warp, lane = divmod(_number(thread.thread, trace.launch.block), trace.warp_size)
    at = _address(trace, finding)
    try:
        steps = trace.warp(block, warp).steps
    except KeyError:
        steps = []
    found = [
        step.time
        for step in steps
        if step.instruction == instruction
        and any(_touches(access, lane, finding.space, at) for access in step.accesses)
    ]
    return (block, warp, lane, instruction), found


def _pair(later: list[int], earlier: list[int]) -> tuple[int, int]:
    """Returns the first step of `later` that has one of `earlier` before it, and the last of these;
    without such a pair, the first of each."""
    for step in later:
        before = [one for one in earlier if one < step]
        if before:
            return step, before[-1]
    return next(iter(later), NOT_RECORDED), next(iter(earlier), NOT_RECORDED)


def _touches(access: StepAccess, lane: int, space: str, at: int) -> bool:
    """Returns whether a lane's access touches a byte."""
    return access.space == space and any(
        of == lane and address <= at < address + access.size
        for of, address in zip(access.lanes, access.addresses, strict=True)
    )


def _address(trace: Trace, finding: Finding) -> int:
    """Returns the address of a finding in the memory of the recorded launch."""
    if finding.space != "global":
        return finding.offset
    named = (one.address for one in trace.allocations if one.name == finding.buffer)
    return next(named, 0) + finding.offset


def _size(trace: Trace, finding: Finding) -> int:
    """Returns how many bytes the access of a finding touches; 0 where the finding is not of an
    access."""
    sites = (s.size for s in trace.sites if s.instruction in finding.instructions[:1])
    return next(sites, 0)


def _number(index: Dim3, extent: Sequence[int]) -> int:
    """Returns the number of an index within an extent, the first dimension running fastest."""
    return index[0] + extent[0] * (index[1] + extent[1] * index[2])
