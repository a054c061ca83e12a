"""CuTe DSL: a product of matrices on Blackwell, with copies of tensors, a pipeline and sums in
tensor memory, by single blocks or by pairs of blocks; by those of each tile, or (`persistent`) by
some that compute one tile after the other."""

import sys

import cutlass
import cutlass.cute as cute
import numpy as np
from cuda.bindings import runtime as rt
from cutlass import pipeline
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import make_ptr
from cutlass.utils import SmemAllocator, TmemAllocator
from cutlass.utils import blackwell_helpers as blackwell

PAIR = len(sys.argv) > 1 and sys.argv[1] == "2"
M, N, K = 256, 128, 256
TILE = (256 if PAIR else 128, 64, 64)
ACROSS = N // TILE[1]
PERSISTENT = "persistent" in sys.argv
STAGES, THREADS = 3, 128
GROUP = tcgen05.CtaGroup.TWO if PAIR else tcgen05.CtaGroup.ONE
COLUMNS = 64
HALF, SUM = cutlass.Float16, cutlass.Float32


@cute.struct
class Storage:
    stages: cute.struct.MemRange[cutlass.Int64, 2 * STAGES]
    sums: cute.struct.MemRange[cutlass.Int64, 2]
    free: cutlass.Int64
    columns: cutlass.Int32


@cute.kernel
def gemm(
    tiled_mma: cute.TiledMma,
    copy_a: cute.CopyAtom,
    a: cute.Tensor,
    copy_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    blocks: cute.Layout,
):
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    row, first, _ = cute.arch.block_idx()
    _, places, _ = cute.arch.grid_dim()
    each = cute.size(tiled_mma.thr_id.shape)
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    leads = rank % each == 0
    allocator = SmemAllocator()
    storage = allocator.allocate(Storage)
    shared_a = allocator.allocate_tensor(HALF, layout_a.outer, 1024, swizzle=layout_a.inner)
    shared_b = allocator.allocate_tensor(HALF, layout_b.outer, 1024, swizzle=layout_b.inner)
    alone = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    size = each * sum(
        cute.size_in_bytes(HALF, cute.select(layout, mode=[0, 1, 2]))
        for layout in (layout_a, layout_b)
    )
    filling, using = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES,
        producer_group=alone,
        consumer_group=alone,
        tx_count=size,
        barrier_storage=storage.stages.data_ptr(),
        cta_layout_vmnk=blocks,
    ).make_participants()
    summing, reading = pipeline.PipelineUmmaAsync.create(
        num_stages=1,
        producer_group=alone,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS * each),
        barrier_storage=storage.sums.data_ptr(),
        cta_layout_vmnk=blocks,
    ).make_participants()
    memory = TmemAllocator(
        storage.columns.ptr,
        barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=1, num_threads=THREADS),
        is_two_cta=PAIR,
        two_cta_tmem_dealloc_mbar_ptr=storage.free.ptr,
    )
    if cutlass.const_expr(PAIR):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
    left, right = tiled_mma.make_fragment_A(shared_a), tiled_mma.make_fragment_B(shared_b)
    sums = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C(TILE[:2]))
    memory.allocate(COLUMNS)
    memory.wait_for_alloc()
    place = memory.retrieve_ptr(SUM)
    sums = cute.make_tensor(place, sums.layout)
    memory.relinquish_alloc_permit()
    for column in cutlass.range(first, ACROSS, places, unroll=1):
        where = (row // each, column, None)
        of_a = cute.local_tile(a, TILE, where, proj=(1, None, 1))
        of_b = cute.local_tile(b, TILE, where, proj=(None, 1, 1))
        of_c = cute.local_tile(c, TILE, where, proj=(1, 1, None))
        mine = tiled_mma.get_slice(rank % each)
        part_c = mine.partition_C(of_c)
        to_a, from_a = cpasync.tma_partition(
            copy_a,
            0,
            cute.make_layout(1),
            cute.group_modes(shared_a, 0, 3),
            cute.group_modes(mine.partition_A(of_a), 0, 3),
        )
        to_b, from_b = cpasync.tma_partition(
            copy_b,
            0,
            cute.make_layout(1),
            cute.group_modes(shared_b, 0, 3),
            cute.group_modes(mine.partition_B(of_b), 0, 3),
        )
        if warp == 0:
            count = cute.size(of_a, mode=[2])
            tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
            if leads:
                summing.acquire()
            for k in cutlass.range(count, prefetch_stages=STAGES - 2):
                slot = filling.acquire_and_advance()
                at, into = (None, k), (None, slot.index)
                cute.copy(copy_a, from_a[at], to_a[into], tma_bar_ptr=slot.barrier)
                cute.copy(copy_b, from_b[at], to_b[into], tma_bar_ptr=slot.barrier)
                if leads:
                    full = using.wait_and_advance()
                    for part in cutlass.range_constexpr(cute.size(left, mode=[2])):
                        one = (None, None, part, full.index)
                        cute.gemm(tiled_mma, sums, left[one], right[one], sums)
                        tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                    full.release()
            if leads:
                summing.commit()
            summing.advance()
        full = reading.wait_and_advance()
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), SUM)
        whole = (cute.size(sums, mode=[0, 0]), cute.size(sums, mode=[0, 1]))
        tiles = cute.zipped_divide(sums, (whole,))
        copy = tcgen05.make_tmem_copy(atom, tiles[None, 0])
        own = copy.get_slice(thread)
        source = own.partition_S(tiles)
        target = own.partition_D(cute.zipped_divide(part_c, (whole,)))
        kept = cute.make_rmem_tensor(target[None, None, 0].shape, SUM)
        cute.copy(copy, source[None, None, 0], kept)
        cute.autovec_copy(kept, target[None, None, 0])
        full.release()
    pipeline.sync(barrier_id=1)
    memory.free(place)


@cute.jit
def launch(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer):
    first = cute.make_tensor(a, cute.make_layout((M, K), stride=(K, 1)))
    second = cute.make_tensor(b, cute.make_layout((N, K), stride=(K, 1)))
    result = cute.make_tensor(c, cute.make_layout((M, N), stride=(N, 1)))
    major = tcgen05.OperandMajorMode.K
    operation = tcgen05.MmaF16BF16Op(
        HALF, SUM, (*TILE[:2], 16), GROUP, tcgen05.OperandSource.SMEM, major, major
    )
    tiled_mma = cute.make_tiled_mma(operation)
    layout_a = blackwell.make_smem_layout_a(tiled_mma, TILE, HALF, STAGES)
    layout_b = blackwell.make_smem_layout_b(tiled_mma, TILE, HALF, STAGES)
    shape = (2 if PAIR else 1, 1, 1)
    blocks = cute.tiled_divide(cute.make_layout(shape), (tiled_mma.thr_id.shape,))
    loads = cpasync.CopyBulkTensorTileG2SOp(GROUP)
    stage = [None, None, None, 0]
    copy_a, tensor_a = cute.nvgpu.make_tiled_tma_atom_A(
        loads, first, cute.slice_(layout_a, tuple(stage)), TILE, tiled_mma, blocks.shape
    )
    copy_b, tensor_b = cute.nvgpu.make_tiled_tma_atom_B(
        loads, second, cute.slice_(layout_b, tuple(stage)), TILE, tiled_mma, blocks.shape
    )
    given = tiled_mma, copy_a, tensor_a, copy_b, tensor_b, result, layout_a, layout_b, blocks
    grid = (M // 128, 1 if PERSISTENT else ACROSS, 1)
    gemm(*given).launch(grid=grid, block=(THREADS, 1, 1), cluster=shape)


def on_device(host):
    error, address = rt.cudaMalloc(host.nbytes)
    assert error == rt.cudaError_t.cudaSuccess
    rt.cudaMemcpy(address, host.ctypes.data, host.nbytes, rt.cudaMemcpyKind.cudaMemcpyHostToDevice)
    return address


numbers = np.random.default_rng(3)
a = numbers.integers(-4, 5, (M, K)).astype(np.float16)
b = numbers.integers(-4, 5, (N, K)).astype(np.float16)
c = np.zeros((M, N), np.float32)
places = [on_device(each) for each in (a, b, c)]
space = cute.AddressSpace.gmem
types = HALF, HALF, SUM
launch(*(make_ptr(t, p, space, assumed_align=32) for t, p in zip(types, places, strict=True)))
rt.cudaDeviceSynchronize()
rt.cudaMemcpy(c.ctypes.data, places[2], c.nbytes, rt.cudaMemcpyKind.cudaMemcpyDeviceToHost)
print((c == a.astype(np.float32) @ b.astype(np.float32).T).all())
