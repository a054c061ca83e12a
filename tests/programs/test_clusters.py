"""Clusters of blocks: who is in which, the barrier, and the shared memory of other blocks; on both
engines, under every schedule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

POLICIES = ("converge", "fair", "random", "adversarial")
WAYS = [(engine, policy) for engine in ("reference", "compiled") for policy in POLICIES]

HEADER = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {directives}
{{
    .reg .b32 %r<32>, %t, %rank, %size;
    .reg .b64 %d<16>, %out;
    .reg .pred %p<8>, %first;
    .shared .align 16 .b32 box[64];
    .shared .align 8 .b64 bar;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %size, %cluster_nctarank;
"""
MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


def run(
    body: str,
    grid: tuple[int, ...],
    threads: int,
    words: int,
    way: tuple[str, str],
    cluster: tuple[int, ...] | None = None,
    directives: str = "",
) -> tuple[np.ndarray, wl.Run]:
    engine, policy = way
    gpu = wl.Device("h100", engine=engine, schedule=policy, seed=3)
    out = np.zeros(words, np.uint32)
    text = f"{HEADER.format(directives=directives)}{body}\n}}\n"
    made = gpu.compile(text, "ptx")["k"][grid, threads](out, cluster_dims=cluster)
    return out, made


REGISTERS = (
    *(f"%clusterid.{p}" for p in "xyz"),
    *(f"%nclusterid.{p}" for p in "xyz"),
    *(f"%cluster_ctaid.{p}" for p in "xyz"),
    *(f"%cluster_nctaid.{p}" for p in "xyz"),
    *("%cluster_ctarank", "%cluster_nctarank"),
)


@pytest.mark.parametrize("way", WAYS[::4])
@pytest.mark.parametrize("named", ["launch", "kernel", "nobody"])
def test_every_block_knows_its_place(way: tuple[str, str], named: str) -> None:
    """A grid of 4 x 6 x 2 blocks in clusters of 2 x 3 x 1, by the definitions of the registers."""
    grid, cluster = (4, 6, 2), (2, 3, 1) if named != "nobody" else (1, 1, 1)
    count = len(REGISTERS) + 1
    signals = "".join(
        f"mov.u32 %r1, {name}; st.global.u32 [%d1+{4 * n}], %r1;"
        for n, name in enumerate(REGISTERS)
    )
    body = f"""
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z;
    mad.lo.u32 %r3, %r4, 6, %r3; mad.lo.u32 %r2, %r3, 4, %r2;
    mad.wide.u32 %d1, %r2, {4 * count}, %out;
    {signals}
    mov.pred %p1, %is_explicit_cluster;
    selp.u32 %r1, 1, 0, %p1;
    st.global.u32 [%d1+{4 * count - 4}], %r1;
    ret;
    """
    directives = ".reqnctapercluster 2, 3" if named == "kernel" else ""
    asked = cluster if named == "launch" else None
    out, _ = run(body, grid, 1, 48 * count, way, asked, directives)
    rows = out.reshape(2, 6, 4, count)
    for (z, y, x), _ in np.ndenumerate(rows[..., 0]):
        at = np.array((x, y, z))
        inside = at % cluster
        rank = inside[0] + cluster[0] * (inside[1] + cluster[1] * inside[2])
        expected = [*(at // cluster), *(np.array(grid) // cluster), *inside, *cluster]
        expected += [rank, np.prod(cluster), int(named != "nobody")]
        assert rows[z, y, x].tolist() == expected


@pytest.mark.parametrize("way", WAYS)
def test_blocks_read_each_others_memory(way: tuple[str, str]) -> None:
    """Thread t of every block stores 100 rank + t, then reads that of the next block, by mapa and
    ld.shared::cluster, and of the one after by a generic address; three times over with 1000
    more."""
    body = f"""
    mov.u32 %r1, box;
    mad.lo.u32 %r1, %t, 4, %r1;                      // my word
    mad.lo.u32 %r2, %rank, 100, %t;                  // what I store
    add.u32 %r3, %rank, 1; rem.u32 %r3, %r3, %size;
    add.u32 %r4, %rank, 2; rem.u32 %r4, %r4, %size;
    mapa.shared::cluster.u32 %r5, %r1, %r3;
    cvt.u64.u32 %d1, %r1;
    cvta.shared.u64 %d1, %d1;
    mapa.u64 %d2, %d1, %r4;
    getctarank.shared::cluster.u32 %r10, %r5;
    getctarank.u64 %r11, %d2;
    getctarank.shared::cluster.u32 %r12, %r1;
    mov.u32 %r6, 0;
    mov.u32 %r7, 0;
again:
    st.shared.u32 [%r1], %r2;
    {MEET}
    ld.shared::cluster.u32 %r8, [%r5];
    ld.u32 %r9, [%d2];
    add.u32 %r6, %r6, %r8;
    mad.lo.u32 %r6, %r9, 3, %r6;
    {MEET}
    add.u32 %r2, %r2, 1000;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, 3;
    @%p1 bra again;
    mov.u32 %r13, %ctaid.x;
    mad.lo.u32 %r13, %r13, 64, %t;
    mad.wide.u32 %d3, %r13, 16, %out;
    st.global.v4.u32 [%d3], {{%r6, %r10, %r11, %r12}};
    ret;
    """
    out, _ = run(body, (8,), 64, 8 * 64 * 4, way, (4, 1, 1))
    found = out.reshape(8, 64, 4)
    for block in range(8):
        rank = block % 4
        first, second = (100 * ((rank + n) % 4) + np.arange(64) for n in (1, 2))
        total = 3 * (first + 3 * second) + 3000 * 4
        assert (found[block, :, 0] == total).all()
        assert (found[block, :, 1:] == [(rank + 1) % 4, (rank + 2) % 4, rank]).all()


@pytest.mark.parametrize("way", WAYS)
def test_atomics_stores_and_mbarriers_of_block_0(way: tuple[str, str]) -> None:
    """All blocks add to a word of block 0 and arrive at its mbarrier, on which it waits; each then
    gets a store with a count of its bytes (st.async) into its own memory."""
    body = f"""
    mov.u32 %r1, box; mov.u32 %r2, bar;
    mov.u32 %r3, 0;
    @%first mbarrier.init.shared::cta.b64 [%r2], 1;
    @%first st.shared.u32 [%r1], %r3;
    @%first fence.mbarrier_init.release.cluster;
    {MEET}
    mapa.shared::cluster.u32 %r4, %r1, 0;
    mapa.shared::cluster.u32 %r5, %r2, 0;
    red.shared::cluster.add.u32 [%r4], 5;
    @%first atom.shared::cluster.add.u32 %r6, [%r4], 1000;
    // the next block's mbarrier expects the bytes that this one sends
    add.u32 %r7, %rank, 1; rem.u32 %r7, %r7, %size;
    mapa.shared::cluster.u32 %r8, %r1, %r7;
    mapa.shared::cluster.u32 %r9, %r2, %r7;
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 8;
    mov.u32 %r11, 77;
    add.u32 %r12, %rank, 40;
    @%first st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32
        [%r8+8], {{%r11, %r12}}, [%r9];
waits:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
    @!%p1 bra waits;
    {MEET}
    ld.shared.v2.u32 {{%r13, %r14}}, [%r1+8];
    ld.shared.u32 %r15, [%r1];
    mov.u32 %r16, %ctaid.x;
    mad.wide.u32 %d1, %r16, 16, %out;
    @%first st.global.v4.u32 [%d1], {{%r13, %r14, %r15, %rank}};
    ret;
    """
    out, _ = run(body, (6,), 64, 24, way, (3, 1, 1))
    for block, row in enumerate(out.reshape(6, 4).tolist()):
        rank = block % 3
        total = 3 * (64 * 5 + 1000) if rank == 0 else 0
        assert row == [77, 40 + (rank + 2) % 3, total, rank]


@pytest.mark.parametrize("way", WAYS)
def test_threads_that_left_are_not_waited_for(way: tuple[str, str]) -> None:
    """Block 1 ends at once; half of the others' threads have left before the barrier, the lanes of
    a warp come to it one half after the other."""
    body = """
    setp.eq.u32 %p1, %rank, 1;
    @%p1 ret;
    setp.ge.u32 %p2, %t, 48;
    @%p2 ret;
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p3, %r1, 0;
    @%p3 bra even;
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    bra met;
even:
    barrier.cluster.arrive;
    barrier.cluster.wait.acquire;
met:
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r2, %r2, 64, %t;
    mad.wide.u32 %d1, %r2, 4, %out;
    mov.u32 %r3, 1;
    st.global.u32 [%d1], %r3;
    ret;
    """
    out, _ = run(body, (4,), 64, 256, way, (2, 1, 1))
    expected = np.zeros((4, 64), int)
    expected[::2, :48] = 1
    assert (out.reshape(4, 64) == expected).all()


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("sender", [0, 1])
def test_a_block_that_signals_and_then_waits_is_no_deadlock(
    way: tuple[str, str], sender: int
) -> None:
    """One block spins on its mbarrier, at which the other arrives before it waits at the barrier
    of the cluster: the spinning block has to be asked again."""
    body = f"""
    mov.u32 %r1, bar;
    @%first mbarrier.init.shared.b64 [%r1], 1;
    {MEET}
    setp.ne.u32 %p1, %rank, {sender};
    @%p1 bra.uni wait;
    mapa.shared::cluster.u32 %r2, %r1, {1 - sender};
    @%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
    bra.uni meet;
wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0;
    @!%p2 bra.uni wait;
meet:
    {MEET}
    mad.lo.u32 %r3, %rank, 64, %t; mad.wide.u32 %d1, %r3, 4, %out;
    st.global.u32 [%d1], %r3;
    ret;
    """
    out, _ = run(body, (2,), 64, 128, way, (2,))
    assert out.tolist() == list(range(128))


@pytest.mark.parametrize("way", WAYS)
def test_misuse_is_reported(way: tuple[str, str]) -> None:
    """A block that has ended, one that never was, and a barrier to which one thread does not
    come."""
    ended = f"""
    setp.ne.u32 %p1, %rank, 0;
    @%p1 ret;
    {MEET}
    mov.u32 %r1, box;
    mapa.shared::cluster.u32 %r1, %r1, 1;
    ld.shared::cluster.u32 %r1, [%r1];
    ret;
    """
    with pytest.raises(wl.MemoryFault, match="block 1 of the cluster, but this block does not"):
        run(ended, (2,), 32, 1, way, (2, 1, 1))
    beyond = """
    mov.u32 %r1, box;
    mapa.shared::cluster.u32 %r1, %r1, 2;
    st.shared::cluster.u32 [%r1], %r1;
    ret;
    """
    with pytest.raises(wl.MemoryFault, match="block 2 of the cluster, but this block does not"):
        run(beyond, (2,), 32, 1, way, (2, 1, 1))
    beyond = beyond.replace(", 2;", ", %rank;").replace("[%r1]", "[%r1+400]")
    with pytest.raises(wl.MemoryFault, match="Invalid __shared__ write of size 4"):
        run(beyond, (2,), 32, 1, way, (2, 1, 1))
    skipped = """
    setp.eq.u32 %p1, %t, 3;
    @%p1 bra.uni skips;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
skips:
    bar.sync 1, 64;
    ret;
    """
    with pytest.raises(wl.DeadlockError, match="cluster barrier"):
        run(skipped, (2,), 32, 1, way, (2, 1, 1))


def test_launches_that_make_no_sense() -> None:
    body = "ret;"
    way = ("compiled", "converge")
    for grid, cluster, directives, message in (
        ((6,), (4, 1, 1), "", "cannot be divided into clusters"),
        ((32,), (32, 1, 1), "", "too large: the limit is 16"),
        ((8,), (4, 1, 1), ".maxclusterrank 2", "too large: the limit is 2"),
        ((8,), (4, 1, 1), ".reqnctapercluster 2", "requires clusters of"),
        ((8,), None, ".explicitcluster", "requires a launch that specifies"),
    ):
        with pytest.raises(wl.LaunchError, match=message):
            run(body, grid, 32, 1, way, cluster, directives)
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{ ret; }"
    kernel = wl.Device("a100").compile(text, "ptx")["k"]
    with pytest.raises(wl.LaunchError, match="does not support clusters"):
        kernel[2, 32](cluster_dims=2)


@pytest.fixture(scope="module", params=["converge", "adversarial"])
def program(request: pytest.FixtureRequest) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device("h100", schedule=request.param)
    return gpu, gpu.load(Path(__file__).with_name("clusters.cu"), ["--std=c++17"])


def test_a_histogram_over_the_memory_of_a_cluster(program: tuple[wl.Device, wl.Module]) -> None:
    values = np.random.default_rng(1).integers(0, 64, 1000).astype(np.uint32)
    bins = np.zeros(64, np.uint32)
    program[1]["histogram"][8, 64, None, 4 * 16](values, len(values), bins, 16)
    assert (bins == np.bincount(values, minlength=64)).all()


def test_cooperative_groups_knows_the_cluster(program: tuple[wl.Device, wl.Module]) -> None:
    out = np.zeros((4, 4, 6), np.uint32)
    program[1]["ranks"][(4, 4), 32](out, cluster_dims=(2, 2))
    for y, x in np.ndindex(4, 4):
        rank = x % 2 + 2 * (y % 2)
        assert out[y, x].tolist() == [rank, 4, x % 2, y % 2, 2, 128]


def test_one_copy_brings_a_box_to_all_blocks(program: tuple[wl.Device, wl.Module]) -> None:
    gpu, module = program
    data = np.arange(64 * 48, dtype=np.uint32).reshape(64, 48)
    kept = gpu.to_device(data)
    box = gpu.tensor_map(kept, (16, 32))
    out = np.zeros((4, 16, 32), np.uint32)
    run = module["shared_box"][4, 64](box, out, 8, 60)
    expected = np.zeros((16, 32), np.uint32)
    expected[:4] = data[60:, 8:40]
    assert (out == expected).all()
    assert run.counters.global_load_sectors == 2 * 4 * 4


@pytest.mark.parametrize("way", WAYS)
def test_a_block_alone_is_a_cluster_of_one(way: tuple[str, str]) -> None:
    """CUTLASS arrives at mbarriers by `mapa` in clusters of 1 x 1, too."""
    body = """
    @%first mbarrier.init.shared.b64 [bar], 32;
    bar.sync 0;
    shl.b32 %r1, %t, 2; mov.u32 %r2, box; add.u32 %r2, %r2, %r1;
    mapa.shared::cluster.u32 %r3, %r2, 0;
    add.u32 %r4, %t, 5;
    st.shared::cluster.b32 [%r3], %r4;
    mov.u32 %r5, bar; mapa.shared::cluster.u32 %r6, %r5, %rank;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
L:  mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @!%p1 bra L;
    ld.shared.b32 %r7, [%r2];
    mov.u32 %r8, %ctaid.x; mad.lo.u32 %r8, %r8, 32, %t;
    mul.wide.u32 %d1, %r8, 4; add.u64 %d1, %out, %d1;
    st.global.b32 [%d1], %r7;
    ret;
    """
    out, _ = run(body, (5,), 32, 160, way)
    assert out.tolist() == [5 + lane for lane in range(32)] * 5
    with pytest.raises(wl.KernelFault):
        run(body.replace("%r3, %r2, 0", "%r3, %r2, 1"), (5,), 32, 160, way)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_launches_of_one_kernel_have_clusters_of_their_own(engine: str) -> None:
    """Each block writes how many blocks its cluster has."""
    gpu = wl.Device("h100", engine=engine)
    text = (
        HEADER.format(directives="")
        + """
    mov.u32 %r1, %ctaid.x; mad.wide.u32 %d1, %r1, 4, %out; st.global.u32 [%d1], %size; ret;
}
"""
    )
    kernel = gpu.compile(text, "ptx")["k"]
    for blocks in (1, 2, 4, 1):
        out = np.zeros(4, np.uint32)
        kernel[4, 32](out, cluster_dims=blocks)
        assert (out == blocks).all()
