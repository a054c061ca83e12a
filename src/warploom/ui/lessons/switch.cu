// Each lane has a case of its own: 32 loops that differ in their numbers.
#define WAY(k)                                 \
    case k:                                    \
        _Pragma("unroll 1")                    \
        for (int i = 0; i < laps; i++)         \
            value = value * (2 * k + 3) + i;   \
        break;
#define WAYS(k) WAY(k) WAY(k + 1) WAY(k + 2) WAY(k + 3)

__global__ void ways(int laps, int *out)
{
    int lane = threadIdx.x, value = lane;
    switch (lane) {
        WAYS(0) WAYS(4) WAYS(8) WAYS(12) WAYS(16) WAYS(20) WAYS(24) WAYS(28)
    }
    out[lane] = value;
}
