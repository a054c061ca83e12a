"""Converts a kernel's trace to a record and its work, so that the model of time can replay it.

Traces have no control information: an instruction waits for the registers that it reads, which are
ready after the latency of the unit that writes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from warploom.abi.access_kinds import pack_kind
from warploom.core.errors import WarploomError
from warploom.cost.address_pattern import AddressPattern
from warploom.isa.instruction import Space
from warploom.machine.launch import Launch
from warploom.machinecode.opcodes import execution_of
from warploom.timing import layout as w
from warploom.timing.accelsim.files import KernelHead, TracedBlock
from warploom.timing.accelsim.lines import TracedInstruction, width_of
from warploom.timing.accelsim.writing import ZERO_REGISTER
from warploom.timing.machinecode.work import ON_CHIP_OPCODES, loads_or_stores
from warploom.timing.record.patterns import PatternTable
from warploom.timing.record.record import Record
from warploom.timing.records import (
    StreamEntry,
    TimedAccess,
    TimedOperation,
    TimedWarp,
    WarpStream,
)
from warploom.timing.work.costs import QUEUED_UNITS, UNITS, WorkCosts
from warploom.timing.work.operands import fence_cycles
from warploom.timing.work.operations import MachineWork

LOCAL_OPCODES = ("LDL", "STL")
_SHARED_BITS = 24
"""Shared and local memory occupy 16 MiB each of a trace's addresses."""

StaticInstruction = tuple[int, str, tuple[int, ...], tuple[int, ...], bool]
"""An instruction of the code: PC, opcode, destinations, sources, and whether it ends its warp."""


@dataclass(frozen=True)
class TracedCode:
    """Holds the instructions of a kernel that occur in its trace, in the order of their PCs;
    implements `timing.readings.NamedCode`."""

    name: str
    rows: tuple[StaticInstruction, ...]

    @property
    def title(self) -> str:
        """Returns the kernel's name."""
        return self.name

    @property
    def size(self) -> int:
        """Returns the number of instructions."""
        return len(self.rows)

    def opcode(self, instruction: int) -> str:
        """Returns the opcode of an instruction with its modifiers."""
        return self.rows[instruction][1]

    def line(self, instruction: int) -> str:
        """Returns the PC (in hexadecimal) and opcode of an instruction, by its index in `rows`, as
        `PC:opcode`, instead of a source line, which is not stored."""
        pc, opcode, *_ = self.rows[instruction]
        return f"{pc:04x}:{opcode}"


@dataclass
class TraceRecordBuilder:
    """Builds the record of a kernel's trace from its blocks, added in the order in which they are
    to run."""

    head: KernelHead
    launch: Launch
    patterns: PatternTable
    _numbers: dict[StaticInstruction, int] = field(default_factory=dict[StaticInstruction, int])
    _streams: list[list[int]] = field(default_factory=list[list[int]])
    _entries: list[list[int]] = field(default_factory=list[list[int]])
    _accesses: list[list[int]] = field(default_factory=list[list[int]])

    def add(self, block: TracedBlock) -> None:
        """Adds the streams (executed instructions) and accesses of all warps of a block, in the
        order of their numbers. Raises WarploomError, adding none, unless the block's warps are
        those from 0 to `launch.warps_per_block`, exclusive."""
        expected = set(range(self.launch.warps_per_block))
        if set(block.warps) != expected:
            raise WarploomError(
                f"block {block.index} of the trace has warps {sorted(block.warps)}, but "
                f"{len(expected)} are expected"
            )
        for warp in range(self.launch.warps_per_block):
            self._add_warp(block.warps[warp])

    def _add_warp(self, instructions: tuple[TracedInstruction, ...]) -> None:
        """Adds the stream of a warp, one entry for each executed instruction and one that ends it,
        and an access for each instruction with addresses. Each static instruction is a basic block
        of its own, numbered by first use (`_numbers`); the same instruction has another number
        where it is the last of a warp, since it then ends the warp."""
        first = len(self._entries)
        for index, instruction in enumerate(instructions):
            last = index == len(instructions) - 1
            # The last instruction of a warp is one of its own, as it ends the warp (`_kind`).
            key = (
                instruction.pc,
                instruction.opcode,
                instruction.destinations,
                instruction.sources,
                last,
            )
            number = self._numbers.setdefault(key, len(self._numbers))
            self._entries.append(StreamEntry.pack(block=number, access=len(self._accesses)))
            if instruction.addresses:
                pattern, delta = self._access(instruction)
                self._accesses.append(
                    TimedAccess.pack(instruction=number, pattern=pattern, delta=delta)
                )
        self._streams.append(WarpStream.pack(entries=first, stop=len(self._entries)))
        self._entries.append(StreamEntry.pack(access=len(self._accesses)))

    def _access(self, instruction: TracedInstruction) -> tuple[int, int]:
        """Returns the number of an access's address pattern in the table, to which it is added if
        it is new, and the base address that the pattern's offsets count from. Patterns in local
        memory hold the addresses themselves, so that their base is 0. In shared and local memory
        addresses are cut to 24 bits."""
        space, op = _space_of(instruction, self.head), _op_of(instruction.opcode)
        addresses = list(instruction.addresses)
        if space is not Space.GLOBAL:
            addresses = [address & ((1 << _SHARED_BITS) - 1) for address in addresses]
        kind = pack_kind(space, op, width_of(instruction.opcode))
        if space is Space.LOCAL:
            pattern, base = AddressPattern(instruction.mask, tuple(addresses)), 0
        else:
            pattern, base = AddressPattern.of(instruction.mask, addresses, self.patterns.unit)
        return self.patterns.number(0, kind, pattern), base

    def record(self) -> tuple[Record, TracedCode]:
        """Returns the record of all that was added, with instructions renumbered in the order of
        their PCs (of one PC, that which ends its warp last), and the code that has them in that
        order. Each warp has a stream of its own, and one site, of base address 0, so that
        accesses have their whole addresses. There are no polls, and no operations of the Tensor
        Memory Accelerator. The builder stays as it was."""

        def order(instruction: StaticInstruction) -> tuple[int, bool]:
            """Returns the sort key of an instruction: its PC, then whether it ends its warp."""
            pc, _, _, _, ends_warp = instruction
            return pc, ends_warp

        # So far, instructions are numbered by first use.
        static_instructions = sorted(self._numbers, key=order)
        position = np.zeros(max(1, len(static_instructions)), np.int64)
        position[[self._numbers[key] for key in static_instructions]] = np.arange(
            len(static_instructions)
        )
        entries = np.array(self._entries, np.int64).reshape(-1, StreamEntry.WORDS)
        entries[:, StreamEntry.block] = position[entries[:, StreamEntry.block]]
        accesses = np.array(self._accesses, np.int64).reshape(-1, TimedAccess.WORDS)
        accesses[:, TimedAccess.instruction] = position[accesses[:, TimedAccess.instruction]]
        warps = np.zeros((len(self._streams), 2), np.int64)
        warps[:, TimedWarp.stream] = np.arange(len(self._streams))
        record = Record(
            self.launch,
            len(self._streams) // self.launch.warps_per_block,
            np.array(self._streams, np.int64).reshape(-1, WarpStream.WORDS),
            entries,
            accesses,
            warps,
            self.patterns,
            poll_counts=np.zeros(len(self._streams), np.int64),
            bulk=np.zeros(max(1, len(static_instructions)), np.bool_),
            copies=False,
        )
        return record, TracedCode(self.head.name, tuple(static_instructions))


def _space_of(instruction: TracedInstruction, head: KernelHead) -> Space:
    """Returns the space of an access by its opcode (shared or local). That of LD, ST and ATOM is
    shared or local if the first address is in one of the two ranges of 16 MiB at the head's shared
    and local bases (a base of 0: no range). All others are global."""
    name = instruction.opcode.partition(".")[0]
    if name in ON_CHIP_OPCODES:
        return Space.SHARED
    if name in LOCAL_OPCODES:
        return Space.LOCAL
    size = 1 << _SHARED_BITS
    for space, base in ((Space.SHARED, head.shared_base), (Space.LOCAL, head.local_base)):
        if base and base <= instruction.addresses[0] < base + size and name in ("LD", "ST", "ATOM"):
            return space
    return Space.GLOBAL


def _op_of(opcode: str) -> str:
    """Returns "atomic" for opcodes of accesses that begin with ATOM or RED, "store" for SUST and
    those that begin with ST, and "load" for all others."""
    name = opcode.partition(".")[0]
    if name.startswith(("ATOM", "RED")):
        return "atomic"
    return "store" if name.startswith("ST") or name == "SUST" else "load"


def traced_work(code: TracedCode, costs: WorkCosts) -> MachineWork:
    """Returns the work of a trace's instructions for the engine: an operation for each, in the
    order of `code.rows`, in a basic block of its own. Registers are renumbered from 0 by first
    use."""
    registers: list[int] = []
    numbers: dict[int, int] = defaultdict(lambda: len(numbers))
    rows = [
        _operation_row(number, row, costs, registers, numbers)
        for number, row in enumerate(code.rows)
    ]
    blocks = np.arange(len(rows), dtype=np.int64)
    return MachineWork(
        np.array(rows, np.int64).reshape(-1, TimedOperation.WORDS),
        np.array(registers, np.int64),
        np.stack([blocks, blocks + 1], axis=1),
        blocks,
        len(numbers),
    )


def _operation_row(
    number: int,
    row: StaticInstruction,
    costs: WorkCosts,
    registers: list[int],
    numbers: dict[int, int],
) -> list[int]:
    """Returns the row (`TimedOperation`) of an instruction, whose index in the code is `number`:
    its unit ("control" for opcodes without one) and that unit's costs, its kind, the registers that
    it writes, and those that it waits for: its sources and the registers that it writes. Loads
    write as many consecutive registers as their width has words; the zero register is left out.
    Appends these registers to `registers`, as the numbers that `numbers` gives them, and the row
    has their offset and count."""
    _, opcode, destinations, sources, last = row
    name = opcode.partition(".")[0]
    unit = execution_of(name).unit
    unit = unit if unit in UNITS else "control"
    operation = [0] * TimedOperation.WORDS
    operation[TimedOperation.instruction], operation[TimedOperation.slots] = number, 1
    operation[TimedOperation.unit] = UNITS.index(unit)
    # Traces do not state the products of a tensor instruction: 1024 is an estimate.
    operation[TimedOperation.interval] = (
        costs.tensor_interval(1024) if unit == "tensor" else costs.interval(unit)
    )
    operation[TimedOperation.latency] = costs.unit_latency(unit)
    operation[TimedOperation.gap] = costs.timing.issue_cycles
    operation[TimedOperation.wait] = w.SHORT_SCOREBOARD if unit in QUEUED_UNITS else w.WAIT
    operation[TimedOperation.kind], operation[TimedOperation.x], operation[TimedOperation.y] = (
        _kind(name, opcode, costs, ends=last)
    )
    written = [
        register + offset
        for register in destinations
        for offset in range(max(1, width_of(opcode) // 4))
    ]
    # Loads write consecutive registers, which the trace names by the first one.
    if not name.startswith("LD"):
        written = list(destinations)
    for word, registers_of in (
        (TimedOperation.needs_at, (*sources, *written)),
        (TimedOperation.writes_at, written),
    ):
        unique = list(
            dict.fromkeys(register for register in registers_of if register != ZERO_REGISTER)
        )
        operation[word], operation[word + 1] = len(registers), len(unique)
        registers += [numbers[register] for register in unique]
    return operation


def _kind(name: str, opcode: str, costs: WorkCosts, *, ends: bool) -> tuple[int, int, int]:
    """Returns the kind of an operation, by the name of its opcode, and its operands `x` and `y`
    (`TimedOperation`). It is EXIT if it `ends` its warp, whatever the opcode. Others are FENCE (x:
    cycles), BLOCK_BARRIER, COMMIT, MEMORY (x: 1 unless shared memory; y: 1 for LDGSTS, which joins
    a group of copies), BRANCH, or else ALU. Operands not named are 0."""
    if ends:
        return w.EXIT, 0, 0
    if name in ("MEMBAR", "FENCE"):
        parts = [part.lower() for part in opcode.split(".")[1:]]
        return w.FENCE, fence_cycles(parts, costs.timing), 0
    if name == "BAR":
        return w.BLOCK_BARRIER, 0, 0
    if name == "LDGDEPBAR":
        return w.COMMIT, 0, 0
    if loads_or_stores(name):
        return w.MEMORY, int(name not in ON_CHIP_OPCODES), int(name == "LDGSTS")
    return (w.BRANCH if name in ("BRA", "BRX", "JMP", "CALL", "RET") else w.ALU), 0, 0


def record_of(
    head: KernelHead, launch: Launch, patterns: PatternTable, blocks: Iterable[TracedBlock]
) -> tuple[Record, TracedCode]:
    """Returns the record of a kernel's trace, and its code. `patterns` is the table that its
    address patterns are added to. Raises WarploomError if a block has other warps than the
    launch's, or the number of blocks is not the grid's; indices of blocks are not checked."""
    recorder = TraceRecordBuilder(head, launch, patterns)
    count = 0
    for block in blocks:
        recorder.add(block)
        count += 1
    if count != launch.blocks:
        raise WarploomError(
            f"the trace of {head.name} has {count} blocks, but the grid has {launch.blocks}"
        )
    return recorder.record()
