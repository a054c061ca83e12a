// The numbers of cuda_fp16.h, cuda_bf16.h and cuda_fp8.h, and the matrices of mma.h.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

extern "C" __global__ void halves(const float *x, float *out) {
    int i = threadIdx.x, n = blockDim.x;
    __half a = __float2half(x[i]);
    __half2 both = __hfma2(__halves2half2(a, __hneg(a)), __float2half2_rn(2.0f), __float2half2_rn(1.0f));
    out[i] = __low2float(both);
    out[n + i] = __high2float(both);
    out[2 * n + i] = __half2float(hsqrt(a));
    out[3 * n + i] = __half2float(__hmax(a, __float2half(1.0f)));
    __nv_bfloat16 b = __float2bfloat16(x[i]);
    out[4 * n + i] = __bfloat162float(__hmul(b, b));
    out[5 * n + i] = __bfloat162float(__hsub(b, __float2bfloat16(1.0f)));
}

extern "C" __global__ void bytes(const float *x, float *out) {
    int i = threadIdx.x, n = blockDim.x;
    out[i] = float(__nv_fp8_e4m3(x[i]));
    out[n + i] = float(__nv_fp8_e5m2(x[i]));
}

extern "C" __global__ void product(const __half *a, const __half *b, float *c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 1.0f);
    load_matrix_sync(left, a, 16);
    load_matrix_sync(right, b, 16);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}
