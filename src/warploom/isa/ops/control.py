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
    src="target:label",
    unit=Unit.CONTROL,
    op_kind=OpKind.BRANCH,
    doc="goes to the target   PTX ISA: bra",
)
declare(
    "brx.idx{.uni}",
    src="index:u32, targets:targets",
    unit=Unit.CONTROL,
    op_kind=OpKind.INDEXED_BRANCH,
    doc="goes to the target that index chooses   PTX ISA: brx.idx",
)
declare(
    "call{.uni}",
    dst="returns:any",
    src="callee:function, arguments:any, targets:any?",
    unit=Unit.CONTROL,
    op_kind=OpKind.CALL,
    doc="calls the function   PTX ISA: call",
)
declare(
    "ret{.uni}",
    unit=Unit.CONTROL,
    op_kind=OpKind.RETURN,
    doc="returns to the caller   PTX ISA: ret",
)
declare("exit", unit=Unit.CONTROL, op_kind=OpKind.EXIT, doc="ends the thread   PTX ISA: exit")
declare(
    "alloca.type",
    dst="ptr:type",
    src="size:type, alignment:alignment?",
    unit=Unit.CONTROL,
    op_kind=OpKind.STACK_ALLOCATION,
    doc="ptr = size bytes of the thread's local memory   PTX ISA: alloca",
    type=("u32", "u64"),
)
declare(
    "stacksave.type",
    dst="d:type",
    unit=Unit.CONTROL,
    op_kind=OpKind.STACK_SAVE,
    doc="d = where the stack ends   PTX ISA: stacksave",
    type=("u32", "u64"),
)
declare(
    "stackrestore.type",
    src="a:type",
    unit=Unit.CONTROL,
    op_kind=OpKind.STACK_RESTORE,
    doc="the stack ends at a   PTX ISA: stackrestore",
    type=("u32", "u64"),
)
declare(
    "trap",
    unit=Unit.CONTROL,
    op_kind=OpKind.TRAP,
    doc="stops the kernel with an error   PTX ISA: trap",
)
declare(
    "nanosleep.u32",
    src="t:u32",
    unit=Unit.CONTROL,
    op_kind=OpKind.SLEEP,
    doc="waits about t ns   PTX ISA: nanosleep",
)
declare(
    "brkpt",
    unit=Unit.CONTROL,
    op_kind=OpKind.BREAKPOINT,
    doc="stops for a debugger, if there is one   PTX ISA: brkpt",
)
