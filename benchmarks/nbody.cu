// One step of n bodies: the acceleration of each by all others; n a multiple of the block.
extern "C" __global__ void nbody(const float4 *bodies, float4 *accelerations, int n)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int start = 0; start < n; start += blockDim.x) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < blockDim.x; ++k) {
            float4 other = tile[k];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float r2 = dx * dx + dy * dy + dz * dz + 0.01f;
            float inverse = rsqrtf(r2);
            float pull = other.w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        __syncthreads();
    }
    accelerations[i] = make_float4(ax, ay, az, 0.0f);
}
