"""Names the kinds of operations, and states for each kind its effects: what the compiler, the
interpreter, the detectors and the model of time dispatch on, in place of the names of instructions.

Every syntax line of the manual (`isa.spec.OpSpec`) has a kind. A new instruction of an existing
kind needs no more than its line; one with a new effect adds a kind here, and a handler where the
kind is executed (`machine.reference.warp`, `lower.instructions`).

    ld.global.f32    LOAD            reads memory
    bar.sync         BLOCK_BARRIER   synchronises, ends a basic block
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
    CROSSES_LANES = auto()
    """A lane's result depends on registers of other lanes, or on which lanes are active."""
    READS_MEMORY = auto()
    WRITES_MEMORY = auto()
    ORDERS_MEMORY = auto()
    """A fence: changes no value, but the order in which others may see accesses."""
    ISSUES_COPY = auto()
    """Begins asynchronous work, which may complete after later instructions."""
    COMMITS_COPIES = auto()
    """Makes a group of the thread's asynchronous work, or has it signal an mbarrier."""
    AWAITS_COPIES = auto()
    """Waits for asynchronous work."""
    ISSUE_ONLY = auto()
    """It is issued and counted, and changes nothing on these machines: memory accesses take effect
    in program order, so a fence has nothing left to order; no cache, clock, debugger or other grid
    takes notice."""
    CALLS = auto()
    """Calls a function of the program, or of the host."""
    MOVES_STACK = auto()
    """Reads or sets the end of the thread's stack in local memory."""
    USES_TMA = auto()
    """Executed as a request to the Tensor Memory Accelerator (`asynchronous.tensors`)."""
    USES_TENSOR_MEMORY = auto()
    """Executed by the fifth generation of tensor cores (`asynchronous.tensor_memory`)."""


_BLOCK_END = Effect.ENDS_BASIC_BLOCK
_ATOMIC = Effect.READS_MEMORY | Effect.WRITES_MEMORY
_ISSUE = Effect.READS_MEMORY | Effect.WRITES_MEMORY | Effect.ISSUES_COPY


class OpKind(Enum):
    """The kinds of operations; the value of a member is its effects, and its handler's name."""

    # What registers hold.
    COMPUTE = "compute", Effect.NONE
    MOVE = "move", Effect.NONE
    COMPARE = "compare", Effect.NONE
    CONVERT_ADDRESS = "convert address", Effect.NONE
    TEST_PARAMETER = "test parameter", Effect.NONE
    MAP_ADDRESS = "map address", Effect.NONE
    BLOCK_RANK = "block rank", Effect.NONE
    # Memory.
    LOAD = "load", Effect.READS_MEMORY
    STORE = "store", Effect.WRITES_MEMORY
    FILL = "fill", Effect.WRITES_MEMORY
    ATOMIC = "atomic", _ATOMIC
    REDUCTION = "reduction", _ATOMIC
    MULTICAST_ACCESS = "multicast access", _ATOMIC
    FENCE = "fence", Effect.ORDERS_MEMORY | Effect.ISSUE_ONLY
    CACHE_HINT = "cache hint", Effect.ISSUE_ONLY
    # Textures and surfaces.
    TEXTURE_LOAD = "texture load", Effect.READS_MEMORY
    TEXTURE_GATHER = "texture gather", Effect.READS_MEMORY
    TEXTURE_QUERY = "texture query", Effect.NONE
    SURFACE_QUERY = "surface query", Effect.NONE
    SURFACE_LOAD = "surface load", Effect.READS_MEMORY
    SURFACE_STORE = "surface store", Effect.WRITES_MEMORY
    SURFACE_REDUCTION = "surface reduction", _ATOMIC
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
    REGISTER_COUNT = "register count", Effect.NONE
    DEPENDENT_LAUNCH = "dependent launch", Effect.ISSUE_ONLY
    # Threads that work together.
    BLOCK_BARRIER = "block barrier", Effect.SYNCHRONISES_BLOCK | _BLOCK_END
    CLUSTER_BARRIER = "cluster barrier", Effect.SYNCHRONISES_BLOCK | _BLOCK_END
    WARP_GROUP_BARRIER = "warp group barrier", Effect.SYNCHRONISES_BLOCK | _BLOCK_END
    WARP_BARRIER = "warp barrier", Effect.CROSSES_LANES | _BLOCK_END
    SHUFFLE = "shuffle", Effect.CROSSES_LANES
    VOTE = "vote", Effect.CROSSES_LANES
    MATCH = "match", Effect.CROSSES_LANES
    WARP_REDUCTION = "warp reduction", Effect.CROSSES_LANES
    ELECT = "elect", Effect.CROSSES_LANES
    ACTIVE_MASK = "active mask", Effect.CROSSES_LANES
    # Asynchronous copies, and mbarriers.
    MBARRIER = "mbarrier", _ATOMIC
    MBARRIER_INIT = "mbarrier init", _ATOMIC
    MBARRIER_WAIT = "mbarrier wait", _ATOMIC | Effect.AWAITS_COPIES
    COPY = "copy", _ISSUE
    BULK_COPY = "bulk copy", _ISSUE
    ASYNC_STORE = "async store", Effect.WRITES_MEMORY | Effect.ISSUES_COPY
    ASYNC_REDUCTION = "async reduction", _ISSUE
    COPY_ARRIVE = "copy arrive", _ATOMIC | Effect.COMMITS_COPIES
    COPY_COMMIT = "copy commit", Effect.COMMITS_COPIES | Effect.ISSUE_ONLY
    COPY_WAIT = "copy wait", Effect.AWAITS_COPIES | Effect.ISSUE_ONLY
    TENSOR_COPY = "tensor copy", _ISSUE | Effect.USES_TMA
    TENSOR_PREFETCH = "tensor prefetch", Effect.READS_MEMORY | Effect.USES_TMA
    TMA_BULK_COPY = "bulk copy to several blocks, or of masked bytes", _ISSUE | Effect.USES_TMA
    BULK_REDUCTION = "bulk reduction", _ISSUE | Effect.USES_TMA
    LAUNCH_CANCEL = (
        "launch cancel",
        Effect.WRITES_MEMORY | Effect.ISSUES_COPY | Effect.USES_TMA,
    )
    TENSOR_MAP = "tensor map", _ATOMIC | Effect.USES_TMA
    # Matrices.
    MATRIX_PRODUCT = "matrix product", Effect.CROSSES_LANES
    WARP_MATRIX_PRODUCT = "warp matrix product", Effect.CROSSES_LANES
    WARP_MATRIX_LOAD = "warp matrix load", Effect.READS_MEMORY | Effect.CROSSES_LANES
    WARP_MATRIX_STORE = "warp matrix store", Effect.WRITES_MEMORY | Effect.CROSSES_LANES
    MATRIX_LOAD = "matrix load", Effect.READS_MEMORY | Effect.CROSSES_LANES
    MATRIX_STORE = "matrix store", Effect.WRITES_MEMORY | Effect.CROSSES_LANES
    MATRIX_TRANSPOSE = "matrix transpose", Effect.CROSSES_LANES
    GROUP_PRODUCT = "group product", _ISSUE
    GROUP_FENCE = "group fence", Effect.ISSUE_ONLY
    GROUP_COMMIT = "group commit", Effect.COMMITS_COPIES
    GROUP_WAIT = "group wait", Effect.AWAITS_COPIES
    # Tensor memory.
    TENSOR_ALLOC = "tensor alloc", Effect.WRITES_MEMORY | Effect.USES_TENSOR_MEMORY
    TENSOR_FREE = "tensor free", Effect.USES_TENSOR_MEMORY
    TENSOR_PERMIT = "tensor permit", Effect.USES_TENSOR_MEMORY
    TENSOR_LOAD = "tensor load", Effect.ISSUES_COPY | Effect.USES_TENSOR_MEMORY
    TENSOR_STORE = "tensor store", Effect.ISSUES_COPY | Effect.USES_TENSOR_MEMORY
    TENSOR_PRODUCT = "tensor product", _ISSUE | Effect.USES_TENSOR_MEMORY
    TENSOR_MEMORY_COPY = "tensor memory copy", _ISSUE | Effect.USES_TENSOR_MEMORY
    TENSOR_SHIFT = "tensor shift", Effect.ISSUES_COPY | Effect.USES_TENSOR_MEMORY
    TENSOR_COMMIT = "tensor commit", Effect.COMMITS_COPIES | Effect.USES_TENSOR_MEMORY
    TENSOR_WAIT_LOADS = (
        "tensor wait loads",
        Effect.AWAITS_COPIES | Effect.ISSUE_ONLY | Effect.USES_TENSOR_MEMORY,
    )
    TENSOR_WAIT_STORES = (
        "tensor wait stores",
        Effect.AWAITS_COPIES | Effect.ISSUE_ONLY | Effect.USES_TENSOR_MEMORY,
    )
    TENSOR_FENCE = (
        "tensor fence",
        Effect.ORDERS_MEMORY | Effect.ISSUE_ONLY | Effect.USES_TENSOR_MEMORY,
    )

    def __init__(self, label: str, effects: Effect) -> None:
        """Stores the label, which is unique, and the effects."""
        self.label, self.effects = label, effects
