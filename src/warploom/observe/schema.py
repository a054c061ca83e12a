"""Defines the schema of traces: the parts of which a trace file consists.

Steps are stored in columns, in the order in which they ran. What many steps have in common - the
state of a warp, the pattern of an access, the content of a register - is stored once in a table,
and columns refer to it by index. So any step can be shown by lookup, without replaying the steps
before it. `observe.trace` combines the parts and reads them.
"""

from __future__ import annotations

import msgspec

from warploom.machine.lanes_off import LanesOff, ReconvergencePoint
from warploom.machine.placement import ResidentKernel

VERSION = 4
"""The version of the schema; a reader rejects any other."""

DIVERGED, MET = 1, 2
"""Marks of a step: its end makes lanes diverge; its end makes diverged lanes reconverge."""

NO_COST = (0,) * 13
"""The cost of an access whose instruction is not counted."""


class Multiprocessor(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of a device's SM, with those of the L2 cache and the memory that all SMs share; in
    bytes, a cache that there is not has 0. `cores` are the results of single-precision instructions
    in a cycle."""

    schedulers: int
    cores: int
    max_warps: int
    max_threads: int
    max_blocks: int
    registers: int
    shared_bytes: int
    l1_bytes: int
    l1_holds_shared: bool
    texture_cache_bytes: int
    constant_cache_bytes: int
    l2_bytes: int
    memory_bytes: int


class DeviceFacts(msgspec.Struct, frozen=True):
    """The device that was modelled. `independent`: each thread has its own program counter."""

    name: str
    title: str
    cc: str
    sms: int
    independent: bool
    global_rule: str
    shared_rule: str
    banks: int
    bank_bytes: int
    warp_size: int
    multiprocessor: Multiprocessor | None = None


class OccupancyFacts(msgspec.Struct, frozen=True):
    """The modelled occupancy of the launch: the thread blocks that an SM holds, and what limits
    them. `registers` are those of a thread, `warp_registers` those that an SM allocates for a
    warp, in the units of the device."""

    active_blocks: int
    active_warps: int
    max_warps: int
    registers: int
    shared_bytes: int
    limiters: tuple[str, ...]
    warp_registers: int = 0


class LaunchFacts(msgspec.Struct, frozen=True):
    """The launch: `kernel` is the name in PTX, `name` that in the source; grid and block as (x, y,
    z). `terms` are those of the source's language (`report.terms`), in which the page is shown."""

    kernel: str
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    engine: str
    schedule: str
    seed: int
    terms: str = "cuda"


class SourceText(msgspec.Struct, frozen=True):
    """A source file of the kernel's instructions."""

    name: str
    text: str


class Code(msgspec.Struct, frozen=True):
    """One PTX instruction of the kernel.

    `file` and `line` are its source location: an index into the trace's sources (-1: unknown) and a
    line; `ptx_line` is its line of the PTX. `unit` is the functional unit that executes it. `reads`
    and `writes` are indices of registers. `block` is its basic block; `targets` are the basic
    blocks to which a branch jumps. `frames` is an index of the trace's frames. `calls`: it calls a
    function that is not inlined; `returns`: it is the return of one.
    """

    text: str
    file: int
    line: int
    ptx_line: int
    unit: str
    is_branch: bool
    is_barrier: bool
    guarded: bool
    hidden: bool
    block: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    targets: tuple[int, ...]
    frames: int = 0
    calls: bool = False
    returns: bool = False


class CallFrame(msgspec.Struct, frozen=True):
    """A function that an instruction is in, by its name in the source: the innermost, with line 0,
    or one around that, with the line of the call of the one before."""

    function: str
    line: int


class BasicBlock(msgspec.Struct, frozen=True):
    """Instructions `start` up to but not including `stop`; `meets_at` is the basic block where
    lanes that diverge at its end reconverge, the number of basic blocks for the end of the
    kernel."""

    start: int
    stop: int
    meets_at: int


class Register(msgspec.Struct, frozen=True):
    """A register of the kernel, its PTX type, and the parameter or variable of the source whose
    value it holds, empty if that is not known (`observe.variables`)."""

    name: str
    type: str
    variable: str = ""


class Warp(msgspec.Struct, frozen=True):
    """A warp that was recorded: `block` is its thread block's number in the grid, x fastest.
    `existing` are the lanes that have a thread, `final` is its state when the launch ended, and
    `registers` is true if its registers were recorded. `ended` is true if it ended and its last
    step was recorded."""

    block: int
    warp: int
    existing: int
    final: int
    registers: bool
    ended: bool = True


class BlockResidency(msgspec.Struct, frozen=True):
    """The SM on which a recorded thread block is resident, and its slot among all of the device's
    (slots belong to SMs in turn), from the step `since` until before the step `until`, which is
    beyond the number of steps if its end was not recorded (`observe.residency`)."""

    block: int
    sm: int
    slot: int
    since: int
    until: int


class State(msgspec.Struct, frozen=True):
    """The state of a warp's lanes: `active` are those of the running split, `off` gives the reason
    for every other lane. `stack` are the reconvergence points of the active lanes, the innermost
    last; `splits` the (mask, basic block) of each split that is not running."""

    active: int
    off: LanesOff
    stack: tuple[ReconvergencePoint, ...]
    splits: tuple[tuple[int, int], ...]


class Steps(msgspec.Struct, frozen=True):
    """The warp instructions, in the order in which they ran: columns of little-endian numbers.

    `warp`, `instruction` and `state` (u32) are indices of their tables; `executing` (one bit per
    lane: u32, or u64 for warps of 64) are the lanes whose guard was true; `marks` (u8) are DIVERGED
    and MET.
    """

    count: int
    warp: bytes
    instruction: bytes
    state: bytes
    executing: bytes
    marks: bytes


class Site(msgspec.Struct, frozen=True):
    """An instruction's access to one space, of `size` bytes a lane. `rule` is the cost rule, empty
    if the access is not counted; `best` is the number of transactions of the common access."""

    instruction: int
    space: str
    op: str
    size: int
    rule: str
    best: int


class Shape(msgspec.Struct, frozen=True):
    """The pattern of an access: for each lane of `lanes` its offset from the access's base.

    `served` are its transactions, or passes over the banks, in the order in which they happen: the
    offset of the first byte, the number of bytes, and the lanes served. `cost` is what the device's
    rule counts, in the order of `cost.fields.FIELDS` up to the caches.
    """

    lanes: int
    offsets: tuple[int, ...]
    served: tuple[tuple[int, int, int], ...]
    cost: tuple[int, ...]


class Accesses(msgspec.Struct, frozen=True):
    """The accesses to memory, in order, as columns. `step`, `site` and `shape` (u32) are indices;
    `base` (u64) is the address to which the pattern's offsets are added."""

    count: int
    step: bytes
    site: bytes
    shape: bytes
    base: bytes


class Writes(msgspec.Struct, frozen=True):
    """The writes of registers, for warps whose registers were recorded: columns of u32.

    After `step`, register `register` holds row `value` of `narrow` (rows of 32 u32, one for each
    lane) or, for registers of 64 bits, of `wide` (rows of 32 u64).
    """

    count: int
    step: bytes
    register: bytes
    value: bytes
    narrow: bytes
    wide: bytes


class Allocated(msgspec.Struct, frozen=True):
    """A live allocation of device memory. `type` is the NumPy type of its elements, and `shape` the
    array's extents; both are empty if unknown. `first` is its content when the launch began, empty
    if that is not recorded."""

    address: int
    size: int
    name: str
    type: str = ""
    shape: tuple[int, ...] = ()
    first: bytes = b""


class SharedArray(msgspec.Struct, frozen=True):
    """An array in the shared memory of each thread block: its offset and size in bytes."""

    name: str
    address: int
    size: int


class Changes(msgspec.Struct, frozen=True):
    """The bytes that accesses wrote to memory, if that is recorded: columns of u32, in order. After
    access `access`, its addresses hold entry `value` of `values`: for each lane of the access the
    bytes of its site's size."""

    count: int
    access: bytes
    value: bytes
    values: tuple[bytes, ...]


class MBarrier(msgspec.Struct, frozen=True):
    """An mbarrier that was initialized: its thread block's number in the grid, and its address
    there."""

    block: int
    address: int


NOT_VALID = -1
"""The phase of an mbarrier that was invalidated."""


class BarrierStates(msgspec.Struct, frozen=True):
    """The states of mbarriers: columns of i32, in order. After `step`, mbarrier `barrier` has
    completed `phase` phases; the current one awaits `pending` of its `expected` arrivals, and
    `bytes_left` bytes, less than 0 if more have arrived than it expects yet."""

    count: int
    step: bytes
    barrier: bytes
    phase: bytes
    pending: bytes
    expected: bytes
    bytes_left: bytes


class Flights(msgspec.Struct, frozen=True):
    """Asynchronous operations: columns of u32, in the order of issue. An operation begins at
    `step`; `until` is the step at which a thread has waited for it, the number of steps if none
    has. `kind` is an index of the kinds; `barrier` is one more than the index of the mbarrier that
    it signals, 0 for none."""

    count: int
    step: bytes
    until: bytes
    kind: bytes
    size: bytes
    barrier: bytes


class Asynchronous(msgspec.Struct, frozen=True):
    """Copies, products and stores that run beside the warps, and the mbarriers of thread blocks."""

    kinds: tuple[str, ...]
    barriers: tuple[MBarrier, ...]
    states: BarrierStates
    flights: Flights


class Fault(msgspec.Struct, frozen=True):
    """The access that ended a launch: its address and bytes, and the thread, by its block's number
    in the grid and its number in the block."""

    address: int
    size: int
    block: int
    thread: int


class Party(msgspec.Struct, frozen=True):
    """A thread of a finding: its thread block's number, its warp and lane, the instruction, and the
    step of its access, -1 if that is not recorded."""

    block: int
    warp: int
    lane: int
    instruction: int
    step: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a sanitizer (`sanitize.findings`). `parties` are the later access and, if there
    are two, the earlier one; they access `size` bytes at `offset` of `buffer`."""

    tool: str
    kind: str
    severity: str
    message: str
    space: str
    buffer: str
    offset: int
    size: int
    parties: tuple[Party, ...]


class LeftOut(msgspec.Struct, frozen=True):
    """The numbers of steps and warps that were not recorded."""

    steps: int = 0
    warps: int = 0


class ModelledRoof(msgspec.Struct, frozen=True):
    """A peak throughput of the device (as in a roofline model): the fraction that the launch used,
    and the peak in `unit` per second (`timing.roofs`)."""

    name: str
    used: float
    peak: float
    unit: str


class ModelledCopies(msgspec.Struct, frozen=True):
    """Copies by the Tensor Memory Accelerator of the SM that is shown, in the order in which they
    began: columns of little-endian numbers. `warp` and `instruction` (u32) issued them, `since` and
    `until` (u64) are the cycles of the issue and of the arrival."""

    count: int
    warp: bytes
    instruction: bytes
    since: bytes
    until: bytes


class ModelledTime(msgspec.Struct, frozen=True, kw_only=True):
    """The states of one SM's warps at every cycle, as `timing` models them; nothing here was
    counted.

    - `cycles` are those of the whole launch, by the SMs' clock; of its `blocks` the first
      `sampled_blocks` were replayed. `sms` is the number of SMs that had blocks, `sm` the one that
      is shown.
    - `count` intervals in which a warp was in one state follow, slot by slot, each slot's in order,
      in columns of little-endian numbers. `slot` (u32) is the warp slot, `warp` (u32) the warp's
      number in the launch, `state` (u8) an index of `states`, which have Nsight Compute's names;
      `since` and `until` (u64) are cycles, the second exclusive. `instruction` (u32) is the warp's
      current instruction, and `visit` (u32) how often it had executed that before.
    - `left_out` are the cycles of the SM's warps beyond the limit of the recording. `roofs` are the
      device's throughputs. `copies` are those that were in flight.
    """

    scheduler: str
    clock_mhz: float
    cycles: int
    blocks: int
    sampled_blocks: int
    sm: int
    sms: int
    states: tuple[str, ...]
    count: int
    slot: bytes
    warp: bytes
    state: bytes
    since: bytes
    until: bytes
    instruction: bytes
    visit: bytes
    left_out: int
    roofs: tuple[ModelledRoof, ...] = ()
    copies: ModelledCopies | None = None


class TraceData(msgspec.Struct, frozen=True):
    """The content of a trace file: the fields of `observe.trace.Trace`."""

    version: int
    launch: LaunchFacts
    device: DeviceFacts
    occupancy: OccupancyFacts
    sources: tuple[SourceText, ...]
    ptx: str
    code: tuple[Code, ...]
    basic_blocks: tuple[BasicBlock, ...]
    registers: tuple[Register, ...]
    allocations: tuple[Allocated, ...]
    shared: tuple[SharedArray, ...]
    warps: tuple[Warp, ...]
    states: tuple[State, ...]
    steps: Steps
    sites: tuple[Site, ...]
    shapes: tuple[Shape, ...]
    accesses: Accesses
    writes: Writes
    changes: Changes
    left_out: LeftOut
    error: str
    fault: Fault | None = None
    modelled: ModelledTime | None = None
    findings: tuple[Finding, ...] = ()
    asynchronous: Asynchronous | None = None
    residency: tuple[BlockResidency, ...] = ()
    beside: tuple[ResidentKernel, ...] = ()
    """Blocks of other kernels that were resident, waiting for memory, while the launch ran."""
    frames: tuple[tuple[CallFrame, ...], ...] = ()
    """The functions around instructions: in each entry the innermost first, up to the kernel or a
    function that is not inlined."""
