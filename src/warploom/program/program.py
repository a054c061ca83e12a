"""Defines `Program`: a kernel as one flat list of instructions, cut into basic blocks, with the
offsets of its variables.

Both machines execute a `Program` and number instructions, blocks and accesses by it.
`program.build` makes it from a module. Direct calls are inlined (a callee's `ret` becomes a branch
to its continuation), so that one control-flow graph covers the whole kernel and the immediate
post-dominator of a branch is its reconvergence point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from warploom.core.lazy import cached_property
from warploom.core.mangled import shown_name
from warploom.core.source import Location
from warploom.isa.instruction import Instruction, Register, Space
from warploom.isa.kinds import Effect, Needs
from warploom.program.cfg import ProgramBlock
from warploom.program.digest import digest
from warploom.program.dominance import post_dominators
from warploom.program.liveness import live_in
from warploom.program.uses import special_registers
from warploom.ptx.module import Module

PARAMETERS = "%parameters"
"""Names the variable that holds a second copy of the kernel's parameters, in kernels that use
generic addresses of them; its address follows those of `Program.globals` in a launch."""


@dataclass(frozen=True, slots=True)
class Site:
    """The origin of an instruction: a function, and the index of the instruction in that function.
    Copies of one inlined function have equal sites, which differ only in `copy`."""

    function: str
    index: int
    copy: InlinedCopy | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        """Returns the index alone, which is equal for equal sites and cheaper than a hash of the
        function's name as well."""
        return self.index


@dataclass(frozen=True, slots=True)
class InlinedCopy:
    """A copy of a function's body, in which the names of registers and variables end in `suffix`.
    `call` and `location` belong to the `call` that the body replaces, and are None for a function
    that is not inlined; `line` is the line of that call in the PTX."""

    suffix: str
    call: Site | None = None
    location: Location | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class VariableSlot:
    """The memory that a variable occupies.

    `offset` is in bytes from the start of the kernel's parameters (space PARAM), of the thread
    block's shared memory (SHARED), or of the thread's local memory (LOCAL). For GLOBAL and CONST it
    is an index into `Program.globals`, whose addresses a launch provides. `frame` is True for a
    `.param` variable of a call: thread-private storage that only `ld.param` and `st.param` access,
    at `offset` bytes from the start of the thread's frame.
    """

    space: Space
    offset: int
    size: int
    frame: bool = False


@dataclass(frozen=True)
class Program:
    """A kernel with its calls resolved, its basic blocks, and the layout of its variables.

    `targets` maps labels to blocks. `local_successors[b]` are the successors of block b in its own
    function: the return point of a call, not the callee's entry. `sites[i]` is the origin of
    instruction i, `slots` the memory of variables by name. `registers` are all registers, in a
    fixed order. Sizes are in bytes; `shared_bytes` covers static variables, then dynamic shared
    memory begins at `dynamic_shared_offset`; `reserved_shared_bytes` for the system come last.

    `all_live`: every register counts as live everywhere (`with_all_live`).

    For calls that are not inlined (`program.calls`): `depth` is the register with the number of
    calls that a thread is in, None without such calls. `hidden` instructions maintain the stack of
    calls and are not counted; `private` ones access that stack, and those accesses are not counted
    either.
    """

    name: str
    module: Module = field(compare=False)
    instructions: tuple[Instruction, ...]
    sites: tuple[Site, ...] = field(compare=False)
    blocks: tuple[ProgramBlock, ...]
    targets: Mapping[str, int]
    local_successors: tuple[tuple[int, ...], ...]
    registers: tuple[Register, ...]
    slots: Mapping[str, VariableSlot]
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
    all_live: bool = False
    cache: dict[object, object] = field(default_factory=dict[object, object], compare=False)
    """Caches what machines derive from the program, such as machine code, by keys that they choose;
    it lives as long as the program."""

    @property
    def title(self) -> str:
        """Returns the name of the kernel for messages: with its C++ parameters, if the name is
        mangled."""
        return shown_name(self.name)

    @property
    def size(self) -> int:
        """Returns the number of instructions."""
        return len(self.instructions)

    def opcode(self, instruction: int) -> str:
        """Returns the operation of an instruction with its modifiers, as text."""
        return self.instructions[instruction].operation.text

    def terminator(self, block: ProgramBlock) -> Instruction:
        """Returns the last instruction of a basic block."""
        return self.instructions[block.stop - 1]

    @property
    def exit(self) -> int:
        """Returns the id of the virtual block in which every path ends."""
        return len(self.blocks)

    @cached_property
    def digest(self) -> str:
        """Returns a digest of everything that the kernel's machine code depends on, which excludes
        its name, the rest of its module, and source lines."""
        names = (field.name for field in fields(self) if field.compare and field.name != "name")
        return digest(*(getattr(self, name) for name in names))

    @cached_property
    def needs(self) -> Needs:
        """Returns the flags of all that its operations need of a launch and of machine code
        (`Needs`: suspension of warps, queues of asynchronous work, tensor memory ...)."""
        needs = Needs.NONE
        for kind in {instruction.operation.kind for instruction in self.instructions}:
            needs |= kind.needs
        return needs

    @property
    def has_tensor_memory(self) -> bool:
        """Returns whether thread blocks of the kernel have tensor memory."""
        return Needs.TENSOR_MEMORY in self.needs

    @cached_property
    def shows_multiprocessor(self) -> bool:
        """Returns whether the kernel reads `%smid`, and so sees where its blocks are resident."""
        return "%smid" in special_registers(self.instructions)

    @cached_property
    def exit_blocks(self) -> frozenset[int]:
        """Returns the blocks that only end threads: compilers merge all early returns of a kernel
        into one, so that lanes which branch to it have returned."""
        return frozenset(
            block.index
            for block in self.blocks
            if block.stop - block.start == 1
            and self.instructions[block.start].guard is None
            and self.instructions[block.start].operation.has(Effect.ENDS_THREAD)
        )

    @cached_property
    def reconvergence(self) -> tuple[int, ...]:
        """Returns the immediate post-dominator of each block by `local_successors`, in which a call
        is followed by its return point; `exit` if no block post-dominates it."""
        return post_dominators(self.local_successors)

    @cached_property
    def live_in(self) -> tuple[frozenset[Register], ...]:
        """Returns, for each block, the registers that some path from its start reads before it
        writes them, and the depth of calls, which reconvergence reads; all registers if
        `all_live`."""
        if self.all_live:
            return (frozenset(self.registers),) * len(self.blocks)
        live = live_in(self.instructions, self.blocks, self.registers)
        if self.depth is None:
            return live
        return tuple(registers | {self.depth} for registers in live)

    def with_all_live(self) -> Program:
        """Returns this program with every register live everywhere, for debuggers: machine code
        compiled from it retains all registers."""
        # A cache of its own: code that was cached for this program keeps fewer registers.
        return replace(self, all_live=True, cache={})

    def line(self, instruction: int) -> str:
        """Returns the source line of an instruction, as `file:line`; that of the PTX if there is no
        source.

        An instruction of a CUDA header, or one without a location, gets the line of the innermost
        inlined call around it that has a location outside of the toolkit (if none has, of the
        outermost one with a location).
        """
        ptx_instruction = self.instructions[instruction]
        location, site = ptx_instruction.location, self.sites[instruction]
        source_line = location.written if location else None
        while (source_line is None or source_line.in_toolkit) and site.copy and site.copy.call:
            if site.copy.location:
                source_line = site.copy.location.written
            site = site.copy.call
        return str(source_line or ptx_instruction.span)
