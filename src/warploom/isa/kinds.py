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


class OpKind(Enum):
    """The kinds of operations, one a handler. A member holds its label and its effects."""

    # What registers hold.
    COMPUTE = "compute", Effect.NONE
    MOVE = "move", Effect.NONE
    COMPARE = "compare", Effect.NONE
    CONVERT_ADDRESS = "convert address", Effect.NONE
    TEST_PARAMETER = "test parameter", Effect.NONE
    MAP_ADDRESS = "map address", Effect.NONE
    BLOCK_RANK = "block rank", Effect.NONE
    # Memory.
    LOAD = "load", Effect.NONE
    STORE = "store", Effect.NONE
    FILL = "fill", Effect.NONE
    ATOMIC = "atomic", Effect.NONE
    REDUCTION = "reduction", Effect.NONE
    MULTICAST_ACCESS = "multicast access", Effect.NONE
    FENCE = "fence", Effect.ISSUE_ONLY
    CACHE_HINT = "cache hint", Effect.ISSUE_ONLY
    # Textures and surfaces.
    TEXTURE_LOAD = "texture load", Effect.NONE
    TEXTURE_GATHER = "texture gather", Effect.NONE
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
    REGISTER_COUNT = "register count", Effect.NONE
    DEPENDENT_LAUNCH = "dependent launch", Effect.ISSUE_ONLY
    # Threads that work together.
    BLOCK_BARRIER = "block barrier", Effect.SYNCHRONISES_BLOCK | _BLOCK_END
    CLUSTER_BARRIER = "cluster barrier", Effect.SYNCHRONISES_BLOCK | _BLOCK_END
    WARP_GROUP_BARRIER = "warp group barrier", Effect.SYNCHRONISES_BLOCK | _BLOCK_END
    WARP_BARRIER = "warp barrier", _BLOCK_END
    SHUFFLE = "shuffle", Effect.NONE
    VOTE = "vote", Effect.NONE
    MATCH = "match", Effect.NONE
    WARP_REDUCTION = "warp reduction", Effect.NONE
    ELECT = "elect", Effect.NONE
    ACTIVE_MASK = "active mask", Effect.NONE
    # Asynchronous copies, and mbarriers.
    MBARRIER = "mbarrier", Effect.NONE
    MBARRIER_INIT = "mbarrier init", Effect.NONE
    MBARRIER_WAIT = "mbarrier wait", Effect.NONE
    COPY = "copy", Effect.NONE
    BULK_COPY = "bulk copy", Effect.NONE
    ASYNC_STORE = "async store", Effect.NONE
    ASYNC_REDUCTION = "async reduction", Effect.NONE
    COPY_ARRIVE = "copy arrive", Effect.NONE
    COPY_COMMIT = "copy commit", Effect.ISSUE_ONLY
    COPY_WAIT = "copy wait", Effect.ISSUE_ONLY
    TENSOR_COPY = "tensor copy", Effect.USES_TMA
    TENSOR_PREFETCH = "tensor prefetch", Effect.USES_TMA
    TMA_BULK_COPY = "bulk copy to several blocks, or of masked bytes", Effect.USES_TMA
    BULK_REDUCTION = "bulk reduction", Effect.USES_TMA
    LAUNCH_CANCEL = "launch cancel", Effect.USES_TMA
    TENSOR_MAP = "tensor map", Effect.USES_TMA
    # Matrices.
    MATRIX_PRODUCT = "matrix product", Effect.NONE
    WARP_MATRIX_PRODUCT = "warp matrix product", Effect.NONE
    WARP_MATRIX_LOAD = "warp matrix load", Effect.NONE
    WARP_MATRIX_STORE = "warp matrix store", Effect.NONE
    MATRIX_LOAD = "matrix load", Effect.NONE
    MATRIX_STORE = "matrix store", Effect.NONE
    MATRIX_TRANSPOSE = "matrix transpose", Effect.NONE
    GROUP_PRODUCT = "group product", Effect.NONE
    GROUP_FENCE = "group fence", Effect.ISSUE_ONLY
    GROUP_COMMIT = "group commit", Effect.NONE
    GROUP_WAIT = "group wait", Effect.NONE
    # Tensor memory.
    TENSOR_ALLOC = "tensor alloc", Effect.USES_TENSOR_MEMORY
    TENSOR_FREE = "tensor free", Effect.USES_TENSOR_MEMORY
    TENSOR_PERMIT = "tensor permit", Effect.USES_TENSOR_MEMORY
    TENSOR_LOAD = "tensor load", Effect.USES_TENSOR_MEMORY
    TENSOR_STORE = "tensor store", Effect.USES_TENSOR_MEMORY
    TENSOR_PRODUCT = "tensor product", Effect.USES_TENSOR_MEMORY
    TENSOR_MEMORY_COPY = "tensor memory copy", Effect.USES_TENSOR_MEMORY
    TENSOR_SHIFT = "tensor shift", Effect.USES_TENSOR_MEMORY
    TENSOR_COMMIT = "tensor commit", Effect.USES_TENSOR_MEMORY
    TENSOR_WAIT_LOADS = (
        "tensor wait loads",
        Effect.ISSUE_ONLY | Effect.USES_TENSOR_MEMORY,
    )
    TENSOR_WAIT_STORES = (
        "tensor wait stores",
        Effect.ISSUE_ONLY | Effect.USES_TENSOR_MEMORY,
    )
    TENSOR_FENCE = (
        "tensor fence",
        Effect.ISSUE_ONLY | Effect.USES_TENSOR_MEMORY,
    )

    def __init__(self, label: str, effects: Effect) -> None:
        """Stores the label, which is unique, and the effects, also as the bits of a number."""
        self.label, self.effects, self.effect_bits = label, effects, effects.value

    # Members are compared by identity, so identity may be hashed: `Enum` hashes the name in Python,
    # at each look-up of a handler.
    __hash__ = object.__hash__

    def has(self, effects: Effect) -> bool:
        """Returns whether the kind has any of the effects."""
        # Numbers, since `&` of two flags makes a flag: it took most of the time of this test.
        return self.effect_bits & effects.value != 0


ACCESSES_BY_LANE = frozenset({OpKind.LOAD, OpKind.STORE, OpKind.FILL, OpKind.ASYNC_STORE})
"""Loads and stores in which each lane accesses memory at its own address."""
