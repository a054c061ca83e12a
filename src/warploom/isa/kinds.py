"""Names the kinds of operations, and states for each kind its effects and what it needs of its
launch. The compiler, the interpreter, the detectors and the model of time dispatch on these, not on
the names of instructions.

Every syntax line of the manual (`isa.spec.OpSpec`) has a kind. A new instruction of an existing
kind needs no more than its line; one with a new effect adds a kind here, and a handler where the
kind is executed (`machine.reference.warp`, `lower.instructions`).

    ld.global.f32    LOAD            reads memory
    bar.sync         BLOCK_BARRIER   synchronizes, ends a basic block
    cp.async.wait_all  COPY_WAIT     awaits asynchronous work
    add.s32          COMPUTE         none: its terms say all (`isa.terms`)
"""

from __future__ import annotations

from enum import Enum, Flag, auto


class Effect(Flag):
    """The effects of an operation besides the registers that it writes."""

    NONE = 0
    BRANCHES = auto()
    """Control may continue elsewhere, in each lane by itself."""
    ENDS_THREAD = auto()
    """The executing threads end; in a function, return."""
    ENDS_BASIC_BLOCK = auto()
    """It is the last instruction of its basic block: control may leave, or the warp be suspended.
    """
    SYNCHRONISES_BLOCK = auto()
    """Threads of a thread block, a warp group or a cluster arrive at, or wait for, a barrier."""
    ISSUE_ONLY = auto()
    """It is issued and counted, and changes nothing on these machines: memory accesses take effect
    in program order, so a fence has nothing left to order; no cache, clock, debugger or other grid
    takes notice."""
    CALLS = auto()
    """Calls a function of the program, or of the host."""
    MOVES_STACK = auto()
    """Reads or sets the end of the thread's stack in local memory."""
    LOADS = auto()
    """Loads from the state space that its opcode names, in each lane at its own address."""
    STORES = auto()
    """Stores to the state space that its opcode names, in each lane at its own address."""
    WRITES_PREDICATE = auto()
    """May write a predicate beside its result: `d|p`."""
    USES_TMA = auto()
    """Executed as a request to the Tensor Memory Accelerator (`asynchronous.tensors`)."""
    USES_TENSOR_MEMORY = auto()
    """Executed by the fifth generation of tensor cores (`asynchronous.tensor_memory`)."""


class Needs(Flag):
    """Flags the parts of a launch and of machine code that an operation needs; a kernel has those
    that some operation of it needs (`program.Program.needs`)."""

    NONE = 0
    HARDWARE_BARRIER = auto()
    """A barrier of the multiprocessor, in the estimate of a kernel's resources."""
    RESUMPTION = auto()
    """Warps suspend and resume: they wait for other warps, or reallocate registers."""
    CLUSTER_BARRIER = auto()
    """The barrier of the cluster: other thread blocks see the order of warps."""
    CLUSTER_ADDRESSES = auto()
    """Addresses of shared memory that name a thread block, even in a cluster of one block."""
    LAUNCH_CANCELLATION = auto()
    """Thread blocks run on one worker, and take over the work of blocks that are not launched."""
    FAILED_WAITS = auto()
    """A turn ends after lanes polled an incomplete phase of an mbarrier."""
    COMPLETION_QUEUE = auto()
    """A queue of copies and of work in tensor memory, for schedules that delay completion."""
    IN_FLIGHT_RING = auto()
    """A ring of a warp's products or loads in flight, for schedules that delay completion."""
    TENSOR_MEMORY = auto()
    """Tensor memory of each thread block, after its shared memory."""


_BLOCK_END = Effect.ENDS_BASIC_BLOCK
_TMA = Effect.USES_TMA, Needs.COMPLETION_QUEUE
_TENSOR_MEMORY = Effect.USES_TENSOR_MEMORY, Needs.COMPLETION_QUEUE | Needs.TENSOR_MEMORY
_TENSOR_ORDER = Effect.USES_TENSOR_MEMORY | Effect.ISSUE_ONLY, Needs.COMPLETION_QUEUE
_BARRIER = Effect.SYNCHRONISES_BLOCK | _BLOCK_END
_HARDWARE_BARRIER = Needs.HARDWARE_BARRIER | Needs.RESUMPTION


class OpKind(Enum):
    """The kinds of operations, one a handler. A member holds its label, effects and needs."""

    # What registers hold.
    COMPUTE = "compute", Effect.NONE
    MOVE = "move", Effect.NONE
    COMPARE = "compare", Effect.NONE
    CONVERT_ADDRESS = "convert address", Effect.NONE
    TEST_PARAMETER = "test parameter", Effect.NONE
    MAP_ADDRESS = "map address", Effect.NONE, Needs.CLUSTER_ADDRESSES
    BLOCK_RANK = "block rank", Effect.NONE
    # Memory.
    LOAD = "load", Effect.LOADS
    STORE = "store", Effect.STORES
    FILL = "fill", Effect.STORES
    ATOMIC = "atomic", Effect.NONE
    REDUCTION = "reduction", Effect.NONE
    MULTICAST_ACCESS = "multicast access", Effect.NONE
    FENCE = "fence", Effect.ISSUE_ONLY
    CACHE_HINT = "cache hint", Effect.ISSUE_ONLY
    # Textures and surfaces.
    TEXTURE_LOAD = "texture load", Effect.WRITES_PREDICATE
    TEXTURE_GATHER = "texture gather", Effect.WRITES_PREDICATE
    TEXTURE_QUERY = "texture query", Effect.NONE
    SURFACE_QUERY = "surface query", Effect.NONE
    SURFACE_LOAD = "surface load", Effect.NONE
    SURFACE_STORE = "surface store", Effect.NONE
    SURFACE_REDUCTION = "surface reduction", Effect.NONE
    # Control.
    BRANCH = "branch", Effect.BRANCHES | _BLOCK_END
    INDEXED_BRANCH = "indexed branch", Effect.BRANCHES | _BLOCK_END
    CALL = "call", Effect.CALLS
    RETURN = "return", Effect.ENDS_THREAD | _BLOCK_END
    EXIT = "exit", Effect.ENDS_THREAD | _BLOCK_END
    TRAP = "trap", _BLOCK_END
    SLEEP = "sleep", Effect.ISSUE_ONLY
    BREAKPOINT = "breakpoint", Effect.ISSUE_ONLY
    EVENT_HINT = "event hint", Effect.ISSUE_ONLY
    STACK_ALLOCATION = "stack allocation", Effect.MOVES_STACK
    STACK_SAVE = "stack save", Effect.MOVES_STACK
    STACK_RESTORE = "stack restore", Effect.MOVES_STACK
    REGISTER_COUNT = "register count", Effect.NONE, Needs.RESUMPTION
    DEPENDENT_LAUNCH = "dependent launch", Effect.ISSUE_ONLY
    # Threads that work together.
    BLOCK_BARRIER = "block barrier", _BARRIER, _HARDWARE_BARRIER
    CLUSTER_BARRIER = "cluster barrier", _BARRIER, _HARDWARE_BARRIER | Needs.CLUSTER_BARRIER
    WARP_GROUP_BARRIER = "warp group barrier", _BARRIER, Needs.RESUMPTION
    REGISTER_WAIT = "register wait", _BARRIER, Needs.RESUMPTION
    WARP_BARRIER = "warp barrier", _BLOCK_END
    SHUFFLE = "shuffle", Effect.WRITES_PREDICATE
    VOTE = "vote", Effect.NONE
    MATCH = "match", Effect.WRITES_PREDICATE
    WARP_REDUCTION = "warp reduction", Effect.NONE
    ELECT = "elect", Effect.WRITES_PREDICATE
    ACTIVE_MASK = "active mask", Effect.NONE
    # Asynchronous copies, and mbarriers.
    MBARRIER = "mbarrier", Effect.NONE
    MBARRIER_INIT = "mbarrier init", Effect.NONE
    MBARRIER_WAIT = "mbarrier wait", Effect.NONE, Needs.FAILED_WAITS
    COPY = "copy", Effect.NONE, Needs.COMPLETION_QUEUE
    BULK_COPY = "bulk copy", Effect.NONE, Needs.COMPLETION_QUEUE
    ASYNC_STORE = "async store", Effect.STORES, Needs.COMPLETION_QUEUE
    ASYNC_REDUCTION = "async reduction", Effect.NONE, Needs.COMPLETION_QUEUE
    COPY_ARRIVE = "copy arrive", Effect.NONE
    COPY_COMMIT = "copy commit", Effect.ISSUE_ONLY
    COPY_WAIT = "copy wait", Effect.ISSUE_ONLY
    TENSOR_COPY = "tensor copy", *_TMA
    TENSOR_PREFETCH = "tensor prefetch", *_TMA
    TMA_BULK_COPY = "bulk copy to several blocks, or with a byte mask", *_TMA
    BULK_REDUCTION = "bulk reduction", *_TMA
    LAUNCH_CANCEL = "launch cancel", _TMA[0], _TMA[1] | Needs.LAUNCH_CANCELLATION
    TENSOR_MAP = "tensor map", *_TMA
    # Matrices.
    MATRIX_PRODUCT = "matrix product", Effect.NONE
    WARP_MATRIX_PRODUCT = "warp matrix product", Effect.NONE
    WARP_MATRIX_LOAD = "warp matrix load", Effect.LOADS
    WARP_MATRIX_STORE = "warp matrix store", Effect.STORES
    MATRIX_LOAD = "matrix load", Effect.LOADS
    MATRIX_STORE = "matrix store", Effect.STORES
    MATRIX_TRANSPOSE = "matrix transpose", Effect.NONE
    GROUP_PRODUCT = "group product", Effect.NONE, Needs.IN_FLIGHT_RING
    GROUP_FENCE = "group fence", Effect.ISSUE_ONLY
    GROUP_COMMIT = "group commit", Effect.NONE
    GROUP_WAIT = "group wait", Effect.NONE
    # Tensor memory.
    TENSOR_ALLOC = "tensor alloc", *_TENSOR_MEMORY
    TENSOR_FREE = "tensor free", *_TENSOR_MEMORY
    TENSOR_PERMIT = "tensor permit", *_TENSOR_MEMORY
    TENSOR_LOAD = "tensor load", _TENSOR_MEMORY[0], _TENSOR_MEMORY[1] | Needs.IN_FLIGHT_RING
    TENSOR_STORE = "tensor store", *_TENSOR_MEMORY
    TENSOR_PRODUCT = "tensor product", *_TENSOR_MEMORY
    TENSOR_MEMORY_COPY = "tensor memory copy", *_TENSOR_MEMORY
    TENSOR_SHIFT = "tensor shift", *_TENSOR_MEMORY
    TENSOR_COMMIT = "tensor commit", *_TENSOR_MEMORY
    TENSOR_WAIT_LOADS = "tensor wait loads", *_TENSOR_ORDER
    TENSOR_WAIT_STORES = "tensor wait stores", *_TENSOR_ORDER
    TENSOR_FENCE = "tensor fence", *_TENSOR_ORDER
    # What is refused when a module is loaded (`isa.ops.absent`): no machine executes it.
    ABSENT = "absent", Effect.NONE

    def __init__(self, label: str, effects: Effect, needs: Needs = Needs.NONE) -> None:
        """Stores the label, which is unique, the effects, also as the bits of a number, and the
        needs."""
        self.label, self.effects, self.effect_bits = label, effects, effects.value
        self.needs = needs

    # Members are compared by identity, so identity may be hashed: `Enum` hashes the name in Python,
    # at each look-up of a handler.
    __hash__ = object.__hash__

    def has(self, effects: Effect) -> bool:
        """Returns whether the kind has any of the effects."""
        # Numbers, since `&` of two flags makes a flag: it took most of the time of this test.
        return self.effect_bits & effects.value != 0


ACCESSES_BY_LANE = frozenset({OpKind.LOAD, OpKind.STORE, OpKind.FILL, OpKind.ASYNC_STORE})
"""Loads and stores in which each lane accesses memory at its own address."""
