"""The schema of traces: what stands in one, part by part.

Steps stand in columns, in the order in which they ran. What a step has in common with others —
the state of its warp, the pattern of an access, the content of a register — stands in a table and
is named by its number there, so any step is shown by looking it up, without replaying what came
before. `observe.trace` puts the parts together and reads them.
"""

from __future__ import annotations

import msgspec

from warploom.machine.lanes_off import LanesOff, ReconvergencePoint

VERSION = 4
"""Of the schema; a reader refuses any other."""

DIVERGED, MET = 1, 2
"""Marks of a step: its end sends lanes both ways; its end brings lanes together that had parted."""

NO_COST = (0,) * 13
"""What an access costs whose instruction is not counted."""


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


class OccupancyFacts(msgspec.Struct, frozen=True):
    """The occupancy of the launch: the blocks that an SM holds, and what limits them; modelled."""

    active_blocks: int
    active_warps: int
    max_warps: int
    registers: int
    shared_bytes: int
    limiters: tuple[str, ...]


class LaunchFacts(msgspec.Struct, frozen=True):
    """The launch: `kernel` as PTX calls it and `name` as the source does; grid and
    block as (x, y, z)."""

    kernel: str
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    engine: str
    schedule: str
    seed: int


class SourceText(msgspec.Struct, frozen=True):
    """A file that instructions come from."""

    name: str
    text: str


class Code(msgspec.Struct, frozen=True):
    """One PTX instruction of the kernel.

    `file` and `line` say where it comes from: an index into the trace's sources (-1: not there) and
    a line; `ptx_line` is its line of the PTX. `unit` is what executes it. `reads` and `writes` are
    indices of registers. `block` is its basic block; `targets` are the basic blocks to which a
    branch jumps.
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


class BasicBlock(msgspec.Struct, frozen=True):
    """Instructions `start` up to but not including `stop`; `meets_at` is the basic block where
    lanes that part at its end meet again, the number of blocks for the end of the kernel."""

    start: int
    stop: int
    meets_at: int


class Register(msgspec.Struct, frozen=True):
    """A register of the kernel, its type as PTX writes it, and the parameter or variable of the
    source whose value it holds, empty where that is not known (`observe.variables`)."""

    name: str
    type: str
    variable: str = ""


class Warp(msgspec.Struct, frozen=True):
    """A warp that was recorded: `block` is the block's number in the grid, x fastest. `existing`
    are the lanes that have a thread; `final` its state when the launch ended."""

    block: int
    warp: int
    existing: int
    final: int
    registers: bool


class State(msgspec.Struct, frozen=True):
    """A warp's lanes: `active` are those of the running split, `off` gives the reason for every
    other lane. `stack` are the places where running lanes will meet others, the innermost last;
    `splits` the (mask, basic block) of each split that is put aside."""

    active: int
    off: LanesOff
    stack: tuple[ReconvergencePoint, ...]
    splits: tuple[tuple[int, int], ...]


class Steps(msgspec.Struct, frozen=True):
    """The warp instructions, in the order in which they ran: columns of little-endian numbers.

    `warp`, `instruction` and `state` (u32) are numbers in their tables; `executing` (a bit for
    each lane: u32, or u64 for warps of 64) are the
    lanes whose guard held; `marks` (u8) are DIVERGED and MET.
    """

    count: int
    warp: bytes
    instruction: bytes
    state: bytes
    executing: bytes
    marks: bytes


class Site(msgspec.Struct, frozen=True):
    """An instruction that reaches into a space, for `size` bytes a lane. `rule` is the rule that
    says what that costs, empty where it is not counted; `best` the fewest transactions that it can
    take. `writes` says whether a store's writes are counted."""

    instruction: int
    space: str
    op: str
    size: int
    rule: str
    best: int


class Shape(msgspec.Struct, frozen=True):
    """The pattern of an access: for each lane of `lanes` its offset from the access's base.

    `served` are its transactions, or passes over the banks, in the order in which they happen: the
    offset of the first byte, how many, and the lanes served. `cost` is what the device's rule
    counts, in the order of `cost.fields.FIELDS` up to the caches.
    """

    lanes: int
    offsets: tuple[int, ...]
    served: tuple[tuple[int, int, int], ...]
    cost: tuple[int, ...]


class Accesses(msgspec.Struct, frozen=True):
    """The accesses to memory, in order: columns. `step`, `site` and `shape` (u32) are numbers;
    `base` (u64) is an address, the shape's offsets count from it."""

    count: int
    step: bytes
    site: bytes
    shape: bytes
    base: bytes


class Writes(msgspec.Struct, frozen=True):
    """The writes of registers, for warps whose registers were recorded: columns of u32.

    Behind `step`, register `register` holds number `value` of `narrow` (rows of 32 u32, one for
    each lane) or, for registers of 64 bits, of `wide` (rows of 32 u64).
    """

    count: int
    step: bytes
    register: bytes
    value: bytes
    narrow: bytes
    wide: bytes


class Allocated(msgspec.Struct, frozen=True):
    """A live stretch of device memory. `type` is that of its elements, as NumPy calls it, and
    `shape` their numbers; both are empty where they are not known. `first` is its content when the
    launch began, empty where it is not recorded."""

    address: int
    size: int
    name: str
    type: str = ""
    shape: tuple[int, ...] = ()
    first: bytes = b""


class SharedArray(msgspec.Struct, frozen=True):
    """An array in the shared memory of each block: its first byte there, and its bytes."""

    name: str
    address: int
    size: int


class Changes(msgspec.Struct, frozen=True):
    """The bytes that accesses left in memory, where that is recorded: columns of u32, in order.
    Behind access `access`, its lanes find entry `value` of `values` at their addresses: as many
    bytes for each lane of the access as its site has."""

    count: int
    access: bytes
    value: bytes
    values: tuple[bytes, ...]


class MBarrier(msgspec.Struct, frozen=True):
    """An mbarrier that was initialised: its block's number in the grid, its address there."""

    block: int
    address: int


NOT_VALID = -1
"""The phase of an mbarrier that is none any more."""


class BarrierStates(msgspec.Struct, frozen=True):
    """The states of mbarriers: columns of i32, in order. Behind `step`, mbarrier `barrier` has
    ended `phase` phases; the next one awaits `pending` of its `expected` arrivals, and `bytes_left`
    bytes, less than 0 where more have come than it expects yet."""

    count: int
    step: bytes
    barrier: bytes
    phase: bytes
    pending: bytes
    expected: bytes
    bytes_left: bytes


class Flights(msgspec.Struct, frozen=True):
    """Asynchronous work: columns of u32, in the order of issue. It begins at `step`, and `until` is
    the step at which a thread has waited for it, the number of steps where none has. `kind` is
    an index of the kinds; `barrier`, one more than an index of the mbarriers, the one that is
    told of it, 0 for none."""

    count: int
    step: bytes
    until: bytes
    kind: bytes
    size: bytes
    barrier: bytes


class Asynchronous(msgspec.Struct, frozen=True):
    """Copies, products and stores that run beside the warps, and the mbarriers of blocks."""

    kinds: tuple[str, ...]
    barriers: tuple[MBarrier, ...]
    states: BarrierStates
    flights: Flights


class Fault(msgspec.Struct, frozen=True):
    """The access that ended a launch: where it reached, for how many bytes, and the thread, by its
    block's number in the grid and its number in the block."""

    address: int
    size: int
    block: int
    thread: int


class Party(msgspec.Struct, frozen=True):
    """A thread of a finding: its block's number, its warp and lane, the instruction, and the step
    of its access, -1 where that is not recorded."""

    block: int
    warp: int
    lane: int
    instruction: int
    step: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a sanitizer (`sanitize.findings`). `parties` are the later access and, where
    there are two, the earlier one; `size` bytes at `offset` of `buffer` are what they reach."""

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
    """The amount that was not recorded."""

    steps: int = 0
    warps: int = 0


class ModelledRoof(msgspec.Struct, frozen=True):
    """A throughput of the device: the fraction of it that the launch used, and the most `unit` that
    the device does in a second (`timing.roofs`)."""

    name: str
    used: float
    peak: float
    unit: str


class ModelledCopies(msgspec.Struct, frozen=True):
    """Copies of the SM that is shown, by the Tensor Memory Accelerator, in the order in which they
    began: columns of little-endian numbers. `warp` and `instruction` (u32) issued them, `since` and
    `until` (u64) are the cycles of the issue and of the arrival."""

    count: int
    warp: bytes
    instruction: bytes
    since: bytes
    until: bytes


class ModelledTime(msgspec.Struct, frozen=True, kw_only=True):
    """The states of one SM's warps at every cycle, as `timing` models them: nothing was counted.

    `cycles` are those of the whole launch, by the SMs' clock; of its `blocks` the first
    `sampled_blocks` were replayed. `sms` had blocks, and `sm` is the one of which there is more:
    `count` times in which a warp was in one state, slot by slot, each slot's in order, in columns
    of little-endian numbers. `slot` (u32) is where the warp was, `warp` (u32) its number in the
    launch, `state` (u8) an index of `states`, which have Nsight Compute's names; `since` and
    `until` (u64) are cycles, the second the first of the next state. `instruction` (u32) is what
    the warp was at, and `visit` (u32) how often it had come there before. `left_out` are the
    cycles of the SM's warps for which there was no room. `roofs` are the device's throughputs.
    `copies` are those that were in flight.
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
