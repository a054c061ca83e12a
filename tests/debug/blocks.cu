struct Pair { float first; int second[2]; };

__device__ float halved(float v)
{
    float half = v * 0.5f;
    return half;
}

extern "C" __global__ void blocks(int n, float a, const float *x, float *y)
{
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Pair pair = {a, {i, 2 * i}};
    tile[threadIdx.x] = x[i];
    __syncthreads();
    float sum = 0.0f;
    for (int j = 0; j < 4; j++)
        sum += tile[(threadIdx.x + j) % 64];
    if (i % 2) {
        y[i] = halved(sum);
    } else {
        y[i] = sum + pair.second[1];
    }
}
