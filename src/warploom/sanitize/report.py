"""Makes findings of the detector's records, in the words of compute-sanitizer."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.asynchronous.tensor_memory.memory import column_of, lane_of
from warploom.core.errors import Allocation, WarploomError
from warploom.detector import layout as words
from warploom.detector.conflicts import (
    D_COPY,
    D_NARROW,
    D_OTHER_COPY,
    D_OTHER_OP,
)
from warploom.detector.tensor.tensor_fences import D_AFTER, D_BEFORE
from warploom.isa.kinds import Effect
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.ptx.ir import Space
from warploom.sanitize.advice import fence_advice, race_advice
from warploom.sanitize.findings import ERROR, NOTE, WARNING, Finding, Thread
from warploom.sanitize.state import Detector

SPACES = (Space.GLOBAL, Space.SHARED, Space.LOCAL)
TENSOR = "tensor"
"""The name of tensor memory, which is no space of PTX addresses."""

FAULTS = {
    words.K_OUT_OF_BOUNDS: FaultKind.OUT_OF_BOUNDS,
    words.K_MISALIGNED: FaultKind.MISALIGNED,
    words.K_READ_ONLY: FaultKind.READ_ONLY,
}
RACES = {
    words.K_RACE: ("race", ERROR),
    words.K_UNPROMISED: ("unpromised", WARNING),
    words.K_SAME_VALUE: ("same-value", NOTE),
    words.K_PROXY: ("proxy", ERROR),
    words.K_UNFENCED: ("unfenced", WARNING),
    words.K_STALE: ("stale", ERROR),
}
"""The classes of unordered accesses, and the severity of each."""

ACCESSES = ("Read", "Write", "Atomic")


def findings_of(detector: Detector) -> list[Finding]:
    """Returns the findings of a launch, in the order in which they occurred. Raises WarploomError
    if the detector's memory was exhausted."""
    data = detector.data
    if data[words.EXHAUSTED]:
        raise WarploomError(
            "the sanitizer has no memory left to record the order of the threads of this launch;"
            " launch fewer blocks, or leave the tool 'race' out"
        )
    return [_FindingRow(detector, row).finding() for row in _rows(detector)]


def conflicts_of(detector: Detector) -> set[tuple[int, int]]:
    """Returns the pairs of instructions of a launch that access the same bytes unordered."""
    return {
        (row[words.F_OTHER], row[words.F_INSTRUCTION])
        for row in _rows(detector)
        if row[words.F_KIND] in RACES
    }


@dataclass(frozen=True, slots=True)
class FindingSite:
    """Describes the access of a finding: the instruction that accesses `size` bytes from `address`
    on in a space, and the block, warp and lane that execute it."""

    finding: Finding
    instruction: int
    block: int
    warp: int
    lane: int
    space: Space
    address: int
    size: int


def sites_of_findings(detector: Detector) -> list[FindingSite]:
    """Returns the accesses of findings, in the order in which these occurred; findings about
    barriers and about tensor memory have none."""
    size = detector.launch.warp_size
    found: list[FindingSite] = []
    for row in _rows(detector):
        packed, access_size = row[words.F_THREAD], row[words.F_SIZE]
        if access_size and row[words.F_SPACE] != words.TENSOR:
            warp, lane = divmod(packed & words.LOW, size)
            access = SPACES[row[words.F_SPACE]], row[words.F_ADDRESS], access_size
            finding = _FindingRow(detector, row).finding()
            found.append(
                FindingSite(finding, row[words.F_INSTRUCTION], packed >> 32, warp, lane, *access)
            )
    return found


def _rows(detector: Detector) -> list[tuple[int, ...]]:
    """Returns the detector's finding records (`layout.FINDING_WORDS`)."""
    data = detector.data
    start, count = int(data[words.FINDINGS_AT]), int(data[words.FINDINGS])
    rows = data[start:][: count * words.FINDING_WORDS].reshape(count, words.FINDING_WORDS)
    return [tuple(row) for row in rows.tolist()]


@dataclass(frozen=True, slots=True)
class _FindingRow:
    """Makes a Finding of one of the detector's records (`layout.FINDING_WORDS`)."""

    detector: Detector
    row: tuple[int, ...]

    def finding(self) -> Finding:
        """Returns the finding of the record."""
        kind = self.row[words.F_KIND]
        if kind in FAULTS:
            return self._fault(FAULTS[kind])
        if kind in RACES:
            return self._race(*RACES[kind])
        if kind == words.K_STRAYED:
            return self._strayed()
        if kind == words.K_SKIPPED:
            return self._skipped()
        return self._unwritten() if kind == words.K_UNWRITTEN else self._barriers()

    # ---- parts ----------------------------------------------------------------------------------

    def _line(self, word: int) -> str:
        """Returns the source line of an instruction of the record."""
        return self.detector.program.line(self.row[word])

    def _thread(self, word: int) -> Thread:
        """Returns a thread of the record."""
        launch, packed = self.detector.launch, self.row[word]
        number = packed & words.LOW
        where = launch.thread_index(number // launch.warp_size, number % launch.warp_size)
        return Thread(launch.block_index(packed >> 32), where)

    @property
    def _in_tensor_memory(self) -> bool:
        return self.row[words.F_SPACE] == words.TENSOR

    @property
    def _space(self) -> Space:
        return SPACES[self.row[words.F_SPACE]]

    @property
    def _space_name(self) -> str:
        return TENSOR if self._in_tensor_memory else self._space.value

    def _allocation(self) -> Allocation | None:
        """Returns the allocation nearest to the record's address, or the whole of a block's shared
        or a thread's local memory. Tensor memory has none."""
        if self._in_tensor_memory:
            return None
        if self._space is Space.SHARED:
            owner, name = self.row[words.F_OWNER], "the block's shared memory"
            if owner != self.row[words.F_THREAD] >> 32:
                index = self.detector.launch.block_index(owner)
                name = f"the shared memory of block {index}"
            return Allocation(0, int(self.detector.data[words.SHARED_BYTES]), name)
        if self._space is Space.LOCAL:
            return Allocation(0, self.detector.program.local_bytes, "the thread's local memory")
        at = self.row[words.F_ADDRESS]
        live = (*self.detector.allocations, *self.detector.heap)
        return min(
            live, key=lambda a: max(a.address - at, at - a.address - a.size, 0), default=None
        )

    def _place(self) -> str:
        """Returns a text for the location of the record's address."""
        found, address = self._allocation(), self.row[words.F_ADDRESS]
        if self._in_tensor_memory:
            return f"lane {lane_of(address)}, column {column_of(address)}"
        if found is None:
            return f"{self._space.value} memory at {address:#x}"
        return f"{found.name}, byte {address - found.address} of {found.size}"

    def _finding(self, tool: str, kind: str, severity: str, message: str) -> Finding:
        """Returns a finding of the record's instructions and threads."""
        other = self.row[words.F_OTHER]
        threads = [self._thread(words.F_THREAD)]
        if self.row[words.F_OTHER_THREAD] >= 0:
            threads.append(self._thread(words.F_OTHER_THREAD))
        has_bytes = self.row[words.F_SIZE] > 0
        allocation = self._allocation() if has_bytes else None
        address = self.row[words.F_ADDRESS]
        return Finding(
            tool,
            kind,
            severity,
            self._space_name if has_bytes else "",
            self._line(words.F_INSTRUCTION),
            self._line(words.F_OTHER) if other >= 0 else "",
            tuple(threads),
            allocation.name if allocation else "",
            message,
            self.row[words.F_COUNT],
            address - (allocation.address if allocation else 0),
            (self.row[words.F_INSTRUCTION], *((other,) if other >= 0 else ())),
        )

    # ---- kinds ----------------------------------------------------------------------------------

    def _fault(self, kind: FaultKind) -> Finding:
        """Returns the finding of an access out of bounds, of a misaligned one, or of a store to
        constant memory."""
        launch, packed = self.detector.launch, self.row[words.F_THREAD]
        number = packed & words.LOW
        place = packed >> 32, number // launch.warp_size, number % launch.warp_size
        access_size = self.row[words.F_ADDRESS], self.row[words.F_SIZE], self._space
        fault = Fault(kind, self.row[words.F_INSTRUCTION], *place, *access_size)
        error = fault_error(fault, self.detector.program, launch, self._allocation())
        return self._finding("mem", kind.name.lower().replace("_", " "), ERROR, str(error))

    def _strayed(self) -> Finding:
        """Returns the finding of a store through a pointer to one buffer that went to another."""
        access = ACCESSES[self.row[words.F_DETAIL] & 3]
        message = (
            f"Invalid __{self._space.value}__ {access.lower()} of size"
            f" {self.row[words.F_SIZE]} bytes\n"
            f"    at {self._line(words.F_INSTRUCTION)} by {self._thread(words.F_THREAD)}\n"
            f"    in {self._place()}\n"
            f"    The pointer of this access belongs to another buffer, and its index is too large"
            f" or negative. Check the index against that buffer's size."
        )
        return self._finding("mem", "out of bounds", ERROR, message)

    def _race(self, kind: str, severity: str) -> Finding:
        """Returns the finding of two accesses that are not ordered."""
        detail = self.row[words.F_DETAIL]
        own_access = self._access(words.F_INSTRUCTION, detail & 3, detail >> D_COPY & 1)
        other = self._access(words.F_OTHER, detail >> D_OTHER_OP & 3, detail >> D_OTHER_COPY & 1)
        if kind == "proxy":
            own_access = self._access(words.F_INSTRUCTION, words.LOAD, 1)
            other = ACCESSES[1 + (detail & 1)]
        if kind == "stale":
            own_access, other = "Read by a texture or a surface", ACCESSES[detail & 3]
        remedy = race_advice(
            kind,
            self._space_name,
            narrow=bool(detail >> D_NARROW & 1),
            copies=0 if kind in ("proxy", "stale") else detail >> D_COPY & 3,
        )
        if kind == "unfenced":
            remedy = fence_advice(
                before=bool(detail >> D_BEFORE & 1), after=bool(detail >> D_AFTER & 1)
            )
        message = (
            f"{kind.capitalize()} reported between {own_access} access\n"
            f"    at {self._line(words.F_INSTRUCTION)} by {self._thread(words.F_THREAD)}\n"
            f"    and {other} access\n"
            f"    at {self._line(words.F_OTHER)} by {self._thread(words.F_OTHER_THREAD)}\n"
            f"    in __{self._space_name}__ memory: {self._place()}\n"
            f"    {remedy}"
        )
        return self._finding("race", kind, severity, message)

    def _access(self, word: int, op: int, copy: int) -> str:
        """Returns the name of an access of an instruction of the record."""
        operation = self.detector.program.instructions[self.row[word]].operation
        if operation.has(Effect.USES_TENSOR_MEMORY):
            return f"{ACCESSES[op]} by {'.'.join(operation.opcode.split('.')[:2])}"
        return ACCESSES[op] + " by an asynchronous copy" * copy

    def _unwritten(self) -> Finding:
        """Returns the finding of a read of bytes that were not written."""
        message = (
            f"Uninitialized __{self._space.value}__ memory read of size"
            f" {self.row[words.F_SIZE]} bytes\n"
            f"    at {self._line(words.F_INSTRUCTION)} by {self._thread(words.F_THREAD)}\n"
            f"    in {self._place()}\n"
            f"    Nobody has written these bytes. Write them before (a copy, cudaMemset, or another"
            f" kernel), or read fewer."
        )
        return self._finding("init", "uninitialized read", ERROR, message)

    def _skipped(self) -> Finding:
        """Returns the finding of a thread that ended without executing a barrier."""
        message = (
            f"Skipped barrier: threads have ended without coming to a barrier\n"
            f"    by {self._thread(words.F_THREAD)}\n"
            f"    at {self._line(words.F_INSTRUCTION)}\n"
            f"    __syncthreads() and __syncwarp() may stand in conditional code only where all"
            f" threads that they mean take the same way. Move it out of the condition, or name the"
            f" threads: a mask, or a barrier with a number of threads."
        )
        return self._finding("sync", "skipped barrier", WARNING, message)

    def _barriers(self) -> Finding:
        """Returns the finding of threads of a block that wait at different barriers."""
        message = (
            f"Divergent barrier: threads of one block wait at different barriers\n"
            f"    at {self._line(words.F_INSTRUCTION)} by {self._thread(words.F_THREAD)}\n"
            f"    and at {self._line(words.F_OTHER)}\n"
            f"    __syncthreads() may stand in conditional code only where all threads of the block"
            f" take the same way. Move it out of the condition."
        )
        return self._finding("sync", "divergent barrier", WARNING, message)
