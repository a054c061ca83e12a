"""Draws random programs of clusters, tensor copies and warp-group products in which every step is
synchronized: the results are equal under every schedule and with any number of workers.

A program is a list of steps that every block executes; at the begin and the end of a step, the
block or the cluster synchronizes. Slots of shared memory hold matrices in the canonical layout
without a swizzle: a box of a tensor that is 16 bytes wide is a column of core matrices.
"""

from __future__ import annotations

import random
from collections.abc import Callable

SIDE = 64
"""Rows and columns of the tensor that is read."""

SLOTS = 3
A_BYTES, B_BYTES = 2048, 512
SUMS = 8
"""Registers of D of a product of 64 x 16."""

CLUSTER, CLUSTERS, THREADS = 2, 2, 128
BLOCKS = CLUSTER * CLUSTERS
LEFT_WORDS = SUMS + 1
"""Words that a thread leaves: its sums, and what it had of the other block."""

STORED = 4
"""Places in global memory to which a block can store a matrix."""

A_DESCRIPTOR = 1024 >> 4 << 16 | 128 >> 4 << 32
B_DESCRIPTOR = 256 >> 4 << 16 | 128 >> 4 << 32

HEAD = f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 wide[128], .param .align 64 .b8 narrow[128],
                  .param .align 64 .b8 kept[128], .param .u64 out) .reqnctapercluster {CLUSTER}
{{
    .reg .b64 %wide, %narrow, %kept, %out, %da, %db, %x; .reg .pred %first, %lead, %p;
    .reg .b32 %t, %a, %b, %bar, %peer, %rank, %block, %v, %w, %sum; .reg .f32 %d<{SUMS}>;
    .reg .b16 %h;
    .shared .align 1024 .b8 a[{SLOTS * A_BYTES}]; .shared .align 1024 .b8 b[{SLOTS * B_BYTES}];
    .shared .align 16 .b32 mail[{THREADS}]; .shared .align 8 .b64 bar;
    mov.u64 %wide, wide; cvta.param.u64 %wide, %wide;
    mov.u64 %narrow, narrow; cvta.param.u64 %narrow, %narrow;
    mov.u64 %kept, kept; cvta.param.u64 %kept, %kept; ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %block, %ctaid.x;
    setp.eq.u32 %first, %t, 0; setp.eq.and.u32 %lead, %rank, 0, %first;
    mov.u32 %a, a; mov.u32 %b, b; mov.u32 %bar, bar; mov.u32 %sum, %block;
    mov.u32 %v, mail; xor.b32 %w, %rank, 1; mapa.shared::cluster.u32 %peer, %v, %w;
    {"".join(f"mov.f32 %d{n}, 0f00000000;" for n in range(SUMS))}
    @%first mbarrier.init.shared::cta.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster; fence.proxy.async;
    barrier.cluster.arrive; barrier.cluster.wait;
"""
TAIL = f"""
    mad.lo.u32 %v, %block, {THREADS}, %t; mul.wide.u32 %x, %v, {4 * LEFT_WORDS};
    add.u64 %out, %out, %x;
    {"".join(f"st.global.f32 [%out+{4 * n}], %d{n};" for n in range(SUMS))}
    st.global.u32 [%out+{4 * SUMS}], %sum;
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}}
"""
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


class Writer:
    """Writes a program step by step, and tracks the phase of the mbarrier."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.phase, self.stored = rng, 0, 0
        self.lines: list[str] = []

    def slot(self) -> int:
        return self.rng.randrange(SLOTS)

    def load(self) -> None:
        """Loads a matrix: each block its own, or the first block for both."""
        rng = self.rng
        map, place, size = rng.choice(
            [("%wide", f"%a+{A_BYTES * self.slot()}", A_BYTES),
             ("%narrow", f"%b+{B_BYTES * self.slot()}", B_BYTES)]
        )  # fmt: skip
        many = rng.random() < 0.4
        guard, tail = ("@%lead", ", %h") if many else ("@%first", "")
        name = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        name += ".multicast::cluster" if many else ""
        place_of_box, offset = place.split("+")
        self.lines.append(f"mov.u16 %h, {(1 << CLUSTER) - 1};")
        self.lines.append(f"@%first mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {size};")
        self.lines.append(MEET if many else "bar.sync 0;")
        for half in (0, 1):
            row, column = rng.randrange(-8, SIDE), 8 * rng.randrange(SIDE // 8)
            box = f"{place_of_box}+{int(offset) + half * size // 2}"
            self.lines.append(
                f"{guard} {name} [{box}], [{map}, {{{column}, {row}}}], [%bar]{tail};"
            )
        label = f"L{len(self.lines)}"
        self.lines.append(
            f"{label}: mbarrier.try_wait.parity.shared.b64 %p, [%bar], {self.phase};"
            f"@!%p bra {label}; {MEET if many else 'bar.sync 0;'}"
        )
        self.phase ^= 1

    def multiply(self) -> None:
        """Multiplies matrices of random slots, with one to three products in flight."""
        self.lines.append("wgmma.fence.sync.aligned;")
        sums = ", ".join(f"%d{n}" for n in range(SUMS))
        for _ in range(self.rng.randrange(1, 4)):
            a, b = (f"%a+{A_BYTES * self.slot()}", f"%b+{B_BYTES * self.slot()}")
            for register, place, descriptor in (("%da", a, A_DESCRIPTOR), ("%db", b, B_DESCRIPTOR)):
                base, offset = place.split("+")
                self.lines.append(
                    f"add.u32 %v, {base}, {offset}; shr.u32 %v, %v, 4; cvt.u64.u32 {register}, %v;"
                    f"or.b64 {register}, {register}, {descriptor};"
                )
            self.lines.append(
                f"wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {{{sums}}}, %da, %db, 1,"
                f" {self.rng.choice((1, -1))}, 1, 0, 0; wgmma.commit_group.sync.aligned;"
            )
        self.lines.append("wgmma.wait_group.sync.aligned 0; bar.sync 0;")

    def store(self) -> None:
        """Stores a slot's matrix to this block's part of the output."""
        place = self.stored % STORED
        self.stored += 1
        slot = A_BYTES * self.slot()
        self.lines.append(f"fence.proxy.async; bar.sync 0; mul.lo.u32 %v, %block, {16 * STORED};")
        for half in (0, 1):
            self.lines.append(
                f"add.u32 %w, %v, {16 * place + 8 * half};"
                "@%first cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
                f" [%kept, {{%w, 0}}], [%a+{slot + half * A_BYTES // 2}];"
            )
        self.lines.append(
            "@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0; bar.sync 0;"
        )

    def send(self) -> None:
        """Writes a word for each thread of the other block, and adds the word received."""
        self.lines.append(
            f"mad.lo.u32 %v, %t, 4, %peer; mad.lo.u32 %w, %t, {self.rng.randrange(1, 99)}, %sum;"
            f"st.shared::cluster.u32 [%v], %w; {MEET}"
            "mov.u32 %v, mail; mad.lo.u32 %v, %t, 4, %v; ld.shared.u32 %w, [%v];"
            f"add.u32 %sum, %sum, %w; {MEET}"
        )

    def change(self) -> None:
        """Writes a number into each row of a slot with ordinary stores."""
        base, size = self.rng.choice([("%a", A_BYTES), ("%b", B_BYTES)])
        offset = size * self.slot() + 2 * self.rng.randrange(8)
        value = self.rng.choice([0x3C00, 0xB800, 0x4000])
        self.lines.append(
            f"mov.u16 %h, {value}; rem.u32 %v, %t, {size // 16}; mad.lo.u32 %v, %v, 16, {base};"
            f"st.shared.u16 [%v+{offset}], %h; fence.proxy.async; bar.sync 0;"
        )


def program(seed: int, steps: int) -> str:
    """Returns a random program, which first fills all slots."""
    writer = Writer(random.Random(seed))
    for slot in range(SLOTS):
        writer.lines.append(
            f"mad.lo.u32 %v, %t, 16, %a; st.shared.v4.b32 [%v+{A_BYTES * slot}], {{0, 0, 0, 0}};"
            f"mad.lo.u32 %v, %t, 4, %b; st.shared.b32 [%v+{B_BYTES * slot}], 0;"
        )
    writer.lines.append(f"fence.proxy.async; {MEET}")
    kinds: list[Callable[[], None]] = [
        *[writer.load] * 3, *[writer.multiply] * 2, writer.store, writer.send, writer.change,
    ]  # fmt: skip
    for _ in range(steps):
        writer.rng.choice(kinds)()
    return HEAD + "\n".join(writer.lines) + TAIL
