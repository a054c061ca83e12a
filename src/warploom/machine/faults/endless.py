"""Names the loops of a kernel in the errors of launches that do not end: one beyond its limit of
instructions, and one that was interrupted."""

from __future__ import annotations

from warploom.core.errors import InstructionLimit
from warploom.machine.launch import Launch
from warploom.program.program import Program

SHOWN_LOOPS = 8
"""The most loops that an error names."""


def limit_error(program: Program, launch: Launch) -> InstructionLimit:
    """Returns the error of a launch that exceeded `max_instructions`, with the source lines of the
    kernel's loops."""
    return InstructionLimit(
        f"kernel {program.title} did not end within its limit of {launch.max_instructions:,}"
        f" warp instructions (max_instructions).\n    {_loop_advice(program)}"
    )


def interrupted(program: Program, interrupt: KeyboardInterrupt) -> KeyboardInterrupt:
    """Returns the interrupt of a launch with a message: the kernel, and the loops in which it may
    be; unchanged if it has a message."""
    if interrupt.args:
        return interrupt
    loops = loops_text(program)
    hint = (
        f": check whether {loops} can end, or limit the number of instructions that the launch "
        "executes (max_instructions)"
    )
    return KeyboardInterrupt(f"in kernel {program.title}{hint if loops else ''}")


def _loop_advice(program: Program) -> str:
    """Returns advice that names the kernel's loops, or states that it has none."""
    loops = loops_text(program)
    if not loops:
        return "It has no loop: raise the limit, or launch fewer blocks."
    return f"Check whether {loops} can end; if so, raise the limit."


def loops_text(program: Program) -> str:
    """Returns a text that names the source lines of the kernel's loops (ends of blocks with a
    successor at or before them), at most SHOWN_LOOPS; empty if it has none."""
    backward = [
        block.stop - 1
        for block in program.blocks
        if any(successor <= block.index for successor in block.successors)
    ]
    lines = list(dict.fromkeys(map(program.line, backward)))
    if not lines:
        return ""
    shown = ", ".join(lines[:SHOWN_LOOPS]) + (", ..." if len(lines) > SHOWN_LOOPS else "")
    return f"its loop at {shown}" if len(lines) == 1 else f"its loops at {shown}"
