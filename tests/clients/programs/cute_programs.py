"""CuTe DSL: a product of matrices by the tensor cores of Ampere, each warp a tile of 16 by 8, with
the DSL's own partitions, copies and `gemm`."""

import cutlass
import cutlass.cute as cute
import numpy as np
from cuda.bindings import runtime as rt
from cutlass.cute.runtime import make_ptr

M, N, K = 64, 32, 48


@cute.kernel
def product(tiled_mma: cute.TiledMma, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    tile = (16, 8, 16)
    where = (row, column, None)
    of_a = cute.local_tile(a, tile, where, proj=(1, None, 1))
    of_b = cute.local_tile(b, tile, where, proj=(None, 1, 1))
    of_c = cute.local_tile(c, tile, where, proj=(1, 1, None))
    mine = tiled_mma.get_slice(thread)
    parts_a, parts_b, part_c = (
        mine.partition_A(of_a),
        mine.partition_B(of_b),
        mine.partition_C(of_c),
    )
    left = tiled_mma.make_fragment_A(parts_a[None, None, None, 0])
    right = tiled_mma.make_fragment_B(parts_b[None, None, None, 0])
    sums = tiled_mma.make_fragment_C(part_c)
    sums.fill(0.0)
    for k in range(cute.size(of_a, mode=[2])):
        cute.autovec_copy(parts_a[None, None, None, k], left)
        cute.autovec_copy(parts_b[None, None, None, k], right)
        cute.gemm(tiled_mma, sums, left, right, sums)
    cute.autovec_copy(sums, part_c)


@cute.jit
def launch(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer):
    op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(op)
    first = cute.make_tensor(a, cute.make_layout((M, K), stride=(K, 1)))
    second = cute.make_tensor(b, cute.make_layout((N, K), stride=(K, 1)))
    result = cute.make_tensor(c, cute.make_layout((M, N), stride=(N, 1)))
    product(tiled_mma, first, second, result).launch(grid=(M // 16, N // 8, 1), block=(32, 1, 1))


def on_device(host):
    error, address = rt.cudaMalloc(host.nbytes)
    assert error == rt.cudaError_t.cudaSuccess
    rt.cudaMemcpy(address, host.ctypes.data, host.nbytes, rt.cudaMemcpyKind.cudaMemcpyHostToDevice)
    return address


def main():
    numbers = np.random.default_rng(3)
    a = numbers.integers(-4, 5, (M, K)).astype(np.float16)
    b = numbers.integers(-4, 5, (N, K)).astype(np.float16)
    c = np.zeros((M, N), np.float32)
    places = [on_device(one) for one in (a, b, c)]
    types = (cutlass.Float16, cutlass.Float16, cutlass.Float32)
    launch(
        *(
            make_ptr(type, place, cute.AddressSpace.gmem, assumed_align=16)
            for type, place in zip(types, places, strict=True)
        )
    )
    rt.cudaMemcpy(c.ctypes.data, places[2], c.nbytes, rt.cudaMemcpyKind.cudaMemcpyDeviceToHost)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    print("product")


main()
