"""Makes findings of the detector's records, in the words of compute-sanitizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.asynchronous.tensor_memory.memory import column_of, lane_of
from warploom.core.errors import Allocation, WarploomError
from warploom.core.wording import in_words_of_source
from warploom.detector import layout as words
from warploom.detector.conflicts import D_COPY, D_NARROW, D_OTHER_COPY, D_OTHER_OP
from warploom.detector.records import DetectorFinding, DetectorState
from warploom.detector.tensor_fences import D_AFTER, D_BEFORE
from warploom.isa.instruction import Space
from warploom.isa.kinds import Effect
from warploom.machine.faults.fault_errors import Fault, FaultKind, fault_error
from warploom.program.updates import find_update
from warploom.sanitize.advice import fence_advice, race_advice
from warploom.sanitize.findings import ERROR, NOTE, WARNING, Finding, Thread
from warploom.sanitize.state import Detector
from warploom.sanitize.wording import shared_variable

SPACES = (Space.GLOBAL, Space.SHARED, Space.LOCAL)
TENSOR = "tensor"
"""The name of tensor memory, which is no space of PTX addresses."""

ACCESSES = ("Read", "Write", "Atomic")


def findings_of(detector: Detector) -> list[Finding]:
    """Returns the findings of a launch, in the order in which they occurred. Raises WarploomError
    if the detector's memory was exhausted."""
    data = detector.data
    if data[DetectorState.exhausted]:
        raise WarploomError(
            "the sanitizer ran out of memory while recording the order of accesses in this launch; "
            "launch fewer blocks, or omit the tool 'race'"
        )
    return [_FindingRow(detector, row).finding() for row in _rows(detector)]


def conflicts_of(detector: Detector) -> set[tuple[int, int]]:
    """Returns the pairs of instructions of a launch that access the same bytes unordered."""
    return {
        (row[DetectorFinding.other_instruction], row[DetectorFinding.instruction])
        for row in _rows(detector)
        if KINDS[row[DetectorFinding.kind]].tool == "race"
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
        packed, access_size = row[DetectorFinding.thread], row[DetectorFinding.size]
        if access_size and row[DetectorFinding.space] != words.TENSOR:
            warp, lane = divmod(packed & words.LOW, size)
            access = SPACES[row[DetectorFinding.space]], row[DetectorFinding.address], access_size
            finding = _FindingRow(detector, row).finding()
            found.append(
                FindingSite(
                    finding, row[DetectorFinding.instruction], packed >> 32, warp, lane, *access
                )
            )
    return found


def _rows(detector: Detector) -> list[tuple[int, ...]]:
    """Returns the detector's finding records (`DetectorFinding.WORDS`)."""
    data = detector.data
    start, count = int(data[DetectorState.findings_at]), int(data[DetectorState.findings])
    rows = data[start:][: count * DetectorFinding.WORDS].reshape(count, DetectorFinding.WORDS)
    return [tuple(row) for row in rows.tolist()]


@dataclass(frozen=True, slots=True)
class _FindingRow:
    """Makes a Finding of one of the detector's records (`DetectorFinding.WORDS`)."""

    detector: Detector
    row: tuple[int, ...]

    @property
    def kind(self) -> FindingKind:
        """Returns the kind of the record."""
        return KINDS[self.row[DetectorFinding.kind]]

    # ---- parts ----------------------------------------------------------------------------------

    def _line(self, word: int) -> str:
        """Returns the source line of an instruction of the record."""
        return self.detector.program.line(self.row[word])

    def _own_place(self) -> str:
        """Returns the source line and the thread of the access."""
        line = self._line(DetectorFinding.instruction)
        return f"{line} by {self._thread(DetectorFinding.thread)}"

    def _other_place(self) -> str:
        """Returns the source line and the thread of the earlier access."""
        line = self._line(DetectorFinding.other_instruction)
        return f"{line} by {self._thread(DetectorFinding.other_thread)}"

    def _thread(self, word: int) -> Thread:
        """Returns a thread of the record."""
        launch, packed = self.detector.launch, self.row[word]
        number = packed & words.LOW
        where = launch.thread_index(number // launch.warp_size, number % launch.warp_size)
        return Thread(launch.block_index(packed >> 32), where)

    @property
    def _in_tensor_memory(self) -> bool:
        return self.row[DetectorFinding.space] == words.TENSOR

    @property
    def _space(self) -> Space:
        return SPACES[self.row[DetectorFinding.space]]

    @property
    def _space_name(self) -> str:
        return TENSOR if self._in_tensor_memory else self._space.value

    def _allocation(self) -> Allocation | None:
        """Returns the allocation nearest to the record's address, or the whole of a block's shared
        or a thread's local memory. Tensor memory has none."""
        if self._in_tensor_memory:
            return None
        if self._space is Space.SHARED:
            owner, name = self.row[DetectorFinding.owner], "the block's shared memory"
            if owner != self.row[DetectorFinding.thread] >> 32:
                index = self.detector.launch.block_index(owner)
                name = f"the shared memory of block {index}"
            return Allocation(0, int(self.detector.data[DetectorState.shared_bytes]), name)
        if self._space is Space.LOCAL:
            return Allocation(0, self.detector.program.local_bytes, "the thread's local memory")
        at = self.row[DetectorFinding.address]
        live = (*self.detector.allocations, *self.detector.heap)
        return min(
            live, key=lambda a: max(a.address - at, at - a.address - a.size, 0), default=None
        )

    def _place(self) -> str:
        """Returns a text for the location of the record's address."""
        found, address = self._allocation(), self.row[DetectorFinding.address]
        if self._in_tensor_memory:
            return f"lane {lane_of(address)}, column {column_of(address)}"
        if found is None:
            return f"{self._space.value} memory at {address:#x}"
        place = f"{found.name}, byte {address - found.address} of {found.size}"
        variable = ""
        if self._space is Space.SHARED:
            variable = shared_variable(self.detector.program, address)
        return f"{variable} (in {place})" if variable else place

    def finding(self) -> Finding:
        """Returns the finding of the record's instructions and threads."""
        other = self.row[DetectorFinding.other_instruction]
        threads = [self._thread(DetectorFinding.thread)]
        if self.row[DetectorFinding.other_thread] >= 0:
            threads.append(self._thread(DetectorFinding.other_thread))
        has_bytes = self.row[DetectorFinding.size] > 0
        allocation = self._allocation() if has_bytes else None
        address = self.row[DetectorFinding.address]
        return Finding(
            self.kind.tool,
            self.kind.name,
            self.kind.severity,
            self._space_name if has_bytes else "",
            self._line(DetectorFinding.instruction),
            self._line(DetectorFinding.other_instruction) if other >= 0 else "",
            tuple(threads),
            allocation.name if allocation else "",
            in_words_of_source(self.kind.message(self)),
            self.row[DetectorFinding.count],
            address - (allocation.address if allocation else 0),
            (self.row[DetectorFinding.instruction], *((other,) if other >= 0 else ())),
        )

    # ---- messages ------------------------------------------------------------------------------

    def fault(self, kind: FaultKind) -> str:
        """Describes an access out of bounds, of a misaligned one, or of a store to
        constant memory."""
        launch, packed = self.detector.launch, self.row[DetectorFinding.thread]
        number = packed & words.LOW
        place = packed >> 32, number // launch.warp_size, number % launch.warp_size
        access_size = self.row[DetectorFinding.address], self.row[DetectorFinding.size], self._space
        fault = Fault(kind, self.row[DetectorFinding.instruction], *place, *access_size)
        return str(fault_error(fault, self.detector.program, launch, self._allocation()))

    def strayed(self) -> str:
        """Describes a store through a pointer to one buffer that went to another."""
        access = ACCESSES[self.row[DetectorFinding.detail] & 3]
        return (
            f"Invalid __{self._space.value}__ {access.lower()} of size "
            f"{self.row[DetectorFinding.size]} bytes\n    at {self._own_place()}\n    in "
            f"{self._place()}\n    This access uses a pointer to another buffer, with an index "
            "that is negative or too large. Check the index against the size of that buffer."
        )

    def race(self) -> str:
        """Describes two accesses that are not ordered."""
        kind = self.kind.name
        detail = self.row[DetectorFinding.detail]
        own_access = self._access(DetectorFinding.instruction, detail & 3, detail >> D_COPY & 1)
        other = self._access(
            DetectorFinding.other_instruction, detail >> D_OTHER_OP & 3, detail >> D_OTHER_COPY & 1
        )
        if kind == "proxy":
            own_access = self._access(DetectorFinding.instruction, words.LOAD, 1)
            other = ACCESSES[1 + (detail & 1)]
        if kind == "stale":
            own_access, other = "Texture or surface read", ACCESSES[detail & 3]
        remedy = race_advice(
            kind,
            self._space_name,
            narrow=bool(detail >> D_NARROW & 1),
            copies=0 if kind in ("proxy", "stale") else detail >> D_COPY & 3,
            update=find_update(
                self.detector.program,
                self.row[DetectorFinding.instruction],
                self.row[DetectorFinding.other_instruction],
            ),
        )
        if kind == "unfenced":
            remedy = fence_advice(
                before=bool(detail >> D_BEFORE & 1), after=bool(detail >> D_AFTER & 1)
            )
        return (
            f"{kind.capitalize()} reported between {own_access} access\n"
            f"    at {self._own_place()}\n"
            f"    and {other} access\n"
            f"    at {self._other_place()}\n"
            f"    in __{self._space_name}__ memory: {self._place()}\n"
            f"    {remedy}"
        )

    def _access(self, word: int, op: int, copy: int) -> str:
        """Returns the name of an access of an instruction of the record."""
        operation = self.detector.program.instructions[self.row[word]].operation
        if operation.has(Effect.USES_TENSOR_MEMORY):
            return f"{ACCESSES[op]} by {'.'.join(operation.opcode.split('.')[:2])}"
        return ACCESSES[op] + " by an asynchronous copy" * copy

    def unwritten(self) -> str:
        """Describes a read of bytes that were not written."""
        writers = "(with a copy, cudaMemset or another kernel)"
        if self._space is Space.SHARED:
            writers = "in the block, then call __syncthreads()"
        return (
            f"Uninitialized __{self._space.value}__ memory read of size "
            f"{self.row[DetectorFinding.size]} bytes\n    at {self._own_place()}\n    in "
            f"{self._place()}\n    These bytes were never written. Write them first "
            f"{writers}, or read fewer bytes."
        )

    def skipped(self) -> str:
        """Describes a thread that did not execute a barrier at which others arrived."""
        cause = "threads exited without reaching a barrier"
        if self.row[DetectorFinding.detail]:
            cause = "only some lanes of a warp execute a barrier that counts whole warps"
        return (
            f"Skipped barrier: {cause}\n    by {self._thread(DetectorFinding.thread)}\n    at "
            f"{self._line(DetectorFinding.instruction)}\n    The result is undefined: "
            "__syncthreads() and __syncwarp() are allowed in conditional code only if all "
            "participating threads take the same branch. Move the barrier out of the condition, "
            "or specify the participating threads, with a mask or a number of threads."
        )

    def divergent(self) -> str:
        """Describes threads of a block that wait at different barriers."""
        return (
            "Divergent barrier: threads of one block wait at different barriers\n    at "
            f"{self._own_place()}\n    and at {self._line(DetectorFinding.other_instruction)}\n"
            "    The result is undefined: __syncthreads() is allowed in conditional code only "
            "if all threads of the block take the same branch. Move the barrier out of the "
            "condition."
        )


@dataclass(frozen=True, slots=True)
class FindingKind:
    """Describes a kind of finding: the tool that it belongs to, its name, its severity, and the
    message of a record."""

    tool: str
    name: str
    severity: str
    message: Callable[[_FindingRow], str]


KINDS = {
    words.K_RACE: FindingKind("race", "race", ERROR, _FindingRow.race),
    words.K_UNPROMISED: FindingKind("race", "unpromised", WARNING, _FindingRow.race),
    words.K_SAME_VALUE: FindingKind("race", "same-value", NOTE, _FindingRow.race),
    words.K_PROXY: FindingKind("race", "proxy", ERROR, _FindingRow.race),
    words.K_UNFENCED: FindingKind("race", "unfenced", WARNING, _FindingRow.race),
    words.K_STALE: FindingKind("race", "stale", ERROR, _FindingRow.race),
    words.K_OUT_OF_BOUNDS: FindingKind(
        "mem", "out of bounds", ERROR, lambda row: row.fault(FaultKind.OUT_OF_BOUNDS)
    ),
    words.K_MISALIGNED: FindingKind(
        "mem", "misaligned", ERROR, lambda row: row.fault(FaultKind.MISALIGNED)
    ),
    words.K_READ_ONLY: FindingKind(
        "mem", "read only", ERROR, lambda row: row.fault(FaultKind.READ_ONLY)
    ),
    words.K_STRAYED: FindingKind("mem", "out of bounds", ERROR, _FindingRow.strayed),
    words.K_UNWRITTEN: FindingKind("init", "uninitialized read", ERROR, _FindingRow.unwritten),
    words.K_OTHER_BARRIER: FindingKind("sync", "divergent barrier", ERROR, _FindingRow.divergent),
    words.K_SKIPPED: FindingKind("sync", "skipped barrier", ERROR, _FindingRow.skipped),
}
"""All kinds of findings that the detector records."""
