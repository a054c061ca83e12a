"""Makes a trace of what was recorded: adds the code, the device and what it all comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from warploom.core.errors import Dim3, MemoryFault, WarploomError
from warploom.core.mangled import variable_name
from warploom.core.source_files import read_source
from warploom.devices.occupancy import registers_of_warp
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import find_timing
from warploom.host.buffer import Buffer
from warploom.host.loaded import LoadedKernel
from warploom.host.programs.names import source_name
from warploom.isa.instruction import Space
from warploom.machine.launch import INDEPENDENT_SINCE, Launch, all_shared_bytes
from warploom.observe import schema
from warploom.observe.code_table import code_tables, file_of
from warploom.observe.recorder import RecordedTrace
from warploom.observe.residency import Residents, without_returns
from warploom.observe.trace import Trace
from warploom.observe.variables import variables_of
from warploom.program.program import Program

LARGEST = 1 << 20
"""A file that is longer is not shown."""


def trace_of(
    kernel: LoadedKernel,
    launch: Launch,
    engine: str,
    recorded: RecordedTrace,
    error: WarploomError | None,
    buffers: Sequence[Buffer],
) -> Trace:
    """Returns the trace of a launch, from what was recorded and the error that ended it, if one
    did; `buffers` are those among its arguments."""
    program = kernel.program
    residents = Residents(program, launch, recorded.warps, recorded.states, recorded.steps)
    warps = residents.ended_warps()
    sources = _sources(kernel)
    code, frames = code_tables(program, [source.name for source in sources])
    return Trace(
        schema.VERSION,
        _launch_facts(kernel, launch, engine),
        _device_facts(kernel),
        _occupancy_facts(kernel, launch),
        sources,
        program.module.text,
        code,
        tuple(
            schema.BasicBlock(block.start, block.stop, meets_at)
            for block, meets_at in zip(program.blocks, program.reconvergence, strict=True)
        ),
        _registers(kernel, sources),
        _allocations(recorded.allocations, buffers),
        _shared(program, launch),
        warps,
        recorded.states,
        without_returns(program, recorded.steps),
        recorded.sites,
        recorded.shapes,
        recorded.accesses,
        recorded.writes,
        recorded.changes,
        recorded.left_out,
        str(error or ""),
        _fault(launch, error),
        asynchronous=recorded.asynchronous,
        residency=residents.blocks(warps),
        beside=launch.placement.others if launch.placement else (),
        frames=frames,
    )


def _registers(
    kernel: LoadedKernel, sources: Sequence[schema.SourceText]
) -> tuple[schema.Register, ...]:
    """Returns the registers, with the parameters and variables whose values they hold."""
    declared = zip(kernel.function.parameters, kernel.signature, strict=True)
    parameters = {made.name: one.name for made, one in declared if one.name}
    lines = {one.name: one.text.split("\n") for one in sources}
    names = variables_of(kernel.program, parameters, lines)
    registers = kernel.program.registers
    return tuple(schema.Register(r.name, r.type.name, names.get(r.name, "")) for r in registers)


def _allocations(
    live: Sequence[schema.Allocated], buffers: Sequence[Buffer]
) -> tuple[schema.Allocated, ...]:
    """Returns the allocations, with the types and shapes of the buffers that they are."""
    known = {one.address: one for one in buffers}
    return tuple(
        replace(one, type=known[one.address].dtype.name, shape=known[one.address].shape)
        if one.address in known
        else one
        for one in live
    )


def _shared(program: Program, launch: Launch) -> tuple[schema.SharedArray, ...]:
    """Returns the arrays in a block's shared memory, by address."""
    places = program.slots.items()
    found = [
        schema.SharedArray(variable_name(name).rpartition("::")[2], place.offset, place.size)
        for name, place in places
        if place.space is Space.SHARED and place.size
    ]
    start = program.dynamic_shared_offset
    if launch.dynamic_shared_bytes:
        found.append(
            schema.SharedArray("dynamic shared memory", start, launch.dynamic_shared_bytes)
        )
    return tuple(sorted(found, key=lambda one: one.address))


def _fault(launch: Launch, error: WarploomError | None) -> schema.Fault | None:
    """Returns the access that ended a launch; None where something else did, or nothing."""
    if not isinstance(error, MemoryFault):
        return None
    return schema.Fault(
        error.address,
        error.size,
        _number(error.block, launch.grid),
        _number(error.thread, launch.block),
    )


def _number(index: Dim3, shape: Dim3) -> int:
    """Returns the number of an index in a shape, x fastest."""
    return index[0] + shape[0] * (index[1] + shape[1] * index[2])


def _launch_facts(kernel: LoadedKernel, launch: Launch, engine: str) -> schema.LaunchFacts:
    order = launch.schedule
    shape = launch.grid, launch.block
    names = kernel.name, source_name(kernel.name)
    return schema.LaunchFacts(*names, *shape, engine, order.policy, order.seed, kernel.terms)


def _device_facts(kernel: LoadedKernel) -> schema.DeviceFacts:
    spec, rules = kernel.context.spec, kernel.context.rules
    return schema.DeviceFacts(
        spec.name,
        spec.title,
        spec.cc,
        spec.sms,
        spec.compute_capability >= INDEPENDENT_SINCE,
        rules.global_load,
        rules.shared_read,
        spec.shared_banks,
        _bank_bytes(spec, rules.shared_read),
        spec.warp_size,
        multiprocessor_of(spec),
    )


def multiprocessor_of(spec: DeviceSpec) -> schema.Multiprocessor:
    """Returns the sizes of a device's SM."""
    timing = find_timing(spec)
    return schema.Multiprocessor(
        schedulers=timing.schedulers,
        cores=round(timing.lanes_fp32),
        max_warps=spec.max_warps_per_sm,
        max_threads=spec.max_threads_per_sm,
        max_blocks=spec.max_blocks_per_sm,
        registers=spec.registers_per_sm,
        shared_bytes=spec.shared_bytes_per_sm,
        l1_bytes=spec.l1_bytes,
        l1_holds_shared=spec.l1_holds_shared,
        texture_cache_bytes=spec.texture_cache_bytes,
        constant_cache_bytes=spec.constant_cache_bytes,
        l2_bytes=spec.l2_bytes,
        memory_bytes=spec.memory_bytes,
    )


def _bank_bytes(spec: DeviceSpec, rule: str) -> int:
    """Returns the bytes that a bank gives at once, as the rule has it."""
    return 8 if rule == "shared_wide_banks" else 4


def _occupancy_facts(kernel: LoadedKernel, launch: Launch) -> schema.OccupancyFacts:
    found = kernel.occupancy(launch)
    return schema.OccupancyFacts(
        found.active_blocks,
        found.active_warps,
        found.max_warps,
        kernel.resources.registers,
        all_shared_bytes(kernel.program, launch),
        found.limiters,
        registers_of_warp(kernel.context.spec, found.demand),
    )


def _sources(kernel: LoadedKernel) -> tuple[schema.SourceText, ...]:
    """Returns the files that the kernel's instructions come from, where they can be had."""
    found: list[schema.SourceText] = []
    for name in dict.fromkeys(file_of(i) for i in kernel.program.instructions):
        text = _text_of(kernel, name) if name else None
        if text is not None:
            found.append(schema.SourceText(name, text))
    return tuple(found)


def _text_of(kernel: LoadedKernel, name: str) -> str | None:
    if Path(name).name == Path(kernel.source.name).name and kernel.source.content:
        return kernel.source.content
    return read_source(name, LARGEST)
