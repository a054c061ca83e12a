extern "C" __global__ void reverse(const int *in, int *out) {
    __shared__ int kept[64];
    kept[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = kept[63 - threadIdx.x];
}
