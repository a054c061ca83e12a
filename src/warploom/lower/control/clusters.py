"""Emits operations of thread block clusters: their barrier, and addresses in the shared memory of
their other blocks.

A shared address has the block's rank plus one in its upper bits, 0 for the own block.
`ld.shared::cluster` at rank 2, offset 16 becomes an access at `start + 2 * stride + 16` on the
host.
"""

from __future__ import annotations

from warploom.abi.environment import SPACE_CODES, Slot, Status
from warploom.core.lazy import cached_property
from warploom.helpers.calls import call
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I32, I64, Value, vector
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.specials import Specials
from warploom.simt.address_windows import BLOCK_BITS


class ClusterCode:
    """Emits cluster operations of a warp function. `several`: the launch's clusters may have
    several blocks (`KernelVariant.clusters`); without, no code for other blocks is emitted."""

    def __init__(self, frame: Frame, *, several: bool) -> None:
        """Creates the reader of special registers from which the block's rank is computed."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.several = several
        self._specials = Specials(frame)

    @property
    def rank(self) -> Value:
        """Returns the rank of the block in its cluster, as an i64."""
        return self.frame.prologue.b.zext(self._specials.rank(), I64)

    def live(self) -> Value:
        """Returns the ranks of the cluster's blocks that are resident at the moment, as bits of an
        i64; 1 (rank 0) without clusters of several blocks."""
        if not self.several:
            return I64(1)
        frame = self.frame
        return call(
            self.lanes, "live_ranks", frame.pointer(Slot.PLAN_AT), frame.pointer(Slot.SLOTS_AT)
        )

    def start(self) -> Value:
        """Returns the host address of the shared memory of the cluster's first block, as an i64:
        the blocks of a cluster follow each other at a distance of SHARED_STRIDE bytes, in the order
        of their ranks. Without clusters of several blocks it is that of the running block."""
        if not self.several:
            return self.frame.slot(Slot.SHARED_AT)
        p = self.frame.prologue.b
        before = p.mul(self.rank, self.frame.slot(Slot.SHARED_STRIDE))
        return p.sub(self.frame.slot(Slot.SHARED_AT), before)

    def offsets_in_cluster(self, index: int, addresses: Value, mask: Value, size: int) -> Value:
        """Returns the byte offsets from `start` (64-bit lanes) of accesses of `size` bytes at
        shared addresses of the cluster, computed and checked by the helper `check_cluster` in the
        lanes of `mask`. Emits the exit with a fault of instruction `index`, taken at an address
        outside of shared memory, or of a block that is not resident."""
        b, frame = self.b, self.frame
        b.store(addresses, self._buffer, align=64)
        bits = b.zext(self.lanes.bits(mask), I64)
        failed = call(
            self.lanes,
            "check_cluster",
            self._buffer,
            bits,
            I64(size),
            self.rank,
            self.live(),
            frame.environment,
            frame.slot(Slot.SHARED_BYTES),
            frame.slot(Slot.SHARED_STRIDE),
        )
        with b.if_then(b.icmp_unsigned("!=", failed, I64(0)), likely=False):
            frame.record(Slot.FAULT_INSTRUCTION, I64(index))
            frame.record(Slot.FAULT_WARP, frame.warp)
            frame.record(Slot.FAULT_SPACE, I64(SPACE_CODES[Space.SHARED]))
            frame.leave(Status.FAULT)
        return b.load(self._buffer, typ=vector(I64), align=64)

    def must_wait(self, on: Value) -> Value:
        """Emits the call of `cluster_wait`, which tests whether the lanes `on` of the running warp
        have to wait at the cluster's barrier for lanes that have not arrived; returns true (an i1)
        if so."""
        b, frame = self.b, self.frame
        failed = call(
            self.lanes,
            "cluster_wait",
            frame.pointer(Slot.PLAN_AT),
            frame.pointer(Slot.SLOTS_AT),
            frame.pointer(Slot.STATES_BASE),
            frame.pointer(Slot.CONTEXTS_BASE),
            frame.warp,
            b.zext(b.load(frame.active.live, typ=I32), I64),
            b.zext(self.lanes.bits(on), I64),
        )
        return b.icmp_unsigned("!=", failed, I64(0))

    def rank_of(self, address: Value) -> Value:
        """Returns the ranks (i32 lanes) of the blocks that 64-bit shared addresses belong to
        (`getctarank`); that of the running block for an address that holds no rank."""
        b, splat = self.b, self.lanes.splat
        # The byte at BLOCK_BITS holds the rank plus one; 0 stands for the own block.
        block_field = b.and_(b.lshr(address, splat(I64(BLOCK_BITS))), splat(I64((1 << 8) - 1)))
        rank = b.sub(block_field, splat(I64(1)))
        is_own = b.icmp_unsigned("==", block_field, splat(I64(0)))
        return b.trunc(b.select(is_own, splat(self.rank), rank), vector(I32))

    @cached_property
    def _buffer(self) -> Value:
        """Returns the stack buffer, created at its first use, in which 32 addresses are passed to
        `check_cluster`.
        """
        return self.frame.prologue.alloca(vector(I64), align=64)
