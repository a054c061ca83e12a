"""Makes the tables of a trace that describe the kernel's instructions: their text and position in
the source, and the functions that they are in."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.isa.instruction import Instruction, Symbol
from warploom.isa.kinds import Effect, Needs, OpKind
from warploom.observe import schema
from warploom.program.calls import end_label
from warploom.program.frames import SourceFrame, frames_of
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.ptx.printer import print_instruction

Frames = tuple[schema.CallFrame, ...]


def code_tables(
    program: Program, files: Sequence[str]
) -> tuple[tuple[schema.Code, ...], tuple[Frames, ...]]:
    """Returns the instructions, and the frames that they refer to; `files` are the names of the
    sources."""
    frames: dict[Frames, int] = {}
    registers = {register.name: index for index, register in enumerate(program.registers)}
    code: list[schema.Code] = []
    for block in program.blocks:
        for index in range(block.start, block.stop):
            made = program.instructions[index]
            operation, file = made.operation, file_of(made)
            line = made.location.written.line if file in files and made.location else 0
            code.append(
                schema.Code(
                    text=print_instruction(made),
                    file=files.index(file) if file in files else -1,
                    line=line,
                    ptx_line=made.span.line,
                    unit=operation.spec.unit.value,
                    is_branch=operation.has(Effect.BRANCHES),
                    is_barrier=Needs.HARDWARE_BARRIER in operation.kind.needs,
                    guarded=made.guard is not None,
                    hidden=index in program.hidden,
                    block=block.index,
                    reads=tuple(dict.fromkeys(registers[r.name] for r in reads(made))),
                    writes=tuple(dict.fromkeys(registers[r.name] for r in writes(made))),
                    targets=_targets(program, made),
                    frames=frames.setdefault(_frames(program, index), len(frames)),
                    calls=_calls(program, index, block.stop),
                    returns=index not in program.hidden and _returns(made),
                )
            )
    return tuple(code), tuple(frames)


def file_of(instruction: Instruction) -> str:
    """Returns the file that an instruction comes from, empty where nothing says so."""
    return instruction.location.written.file if instruction.location else ""


def _frames(program: Program, index: int) -> Frames:
    """Returns the functions that an instruction is in, without CUDA's own headers where there are
    others; the position in the innermost is the instruction's."""
    every = list(frames_of(program, index))
    own = [frame for frame in every if frame.location and not frame.location.in_toolkit] or every
    return tuple(
        schema.CallFrame(frame.function, _line(frame) if number else 0)
        for number, frame in enumerate(own)
    )


def _line(frame: SourceFrame) -> int:
    return frame.location.line if frame.location else 0


def _calls(program: Program, index: int, stop: int) -> bool:
    """Returns whether an instruction calls a function that is not inlined: what follows it in its
    block, up to the jump, is hidden (`program.calls`)."""
    if program.instructions[index].operation.kind is not OpKind.CALL:
        return False
    after = range(index + 1, stop)
    return len(after) > 0 and program.hidden.issuperset(after)


def _returns(instruction: Instruction) -> bool:
    """Returns whether an instruction is the return of a function that is not inlined: a branch to
    its end."""
    names = (one.name for one in instruction.operands if isinstance(one, Symbol))
    is_branch = instruction.operation.kind is OpKind.BRANCH
    return is_branch and any(name.startswith(end_label("")) for name in names)


def _targets(program: Program, made: Instruction) -> tuple[int, ...]:
    """Returns the basic blocks to which an instruction jumps."""
    if made.operation.kind is not OpKind.BRANCH:
        return ()
    names = (one.name for one in made.operands if isinstance(one, Symbol))
    return tuple(program.targets[name] for name in names if name in program.targets)
