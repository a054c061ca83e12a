"""Maps PTX to machine work: the operations that issue for each instruction, and the registers that
each waits for.

Dependences are those of the PTX's registers, after the folding that every compiler does: copies,
address conversions and offsets that an address can hold become no instruction, and a product whose
results are only summed becomes one instruction with each sum.

    mul.lo.s32 %r3, %r1, %r2;       no operation
    add.s32    %r5, %r3, %r4;  ->   one IMAD, which needs %r1, %r2 and %r4
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.isa.instruction import Address, Immediate, Instruction, Register
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import Operation, Unit
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.timing import layout as words
from warploom.timing.records import TimedOperation
from warploom.timing.work.classes import FREE, class_of, is_bulk
from warploom.timing.work.costs import QUEUED_UNITS, TICKS, UNITS, WorkCosts
from warploom.timing.work.operands import (
    barrier_of,
    fence_cycles,
    is_off_chip,
    moved_words,
    products_of,
    sleep_cycles,
)

Words = npt.NDArray[np.int64]

MOST_INLINE = 4
"""An instruction that becomes more machine instructions than this holds its warp until the last of
them: they depend on each other, and compilers call them as a function (an estimate; gpu-benches,
gpu-incore, shows divisions that do not overlap). The slots of others issue one after the other."""

_FUSABLE = ("mul", "shl")
"""Instructions that a sum can absorb."""


@dataclass(frozen=True)
class MachineWork:
    """Holds the operations and basic blocks of a kernel as the arrays that the engine replays.

    - `operations`, shape (operations, words of a `TimedOperation`); `registers`: those that they
      read and write.
    - `blocks`, shape (blocks, words of a `BlockOperations`): the basic blocks; of PTX then each
      once more without a barrier at its end.
    - `ptx_instructions`: by operation the PTX instruction that it belongs to, -1 for none; of a
      trace the index of its instruction in the trace's code.
    - `register_count`: how many distinct registers there are.
    """

    operations: Words
    registers: Words
    blocks: Words
    ptx_instructions: Words
    register_count: int


def work_of(
    program: Program, costs: WorkCosts, order: list[list[int]], polls: Iterable[int] = ()
) -> MachineWork:
    """Returns the machine work of a kernel on a device, with the instructions of each basic block
    in the order that `order` has for it (`timing.record.order`). At the loads with the indices
    `polls`, warps wait for each other."""
    return _PtxWorkBuilder(program, costs, frozenset(polls)).build(order)


class _PtxWorkBuilder:
    """Builds the machine work (the operations that issue, and the registers that each waits for) of
    a PTX program on a device."""

    def __init__(self, program: Program, costs: WorkCosts, polls: frozenset[int]) -> None:
        """Counts reads and writes of each register, and finds which instructions compilers fold and
        which registers are copies of others; builds no row yet. `polls`: the indices
        of the loads at which warps wait for each other."""
        self.program, self.costs, self._polls = program, costs, polls
        self.code = program.instructions
        self._numbers = {register: i for i, register in enumerate(program.registers)}
        self._registers: list[int] = []
        self._write_counts = Counter(r for instruction in self.code for r in writes(instruction))
        self._read_counts = Counter(r for instruction in self.code for r in reads(instruction))
        self._folded_classes = self._fold_instructions()
        self._aliases = self._find_aliases()

    def build(self, order: list[list[int]]) -> MachineWork:
        """Returns the work, with the instructions of each basic block in the given order; those
        that are hidden or issue nothing have no row. Its `blocks` are the basic blocks, and then
        each once more without a barrier that ends it."""
        rows: list[list[int]] = []
        blocks: list[list[int]] = []
        for indices in order:
            start = len(rows)
            for index in indices:
                row = None if index in self.program.hidden else self._operation_row(index)
                if row is not None:
                    rows.append(row)
            blocks.append([start, len(rows)])
        blocks += [[start, stop - _barriers_at_end(rows[start:stop])] for start, stop in blocks]
        operations = np.array(rows, np.int64).reshape(-1, TimedOperation.WORDS)
        return MachineWork(
            operations,
            np.array(self._registers, np.int64),
            np.array(blocks, np.int64),
            operations[:, TimedOperation.instruction],
            len(self._numbers),
        )

    # ---- what compilers fold ----------------------------------------------------------------

    def _fold_instructions(self) -> dict[int, str]:
        """Returns, by index, the class of each instruction that is folded, and of each sum that
        absorbs one. A folded one is FREE: an addition or subtraction of a constant whose result
        only addresses use, or a product or shift each use of which is a sum that can absorb it and
        absorbs no other. The sum has the class of a multiplication if it absorbs an integer
        product, else its own. An instruction that is guarded, or whose register others write, too,
        is not folded."""
        folded: dict[int, str] = {}
        users: dict[Register, list[int]] = defaultdict(list)
        address_uses: Counter[Register] = Counter()
        for index, instruction in enumerate(self.code):
            for register in set(reads(instruction)):
                users[register].append(index)
            for operand in instruction.operands:
                if isinstance(operand, Address) and isinstance(operand.base, Register):
                    address_uses[operand.base] += 1
        for index, instruction in enumerate(self.code):
            target = self._sole_target(instruction)
            if target is None:
                continue
            name = instruction.operation.name
            constant = any(isinstance(operand, Immediate) for operand in instruction.operands)
            if (
                name in ("add", "sub")
                and constant
                and address_uses[target] == self._read_counts[target]
            ):
                # All uses are addresses, which can hold the constant as their offset.
                folded[index] = FREE
            elif name in _FUSABLE and users[target]:
                # The product is needed on its own unless each of its uses is a sum that absorbs it.
                sums = [user for user in users[target] if user not in folded]
                if sums == users[target] and all(
                    self._can_fuse(user, instruction) for user in sums
                ):
                    folded[index] = FREE
                    folded.update((user, self._fused_class(instruction, user)) for user in sums)
        return folded

    def _sole_target(self, instruction: Instruction) -> Register | None:
        """Returns the register that an integer, logic or floating-point instruction writes, if it
        writes one, is unguarded and nothing else writes the register; else None."""
        units = (Unit.INTEGER, Unit.LOGIC, Unit.FLOAT)
        if instruction.operation.spec.unit not in units or instruction.guard is not None:
            return None
        targets = list(writes(instruction))
        return targets[0] if len(targets) == 1 and self._write_counts[targets[0]] == 1 else None

    def _can_fuse(self, user: int, instruction: Instruction) -> bool:
        """Returns whether instruction `user` can absorb the given product, or shift left by a
        constant: of floats an addition or subtraction that may contract with it, of integers an
        unsaturated addition, if the product is not the high half."""
        operation = self.code[user].operation
        if instruction.operation.spec.unit is Unit.FLOAT:
            return operation.name in ("add", "sub") and _contracts(instruction.operation, operation)
        if instruction.operation.name == "shl" and not isinstance(
            instruction.operands[2], Immediate
        ):
            return False
        modifiers = instruction.operation.modifiers
        fits = "lo" in modifiers or "wide" in modifiers or instruction.operation.name == "shl"
        integer = operation.spec.unit is Unit.INTEGER
        return integer and operation.name == "add" and "sat" not in operation.modifiers and fits

    def _fused_class(self, instruction: Instruction, user: int) -> str:
        """Returns the class of work of the sum `user` with the product or shift `instruction` that
        it absorbs: an integer multiply-add ("imul32", "imul64") for an integer product, for shifts
        and floats that of the sum."""
        if instruction.operation.name == "shl" or instruction.operation.spec.unit is Unit.FLOAT:
            return class_of(self.code[user])
        wide = "64" in instruction.operation.modifiers.text("type", "")
        return "imul64" if wide else "imul32"

    def _find_aliases(self) -> dict[Register, Register]:
        """Returns, for each register that is a copy of another one, that register: an instruction
        of class FREE without a guard reads one register and writes one, and each of both is written
        once in the program."""
        aliases: dict[Register, Register] = {}
        for index, instruction in enumerate(self.code):
            sources = list(reads(instruction))
            targets = list(writes(instruction))
            if (
                self._class(index) != FREE
                or instruction.guard
                or len(targets) != 1
                or len(sources) != 1
            ):
                continue
            if self._write_counts[targets[0]] == 1 and self._write_counts[sources[0]] == 1:
                aliases[targets[0]] = sources[0]
        return aliases

    def _class(self, index: int) -> str:
        """Returns the class of work of instruction `index`: the one that folding gives it if it is
        folded or absorbs a folded one, else `class_of`."""
        return self._folded_classes.get(index) or class_of(self.code[index])

    def _register_number(self, register: Register) -> int:
        """Returns the number of a register in the work's rows; for a copy, that of the register
        from which it was copied, through all copies between."""
        while register in self._aliases:
            register = self._aliases[register]
        return self._numbers[register]

    # ---- operations -------------------------------------------------------------------------

    def _operation_row(self, index: int) -> list[int] | None:
        """Returns the row (`TimedOperation`) of an instruction: a COPY for one that is folded
        (FREE), else with its cost and its kind, which is POLL for one of `polls`. Appends to the
        array of registers those that it needs (its sources and, but for a COPY, those that it
        writes) and those that it writes. Returns None, and appends nothing, for a folded one that
        reads no register or writes nothing but copies. A group product writes no register here, and
        needs none that it writes: the wait for its group writes them."""
        instruction, work_class = self.code[index], self._class(index)
        targets = [self._register_number(r) for r in writes(instruction)]
        sources = [self._register_number(r) for r in reads(instruction)]
        if instruction.operation.kind is OpKind.GROUP_PRODUCT:
            # Its registers are those of a later wait.
            sources, targets = [register for register in sources if register not in targets], []
        row = [0] * TimedOperation.WORDS
        row[TimedOperation.instruction] = index
        if work_class == FREE:
            if not sources or all(r in self._aliases for r in writes(instruction)):
                return None
            row[TimedOperation.kind] = words.COPY
        else:
            self._fill_cost(row, work_class, instruction)
        if index in self._polls:
            row[TimedOperation.kind] = words.POLL
        # A write waits for the earlier writer of its register, as it would on the scoreboard.
        self._append_registers(
            row, TimedOperation.needs_at, [*sources, *(() if work_class == FREE else targets)]
        )
        self._append_registers(row, TimedOperation.writes_at, targets)
        return row

    def _fill_cost(self, row: list[int], work_class: str, instruction: Instruction) -> None:
        """Fills in the unit, interval, slots, gap, latency, wait reason and kind of an
        instruction's row, by its class of work; tensor cores and tensor memory are occupied by the
        size of the operation, and the latency of the latter is as much longer. The gap between
        slots is `issue_cycles`, or the unit's interval if longer; more than MOST_INLINE slots
        spread over the latency."""
        cost = self.costs.of(work_class)
        interval = self.costs.interval(cost.unit)
        if work_class == "tensor":
            interval = self.costs.tensor_interval(products_of(instruction))
        if work_class == "tensor_memory":
            interval *= moved_words(instruction)
        queued = cost.unit in QUEUED_UNITS
        unit_latency = self.costs.unit_latency(cost.unit)
        gap = max(self.costs.timing.issue_cycles, interval // TICKS)
        if cost.slots > MOST_INLINE:
            gap = max(gap, (cost.latency - unit_latency) // (cost.slots - 1))
        row[TimedOperation.unit], row[TimedOperation.interval] = UNITS.index(cost.unit), interval
        row[TimedOperation.slots], row[TimedOperation.gap], row[TimedOperation.latency] = (
            cost.slots,
            gap,
            cost.latency,
        )
        if work_class == "tensor_memory":
            row[TimedOperation.latency] += interval // TICKS
        row[TimedOperation.wait] = words.SHORT_SCOREBOARD if queued else words.WAIT
        if work_class == "texture":
            row[TimedOperation.wait] = words.LONG_SCOREBOARD
        kind, x, y = self._kind(work_class, instruction)
        row[TimedOperation.kind], row[TimedOperation.x], row[TimedOperation.y] = kind, x, y

    def _kind(self, work_class: str, instruction: Instruction) -> tuple[int, int, int]:
        """Returns the kind of an instruction's operation, and its operands `x` and `y`
        (`TimedOperation`). The kind is the first that fits: BRANCH; EXIT; SLEEP or FENCE (x:
        cycles); BLOCK_BARRIER; WAIT_GROUP (x: groups that may be open, -1 for `wait_all`; y: 1 for
        products) or COMMIT, of copies or products; MEMORY of texels; PRODUCT for asynchronous
        products; SIGNAL; BULK (y: 1 in a group); MEMORY (x: 1 off chip; y: 1 for threads'
        asynchronous copies); ALU."""
        operation = instruction.operation
        if operation.has(Effect.BRANCHES):
            return words.BRANCH, 0, 0
        if operation.has(Effect.ENDS_THREAD):
            return words.EXIT, 0, 0
        if operation.kind is OpKind.SLEEP:
            return words.SLEEP, sleep_cycles(instruction, self.costs.timing), 0
        if operation.kind is OpKind.FENCE:
            return words.FENCE, fence_cycles(operation.text.split("."), self.costs.timing), 0
        if work_class == "barrier":
            return (words.BLOCK_BARRIER, *barrier_of(instruction))
        if operation.kind is OpKind.COPY_WAIT:
            count = next(iter(instruction.operands), None)  # none of `wait_all`
            return words.WAIT_GROUP, count.value if isinstance(count, Immediate) else -1, 0
        if operation.kind is OpKind.COPY_COMMIT:
            return words.COMMIT, 0, 0
        if operation.kind in _TEXEL_ACCESSES:
            return words.MEMORY, 1, 0
        if operation.kind is OpKind.GROUP_COMMIT:
            return words.COMMIT, 0, 1
        if operation.kind is OpKind.GROUP_WAIT:
            [pending] = instruction.operands[-1:]
            return words.WAIT_GROUP, pending.value if isinstance(pending, Immediate) else 0, 1
        if operation.kind in _ASYNCHRONOUS_PRODUCTS:
            return words.PRODUCT, 0, 0
        if operation.kind is OpKind.TENSOR_COMMIT:
            return words.SIGNAL, 0, 0
        if is_bulk(operation):
            return words.BULK, 1, int("bulk_group" in operation.modifiers)
        if work_class == "memory":
            off_chip = is_off_chip(instruction)
            return (
                words.MEMORY,
                int(off_chip),
                int(operation.kind in _COPIES_OF_THREADS),
            )
        return words.ALU, 0, 0

    def _append_registers(self, row: list[int], word: int, registers: Iterable[int]) -> None:
        """Appends registers, without repetitions, to the array of registers, and writes the index
        of the first and their number to the words `word` and `word` + 1 of the row."""
        unique = list(dict.fromkeys(registers))
        row[word], row[word + 1] = len(self._registers), len(unique)
        self._registers += unique


_ASYNCHRONOUS_PRODUCTS = (
    OpKind.GROUP_PRODUCT,
    OpKind.TENSOR_PRODUCT,
    OpKind.TENSOR_MEMORY_COPY,
)
"""Kinds of work of tensor cores, and of copies for them, that later instructions await."""

_COPIES_OF_THREADS = (OpKind.COPY, OpKind.COPY_ARRIVE)

_TEXEL_ACCESSES = (
    *(OpKind.TEXTURE_LOAD, OpKind.TEXTURE_GATHER),
    *(OpKind.SURFACE_LOAD, OpKind.SURFACE_STORE, OpKind.SURFACE_REDUCTION),
)
"""Kinds that access texels; queries of textures and surfaces access no memory."""


def _barriers_at_end(rows: list[list[int]]) -> int:
    """Returns 1 if the last row of a basic block is a barrier of the block, else 0."""
    return int(bool(rows) and rows[-1][TimedOperation.kind] == words.BLOCK_BARRIER)


def _contracts(product: Operation, total: Operation) -> bool:
    """Returns whether a floating-point product and a sum may become one multiply-add: the sum is a
    floating-point operation of the same type, and neither has a rounding modifier or saturation
    (PTX ISA, "Floating Point Instructions": add)."""
    both = (product.modifiers, total.modifiers)
    plain = not any(modifiers["rnd"] or "sat" in modifiers for modifiers in both)
    return plain and both[0]["type"] == both[1]["type"] and total.spec.unit is Unit.FLOAT
