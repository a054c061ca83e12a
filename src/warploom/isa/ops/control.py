"""Control flow, and stopping or waiting: PTX ISA, "Control Flow Instructions", "trap", "nanosleep".

They have no terms; memory on the stack is taken and given back as `program.alloca` has it. A
`call` has its returns as a vector before the callee and its arguments as a vector after it; an
indirect one names a prototype or a list of targets last.
"""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit, declare

declare(
    "bra{.uni}",
    OpKind.BRANCH,
    src="target:label",
    unit=Unit.CONTROL,
    doc="jumps to the target   PTX ISA: bra",
)
declare(
    "brx.idx{.uni}",
    OpKind.INDEXED_BRANCH,
    src="index:u32, targets:targets",
    unit=Unit.CONTROL,
    doc="jumps to the target that index selects   PTX ISA: brx.idx",
)
declare(
    "call{.uni}",
    OpKind.CALL,
    dst="returns:any",
    src="callee:function, arguments:any, targets:any?",
    unit=Unit.CONTROL,
    doc="calls the function   PTX ISA: call",
)
declare(
    "ret{.uni}",
    OpKind.RETURN,
    unit=Unit.CONTROL,
    doc="returns to the caller   PTX ISA: ret",
)
declare("exit", OpKind.EXIT, unit=Unit.CONTROL, doc="ends the thread   PTX ISA: exit")
declare(
    "alloca.type",
    OpKind.STACK_ALLOCATION,
    dst="ptr:type",
    src="size:type, alignment:alignment?",
    unit=Unit.CONTROL,
    doc="allocates size bytes on the thread's stack; ptr = their address   PTX ISA: alloca",
    type=("u32", "u64"),
)
declare(
    "stacksave.type",
    OpKind.STACK_SAVE,
    dst="d:type",
    unit=Unit.CONTROL,
    doc="d = the stack pointer   PTX ISA: stacksave",
    type=("u32", "u64"),
)
declare(
    "stackrestore.type",
    OpKind.STACK_RESTORE,
    src="a:type",
    unit=Unit.CONTROL,
    doc="the stack pointer = a   PTX ISA: stackrestore",
    type=("u32", "u64"),
)
declare(
    "trap",
    OpKind.TRAP,
    unit=Unit.CONTROL,
    doc="stops the kernel with an error   PTX ISA: trap",
)
declare(
    "nanosleep.u32",
    OpKind.SLEEP,
    src="t:u32",
    unit=Unit.CONTROL,
    doc="sleeps for about t ns   PTX ISA: nanosleep",
)
declare(
    "brkpt",
    OpKind.BREAKPOINT,
    unit=Unit.CONTROL,
    doc="stops in the debugger, if one is attached   PTX ISA: brkpt",
)
