"""Maps machine instructions to the work of the engine: the operation that each issues, and the
registers and scoreboards that it waits for.

Results with a fixed latency are ready when the stall counts of the control information have passed;
results of a variable latency, for which the instruction sets a barrier, when their unit or the
memory answers. Source: the control information (`machinecode.control`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit
from warploom.machinecode.control import Control
from warploom.machinecode.counted import Matching
from warploom.machinecode.listing import MachineInstruction
from warploom.machinecode.opcodes import execution_of
from warploom.machinecode.operands import Kind
from warploom.program.program import Site
from warploom.timing import layout as w
from warploom.timing.records import TimedOperation
from warploom.timing.work.costs import QUEUED_UNITS, UNITS, WorkCosts
from warploom.timing.work.operands import (
    TENSOR_CORES,
    barrier_of,
    fence_cycles,
    products_of,
    sleep_cycles,
)
from warploom.timing.work.operations import MachineWork

_SHARED = ("LDS", "STS", "ATOMS", "LDSM", "STSM", "REDS")
ON_CHIP_OPCODES = (*_SHARED, "LDC")
"""Opcodes whose accesses stay on the SM."""
_NO_MEMORY = ("LDC", "CCTL", "CCTLL", "LDGDEPBAR", "QSPC", "ARRIVES", "MATCH", "LDTM", "STTM")
BULK_OPCODES = ("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UBLKCP", "UBLKRED", "UBLKPF")
"""Copies, reductions and prefetches by the Tensor Memory Accelerator."""
_COMMITS = ("LDGDEPBAR", "UTMACMDFLUSH")
"""Opcodes that close the open group of copies."""
_MBARRIER = "SYNCS"
"""The opcode that arrives at mbarriers and looks at their phases, in shared memory."""
_GROUP_PRODUCTS = {"HGMMA": 16, "IGMMA": 8, "BGMMA": 1, "QGMMA": 8}
"""Products of a warp group, by the bits of an element (HGMMA: 32 with TF32). They read and write
registers while they run, and end with a group of products, for which WARPGROUP.DEPBAR waits. An
operand "gsb0" closes the group."""
_PRODUCTS = (OpKind.MATRIX_PRODUCT, OpKind.WARP_MATRIX_PRODUCT, OpKind.GROUP_PRODUCT)

_DOUBLE_PRODUCTS = {"HI", "WIDE"}
"""Modifiers of integer products of 64 bits (`TimingSpec.imul_double`). In chains by 32 warps, an
H100 takes 3.8 cycles of a scheduler for IMAD.HI, 1.8 for IMAD, and 8.0 for IMAD.WIDE and two IMAD
(validation/hardware/h100_probes.json: mul_hi_u32, mad_s32, mad_u64)."""

_FUSED = {"imul": "fp32", "shift": "int"}
"""Units of one pipeline: where both have the same number of lanes, they are one unit."""


def loads_or_stores(name: str) -> bool:
    """Returns whether an opcode (without modifiers) has accesses by the texture unit, or by the
    load/store unit: all of that but _NO_MEMORY, which access constants, tensor memory or none."""
    unit = execution_of(name).unit
    return unit == "texture" or (unit == "lsu" and name not in _NO_MEMORY)


def accesses_memory(instruction: MachineInstruction) -> bool:
    """Returns whether records have accesses of an instruction: if it loads or stores, copies by the
    Tensor Memory Accelerator, or is of mbarriers, unless it is off."""
    name = instruction.name
    accesses = loads_or_stores(name) or name in BULK_OPCODES or name == _MBARRIER
    return accesses and not instruction.is_off


def indexes_constants(instruction: MachineInstruction) -> bool:
    """Returns whether an instruction is an LDC whose address depends on a register, so that it can
    differ from lane to lane; other LDC have a fixed address, of which records have no access."""
    return instruction.name == "LDC" and any(name[0] == "R" for name in instruction.reads)


def machine_work(
    matching: Matching, costs: WorkCosts, starts: Sequence[int], stops: Sequence[int]
) -> MachineWork:
    """Returns, in the form that the engine replays, the operations and registers of machine code,
    an operation for each instruction of the listing; its basic blocks are the spans from `starts`
    to `stops` (exclusive). `matching` is the listing, paired with the PTX program that it was
    compiled from. Register numbers stand for the instructions' registers and scoreboards."""
    return _MachineCodeWorkBuilder(matching, costs).build(starts, stops)


class _MachineCodeWorkBuilder:
    """Builds the work (`timing.work.operations.MachineWork`) of a listing of machine code, in the
    form that the engine replays."""

    def __init__(self, matching: Matching, costs: WorkCosts) -> None:
        """Stores the arguments, and the index of the first PTX instruction of each site.
        `matching`: the listing and the PTX program that it was compiled from; `costs`: those of the
        device."""
        self._matching, self._costs = matching, costs
        self._numbers: dict[str, int] = {}
        self._registers: list[int] = []
        program = matching.program
        self._first_with_site: dict[Site, int] = {}
        for index, site in enumerate(program.sites):
            self._first_with_site.setdefault(site, index)

    def build(self, starts: Sequence[int], stops: Sequence[int]) -> MachineWork:
        """Returns the work: an operation for each instruction of the listing, in order, and a basic
        block for each span from `starts` to `stops` (exclusive). The first instruction has no
        register reads."""
        code = self._matching.listing.instructions
        rows = [self._operation_row(index, instruction) for index, instruction in enumerate(code)]
        for row, before, instruction in zip(rows[1:], code, code[1:], strict=False):
            row[TimedOperation.reads] = _register_reads(instruction, before)
        spans = [[start, stop] for start, stop in zip(starts, stops, strict=True)]
        return MachineWork(
            np.array(rows, np.int64).reshape(-1, TimedOperation.WORDS),
            np.array(self._registers, np.int64),
            np.array(spans, np.int64),
            np.array([self._ptx_index(instruction) for instruction in code], np.int64),
            len(self._numbers),
        )

    def _ptx_index(self, instruction: MachineInstruction) -> int:
        """Returns the index of the first PTX instruction with the site (the source of a machine
        instruction, `Matching.site_of`) from which a machine instruction was made, or -1."""
        site = self._matching.site_of(instruction)
        return self._first_with_site.get(site, -1) if site is not None else -1

    def _operation_row(self, index: int, instruction: MachineInstruction) -> list[int]:
        """Returns the row (`TimedOperation`) of machine instruction `index`: its unit and costs,
        its stall count, its kind, and the registers and scoreboards that it writes and waits for;
        it waits for earlier writers of the registers that it writes, too. Others wait for it with
        SHORT_SCOREBOARD if it sets a write barrier on a queued unit, LONG_SCOREBOARD for textures,
        else WAIT. Register reads are the caller's."""
        row = [0] * TimedOperation.WORDS
        unit = self._unit(instruction)
        row[TimedOperation.instruction], row[TimedOperation.slots] = index, 1
        row[TimedOperation.unit], row[TimedOperation.interval] = (
            UNITS.index(unit),
            self._interval(unit, instruction),
        )
        row[TimedOperation.latency] = self._latency(unit, instruction)
        is_queued = instruction.control.write_barrier is not None and unit in QUEUED_UNITS
        row[TimedOperation.wait] = w.SHORT_SCOREBOARD if is_queued else w.WAIT
        if unit == "texture":
            row[TimedOperation.wait] = w.LONG_SCOREBOARD
        row[TimedOperation.stall] = instruction.control.stall
        row[TimedOperation.kind], row[TimedOperation.x], row[TimedOperation.y] = self._kind(
            unit, instruction
        )
        read, written = instruction.reads, instruction.writes
        if instruction.name in _GROUP_PRODUCTS:
            read, written = tuple(name for name in read if name not in written), ()
        needs, writes = _dependences(read, written, instruction.control)
        self._append_registers(row, TimedOperation.needs_at, [*needs, *written])
        self._append_registers(row, TimedOperation.writes_at, writes)
        return row

    def _unit(self, instruction: MachineInstruction) -> str:
        """Returns the name of the unit that executes an instruction: "fp32" for "imul" and "int"
        for "shift" if both have as many lanes on this device, so that they are one pipeline;
        "control" for a unit that the model does not have, and for an instruction that is off."""
        if instruction.is_off:
            return "control"
        unit, timing = execution_of(instruction.name).unit, self._costs.timing
        fused = _FUSED.get(unit, unit)
        lanes = f"lanes_{unit}"
        if fused != unit and getattr(timing, lanes) == getattr(timing, f"lanes_{fused}"):
            return fused
        return unit if unit in UNITS else "control"

    def _interval(self, unit: str, instruction: MachineInstruction) -> int:
        """Returns the ticks for which an instruction occupies its unit, more for
        _DOUBLE_PRODUCTS; on tensor cores, those of
        the multiply-adds of a warp group's product, or of all of the PTX matrix product from which
        another one was made (not divided among several instructions), or of one multiply-add if it
        was made from none."""
        if instruction.name in _GROUP_PRODUCTS:
            return self._costs.tensor_interval(_group_products(instruction))
        if unit == "tensor":
            index = self._ptx_index(instruction)
            ptx = self._matching.program.instructions[index] if index >= 0 else None
            matrix = ptx is not None and ptx.operation.kind in _PRODUCTS
            products = products_of(ptx) if ptx is not None and matrix else 1
            return self._costs.tensor_interval(products)
        multiplies = execution_of(instruction.name).unit == "imul"
        is_double = multiplies and not _DOUBLE_PRODUCTS.isdisjoint(instruction.modifiers)
        return self._costs.interval(unit) * (self._costs.timing.imul_double if is_double else 1)

    def _latency(self, unit: str, instruction: MachineInstruction) -> int:
        """Returns the cycles from the issue to the result of an instruction that sets a write
        barrier (a variable latency): of constants for LDC, else of its unit ("int" for control and
        load/store); 1 for others, whose latency is in the stall counts."""
        timing = self._costs.timing
        if instruction.name in _GROUP_PRODUCTS:
            return self._costs.unit_latency(unit)
        if instruction.control.write_barrier is None:
            return 1
        if instruction.name == "LDC":
            return timing.latency_constant
        return self._costs.unit_latency("int" if unit in ("control", "lsu") else unit)

    def _kind(self, unit: str, instruction: MachineInstruction) -> tuple[int, int, int]:
        """Returns the kind of an operation of a unit, and its operands `x` and `y`
        (`TimedOperation`), by its opcode: EXIT (not with a guard, which may leave the warp
        running), SLEEP, FENCE, BLOCK_BARRIER, COMMIT, BULK (y: 1 in a group), WAIT_GROUP (of copies
        or products), PRODUCT (y: 1 if it closes its group), MEMORY (x: 1 if off chip; y: 1 for
        LDGSTS), BRANCH for control instructions that the warp has to resolve before it goes on (x:
        cycles to its next issue), ALU for all others. Barriers and sleeps get their operands from
        the PTX instruction from which they were made; without one they are ALU."""
        index = self._ptx_index(instruction)
        ptx = self._matching.program.instructions[index] if index >= 0 else None
        timing = self._costs.timing
        if instruction.name == "EXIT" and not instruction.guard:
            return w.EXIT, 0, 0
        if (
            instruction.name == "NANOSLEEP"
            and ptx is not None
            and ptx.operation.kind is OpKind.SLEEP
        ):
            return w.SLEEP, sleep_cycles(ptx, timing), 0
        if instruction.name in ("MEMBAR", "FENCE"):
            return (
                w.FENCE,
                fence_cycles([modifier.lower() for modifier in instruction.modifiers], timing),
                0,
            )
        if (
            instruction.name == "BAR"
            and ptx is not None
            and ptx.operation.spec.unit is Unit.BARRIER
        ):
            return w.BLOCK_BARRIER, *barrier_of(ptx)
        if instruction.name in _COMMITS:
            return w.COMMIT, 0, 0
        if instruction.name in BULK_OPCODES:
            joins = ptx is not None and "bulk_group" in ptx.operation.modifiers
            return w.BULK, 1, int(joins)
        if "DEPBAR" in (instruction.name, *instruction.modifiers) and len(instruction.operands) > 1:
            of_products = instruction.name == "WARPGROUP"
            return w.WAIT_GROUP, int(instruction.operands[1].text, 0), int(of_products)
        if instruction.name in _GROUP_PRODUCTS:
            return w.PRODUCT, 0, int(any(one.text == "gsb0" for one in instruction.operands))
        if accesses_memory(instruction) or indexes_constants(instruction):
            if unit == "texture":
                return w.MEMORY, 1, 0
            return (
                w.MEMORY,
                int(instruction.name not in (*ON_CHIP_OPCODES, _MBARRIER)),
                int(instruction.name == "LDGSTS"),
            )
        if instruction.name == "EXIT":
            return w.BRANCH, timing.latency_exit, 0
        if instruction.name == "BSYNC":
            return w.BRANCH, timing.latency_convergence, 0
        if unit == "control" and instruction.targets and instruction.name != "BSSY":
            return w.BRANCH, timing.latency_branch, 0
        return w.ALU, 0, 0

    def _append_registers(self, row: list[int], word: int, names: Sequence[str]) -> None:
        """Appends registers, without repetitions, to the array of registers, and writes the index
        of the first and their number to the words `word` and `word` + 1 of the row. A name that is
        new gets the next register number."""
        unique = list(dict.fromkeys(names))
        row[word], row[word + 1] = len(self._registers), len(unique)
        self._registers += [self._numbers.setdefault(name, len(self._numbers)) for name in unique]


def _group_products(instruction: MachineInstruction) -> int:
    """Returns the multiply-adds of a warp group's product for each tensor core, converted to those
    of 16 bits, by the shape in its modifiers ("64x128x16")."""
    bits = 32 if "TF32" in instruction.modifiers else _GROUP_PRODUCTS[instruction.name]
    shape = next(one for one in instruction.modifiers if one.count("x") == 2)
    rows, columns, depth = map(int, shape.split("x"))
    return max(1, rows * columns * depth * bits // 16 // TENSOR_CORES)


def _dependences(
    reads: Sequence[str], writes: Sequence[str], control: Control
) -> tuple[list[str], list[str]]:
    """Returns the registers and scoreboards ("SB" and a number) that an instruction needs: those
    that it `reads`, and the scoreboards on which its control information waits; and those that it
    writes: `writes`, and the scoreboard of its write barrier, if it sets one."""
    needs = [*reads, *(f"SB{number}" for number in control.waits)]
    if control.write_barrier is None:
        return needs, [*writes]
    return needs, [*writes, f"SB{control.write_barrier}"]


def _register_reads(instruction: MachineInstruction, previous: MachineInstruction) -> int:
    """Returns how many registers of each bank an instruction with a fixed latency reads, and how
    many of them the instruction before left in the operand cache (by its reuse flags, for the same
    source operand), packed as `TimedOperation.reads`. Returns 0 for an instruction with a variable
    latency, which sets a read or write barrier.

    The bank of a register is its number modulo the banks. Sources: Jia et al. (2018), 2.1; Huerta
    et al. (2025)."""
    if (
        instruction.control.write_barrier is not None
        or instruction.control.read_barrier is not None
        or instruction.name in _GROUP_PRODUCTS
    ):
        return 0
    reads = {name for name in instruction.reads if name[0] == "R"}
    cached = reads & {
        name
        for slot in previous.control.reuse
        for name in _source_registers(previous, slot) & _source_registers(instruction, slot)
    }
    packed, most = 0, (1 << w.READ_BITS) - 1
    for index, registers in enumerate((reads, cached)):
        banks = [int(name[1:]) % w.REGISTER_BANKS for name in registers]
        for bank in set(banks):
            count = min(banks.count(bank), most)
            packed |= count << w.READ_BITS * (index * w.REGISTER_BANKS + bank)
    return packed


def _source_registers(instruction: MachineInstruction, slot: int) -> set[str]:
    """Returns the registers of source operand number `slot` (from 0): the operands after the first,
    which is the destination, count without predicates; empty if there are fewer."""
    sources = [
        operand for operand in instruction.operands[1:] if operand.kind is not Kind.PREDICATE
    ]
    return set(sources[slot].registers) if slot < len(sources) else set()
