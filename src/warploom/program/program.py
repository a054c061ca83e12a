"""A kernel ready to run: one flat list of instructions, cut into basic blocks, with its storage.

Both machines run this form and number everything by it. `program.build` makes it from a module:
direct calls are inlined (a callee's `ret` becomes a branch to its continuation), so that one
control-flow graph covers the whole kernel and its post-dominators are where lanes meet again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

from warploom.core.mangled import shown_name
from warploom.core.source import Location
from warploom.program.digest import digest
from warploom.program.dominance import post_dominators
from warploom.program.liveness import live_in
from warploom.program.requests.tensor_memory import uses_tensor_memory
from warploom.ptx.ir import Instruction, Module, Register, Space

PARAMETERS = "the parameters of the kernel"
"""The name of the variable behind `Program.globals` in which a kernel's parameters stand once more,
where it takes their generic addresses."""


@dataclass(frozen=True, slots=True)
class Site:
    """The origin of an instruction of a program: function, and its index among the
    instructions of that function. Copies of one inlined function have equal sites; `copy` tells
    them apart."""

    function: str
    index: int
    copy: InlinedCopy | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return self.index


@dataclass(frozen=True, slots=True)
class InlinedCopy:
    """The copy of a function's body in which an instruction stands: names of its registers and
    variables end in `suffix`. `call` and `location` are those of the `call` in whose place it
    stands, None for a function that is not inlined; `line` is where that stands in PTX."""

    suffix: str
    call: Site | None = None
    location: Location | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class ProgramBlock:
    """A basic block: instructions `start` up to but not including `stop`.

    Only the last instruction may be a `bra`, `brx`, `ret`, `exit`, `trap`, or a barrier that can
    suspend the warp. `successors`: for a guarded branch (target, next); for a plain branch
    (target,); for an indexed one all its targets, then the next block if it is guarded; for a
    guarded `exit` or `ret` (exit, next); for anything else (next,). Block ids; the virtual exit is
    `Program.exit`.
    """

    index: int
    start: int
    stop: int
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VariableSlot:
    """The storage of a variable.

    `offset` is in bytes: from the start of the kernel's parameters (space PARAM), of the block's
    shared memory (SHARED), or of the thread's local memory (LOCAL). For GLOBAL and CONST it is the
    index into `Program.globals`, whose addresses a launch provides. `frame` is True for a `.param`
    variable of a call: thread-private storage that only `ld.param` and `st.param` reach, at
    `offset` bytes from the start of the thread's frame.
    """

    space: Space
    offset: int
    size: int
    frame: bool = False


@dataclass(frozen=True)
class Program:
    """One kernel, linked and laid out.

    `targets` maps label names to blocks, `onward[b]` are the successors of block b inside its own
    function: behind a call, not where that leads. `sites[i]` says where instruction i is from.
    `registers` are all registers, in a fixed order. Sizes are in bytes; `shared_bytes` covers
    static variables, dynamic shared memory begins at `dynamic_shared_offset`; the system's own
    comes last.

    Calls that are not inlined (`program.calls`): `depth` is the register that says how many of
    them a thread is in, None without any. `hidden` instructions keep their stack and are not
    counted; accesses of `private` ones to that stack are not.
    """

    name: str
    module: Module
    instructions: tuple[Instruction, ...]
    sites: tuple[Site, ...]
    blocks: tuple[ProgramBlock, ...]
    targets: Mapping[str, int]
    onward: tuple[tuple[int, ...], ...]
    registers: tuple[Register, ...]
    places: Mapping[str, VariableSlot]
    globals: tuple[str, ...]
    parameter_bytes: int
    frame_bytes: int
    shared_bytes: int
    dynamic_shared_offset: int
    local_bytes: int
    reserved_shared_bytes: int = 0
    depth: Register | None = None
    hidden: frozenset[int] = frozenset()
    private: frozenset[int] = frozenset()
    kept: dict[object, object] = field(default_factory=dict[object, object], compare=False)
    """What machines keep of a program for as long as it lives, such as its machine code."""

    @property
    def title(self) -> str:
        """Return the kernel as messages show it: with its C++ parameters, if its name is
        mangled."""
        return shown_name(self.name)

    @property
    def size(self) -> int:
        """Return how many instructions it has."""
        return len(self.instructions)

    def opcode(self, instruction: int) -> str:
        """Return the operation of instruction i with its modifiers, as text."""
        return self.instructions[instruction].operation.text

    @property
    def exit(self) -> int:
        """Return the id of the virtual block that every path ends in."""
        return len(self.blocks)

    @cached_property
    def digest(self) -> str:
        """Stands for all that its machine code depends on: not for its name, the rest of its
        module, or the source lines."""
        excluded = ("name", "module", "sites")
        names = (each.name for each in fields(self) if each.compare and each.name not in excluded)
        return digest(*(getattr(self, name) for name in names))

    @cached_property
    def has_tensor_memory(self) -> bool:
        """True where its blocks have tensor memory, behind their shared memory."""
        return uses_tensor_memory(self.instructions)

    @cached_property
    def reconvergence(self) -> tuple[int, ...]:
        """Return the immediate post-dominator of each block: `exit` where there is none but the
        end."""
        return post_dominators(self.onward)

    @cached_property
    def live_in(self) -> tuple[frozenset[Register], ...]:
        """Return the registers that some path from the start of a block reads before it writes
        them, for each block."""
        return live_in(self.instructions, self.blocks, self.registers)

    def with_all_live(self) -> Program:
        """Returns this program with every register live everywhere, as a debugger sees it: machine
        code made of it keeps them all."""
        return _AllLive(**{each.name: getattr(self, each.name) for each in fields(self)[:-1]})

    def line(self, instruction: int) -> str:
        """Returns the place of instruction i, as `file:line` of the source, else of the PTX: for
        code of CUDA's headers, or without a place of its own, that of the call that leads to it."""
        ptx_instruction = self.instructions[instruction]
        location, site = ptx_instruction.location, self.sites[instruction]
        place = location.written if location else None
        while (place is None or place.in_toolkit) and site.copy and site.copy.call:
            if site.copy.location:
                place = site.copy.location.written
            site = site.copy.call
        return str(place or ptx_instruction.span)


class _AllLive(Program):
    """A program whose registers are all live everywhere."""

    @cached_property
    def live_in(self) -> tuple[frozenset[Register], ...]:
        return (frozenset(self.registers),) * len(self.blocks)
