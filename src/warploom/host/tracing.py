"""Makes a trace of what was recorded: adds the code, the device and what it all comes from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from warploom.analysis.program import Program
from warploom.analysis.uses import reads, writes
from warploom.devices.spec import DeviceSpec
from warploom.host.loaded import LoadedKernel
from warploom.host.names import source_name
from warploom.machine.launch import INDEPENDENT_SINCE, Launch, all_shared_bytes
from warploom.observe import schema
from warploom.observe.counters import BARRIERS, BRANCHES
from warploom.observe.recorder import Recorded
from warploom.observe.trace import Trace
from warploom.ptx.ir import Instruction
from warploom.ptx.printer import print_instruction

LARGEST = 1 << 20
"""A file that is longer is not shown."""


def trace_of(
    kernel: LoadedKernel, launch: Launch, engine: str, recorded: Recorded, error: str
) -> Trace:
    """The trace of a launch, from what was recorded and the error that ended it, if one did."""
    program = kernel.program
    sources = _sources(kernel)
    names = [source.name for source in sources]
    return Trace(
        schema.VERSION,
        _launch_facts(kernel, launch, engine),
        _device_facts(kernel),
        _occupancy_facts(kernel, launch),
        sources,
        program.module.text,
        tuple(_code(program, names)),
        tuple(
            schema.BasicBlock(block.start, block.stop, meets_at)
            for block, meets_at in zip(program.blocks, program.reconvergence, strict=True)
        ),
        tuple(schema.Register(r.name, r.type.name) for r in program.registers),
        recorded.allocations,
        recorded.warps,
        recorded.states,
        recorded.steps,
        recorded.sites,
        recorded.shapes,
        recorded.accesses,
        recorded.writes,
        recorded.left_out,
        error,
    )


def _launch_facts(kernel: LoadedKernel, launch: Launch, engine: str) -> schema.LaunchFacts:
    order = launch.schedule
    shape = launch.grid, launch.block
    names = kernel.name, source_name(kernel.name)
    return schema.LaunchFacts(*names, *shape, engine, order.policy, order.seed)


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
    )


def _bank_bytes(spec: DeviceSpec, rule: str) -> int:
    """The bytes that a bank gives at once, as the rule has it."""
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
    )


def _sources(kernel: LoadedKernel) -> tuple[schema.SourceText, ...]:
    """The files that the kernel's instructions come from, where they can be had."""
    found: list[schema.SourceText] = []
    for name in dict.fromkeys(_file(i) for i in kernel.program.instructions):
        text = _text_of(kernel, name) if name else None
        if text is not None:
            found.append(schema.SourceText(name, text))
    return tuple(found)


def _text_of(kernel: LoadedKernel, name: str) -> str | None:
    if Path(name).name == Path(kernel.source.name).name and kernel.source.content:
        return kernel.source.content
    try:
        file = Path(name)
        return file.read_text() if file.stat().st_size <= LARGEST else None
    except (OSError, UnicodeDecodeError):
        return None


def _file(instruction: Instruction) -> str:
    """The file that an instruction comes from, empty where nothing says so."""
    return instruction.location.written.file if instruction.location else ""


def _code(program: Program, files: list[str]) -> Iterable[schema.Code]:
    """The instructions; every one says which registers it uses."""
    numbers = {register.name: index for index, register in enumerate(program.registers)}
    of_block = [b.index for b in program.blocks for _ in range(b.start, b.stop)]
    for index, made in enumerate(program.instructions):
        known = _file(made) in files
        operation = made.operation
        yield schema.Code(
            text=print_instruction(made),
            file=files.index(_file(made)) if known else -1,
            line=made.location.written.line if known and made.location else 0,
            ptx_line=made.span.line,
            unit=operation.spec.unit.value,
            is_branch=operation.name in BRANCHES,
            is_barrier=operation.name in BARRIERS and "warp" not in operation.modifiers,
            guarded=made.guard is not None,
            hidden=index in program.hidden,
            block=of_block[index],
            reads=tuple(dict.fromkeys(numbers[r.name] for r in reads(made))),
            writes=tuple(dict.fromkeys(numbers[r.name] for r in writes(made))),
        )
