"""CuTe DSL: a product of matrices on Hopper, with copies of tensors, a pipeline and warp groups; by
a block for each tile, or (`persistent`) by blocks that compute one tile after the other."""

import sys

import cutlass
import cutlass.cute as cute
import numpy as np
from cuda.bindings import runtime as rt
from cutlass import pipeline
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import make_ptr
from cutlass.utils import LayoutEnum, SmemAllocator
from cutlass.utils import hopper_helpers as hopper

M, N, K = 256, 256, 192
TILE = (64, 128, 64)
STAGES = 3
ALONG = int(sys.argv[1]) if len(sys.argv) > 1 else 1
"""Blocks of a cluster, along M."""
PERSISTENT = "persistent" in sys.argv
SHORT = "short" in sys.argv
"""Whether buffers have half the bytes that they need."""
DOWN, ACROSS = M // TILE[0], N // TILE[1]


@cute.kernel
def gemm(
    copy_a: cute.CopyAtom,
    a: cute.Tensor,
    copy_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    tiled_mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    cluster: cute.Layout,
):
    thread, _, _ = cute.arch.thread_idx()
    first, column, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())

    @cute.struct
    class Storage:
        barriers: cute.struct.MemRange[cutlass.Int64, 2 * STAGES]
        a: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, cute.cosize(layout_a)], 1024]
        b: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, cute.cosize(layout_b)], 1024]

    storage = SmemAllocator().allocate(Storage)
    shared_a = storage.a.get_tensor(layout_a.outer, swizzle=layout_a.inner)
    shared_b = storage.b.get_tensor(layout_b.outer, swizzle=layout_b.inner)
    size = sum(
        cute.size_in_bytes(cutlass.Float16, cute.slice_(layout, (None, None, 0)))
        for layout in (layout_a, layout_b)
    )
    stages = pipeline.PipelineTmaAsync.create(
        barrier_storage=storage.barriers.data_ptr(),
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4 * ALONG),
        tx_count=size,
        cta_layout_vmnk=cute.make_layout((1, *cluster.shape)),
    )
    write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
    mask = cutlass.Int16((1 << ALONG) - 1)
    for row in cutlass.range(first, DOWN, blocks, unroll=1):
        where = (row, column, None)
        of_a = cute.local_tile(a, TILE, where, proj=(1, None, 1))
        of_b = cute.local_tile(b, TILE, where, proj=(None, 1, 1))
        of_c = cute.local_tile(c, TILE, where, proj=(1, 1, None))
        to_a, from_a = cpasync.tma_partition(
            copy_a,
            0,
            cute.make_layout(1),
            cute.group_modes(shared_a, 0, 2),
            cute.group_modes(of_a, 0, 2),
        )
        to_b, from_b = cpasync.tma_partition(
            copy_b,
            rank,
            cute.make_layout(ALONG),
            cute.group_modes(shared_b, 0, 2),
            cute.group_modes(of_b, 0, 2),
        )
        mine = tiled_mma.get_slice(thread)
        part_c = mine.partition_C(of_c)
        left = tiled_mma.make_fragment_A(mine.partition_A(shared_a))
        right = tiled_mma.make_fragment_B(mine.partition_B(shared_b))
        sums = cute.make_rmem_tensor(part_c.shape, cutlass.Float32)
        count = cute.size(of_a, mode=[2])
        tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
        for k in cutlass.range(count + STAGES - 1, unroll=1):
            if k < count:
                if warp == 0:
                    stages.producer_acquire(write)
                    barrier = stages.producer_get_barrier(write)
                    to = write.index
                    cute.copy(copy_a, from_a[None, k], to_a[None, to], tma_bar_ptr=barrier)
                    if cutlass.const_expr(ALONG > 1):
                        cute.copy(
                            copy_b,
                            from_b[None, k],
                            to_b[None, to],
                            tma_bar_ptr=barrier,
                            mcast_mask=mask,
                        )
                    else:
                        cute.copy(copy_b, from_b[None, k], to_b[None, to], tma_bar_ptr=barrier)
                    stages.producer_commit(write)
                write.advance()
            if k >= STAGES - 1:
                stages.consumer_wait(read)
                warpgroup.fence()
                for part in cutlass.range_constexpr(cute.size(left, mode=[2])):
                    place = (None, None, part, read.index)
                    cute.gemm(tiled_mma, sums, left[place], right[place], sums)
                    tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                stages.consumer_release(read)
                read.advance()
        cute.autovec_copy(sums, part_c)
    if cutlass.const_expr(ALONG > 1):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


@cute.jit
def launch(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer):
    first = cute.make_tensor(a, cute.make_layout((M, K), stride=(K, 1)))
    second = cute.make_tensor(b, cute.make_layout((N, K), stride=(K, 1)))
    result = cute.make_tensor(c, cute.make_layout((M, N), stride=(N, 1)))
    kind = LayoutEnum.ROW_MAJOR
    major = kind.sm90_mma_major_mode()
    half = cutlass.Float16
    tiled_mma = hopper.make_trivial_tiled_mma(
        half, half, major, major, cutlass.Float32, (1, 1, 1), TILE[:2]
    )
    layout_a = hopper.make_smem_layout_a(kind, TILE, half, STAGES)
    layout_b = hopper.make_smem_layout_b(kind, TILE, half, STAGES)
    one, many = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileG2SMulticastOp()
    copy_a, tensor_a = cpasync.make_tiled_tma_atom(
        one, first, cute.slice_(layout_a, (None, None, 0)), (TILE[0], TILE[2])
    )
    copy_b, tensor_b = cpasync.make_tiled_tma_atom(
        one if ALONG == 1 else many,
        second,
        cute.slice_(layout_b, (None, None, 0)),
        (TILE[1], TILE[2]),
        num_multicast=ALONG,
    )
    cluster = cute.make_layout((ALONG, 1, 1))
    gemm(copy_a, tensor_a, copy_b, tensor_b, result, tiled_mma, layout_a, layout_b, cluster).launch(
        grid=(ALONG if PERSISTENT else DOWN, ACROSS, 1), block=(128, 1, 1), cluster=(ALONG, 1, 1)
    )


def on_device(host):
    error, address = rt.cudaMalloc(host.nbytes // (2 if SHORT else 1))
    assert error == rt.cudaError_t.cudaSuccess
    size = host.nbytes // (2 if SHORT else 1)
    rt.cudaMemcpy(address, host.ctypes.data, size, rt.cudaMemcpyKind.cudaMemcpyHostToDevice)
    return address


numbers = np.random.default_rng(3)
a = numbers.integers(-4, 5, (M, K)).astype(np.float16)
b = numbers.integers(-4, 5, (N, K)).astype(np.float16)
c = np.zeros((M, N), np.float32)
places = [on_device(each) for each in (a, b, c)]
space = cute.AddressSpace.gmem
types = cutlass.Float16, cutlass.Float16, cutlass.Float32
launch(*(make_ptr(t, p, space, assumed_align=16) for t, p in zip(types, places, strict=True)))
rt.cudaDeviceSynchronize()
rt.cudaMemcpy(c.ctypes.data, places[2], c.nbytes, rt.cudaMemcpyKind.cudaMemcpyDeviceToHost)
print((c == a.astype(np.float32) @ b.astype(np.float32).T).all())
