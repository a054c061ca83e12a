// From compute capability 7.0 on the two halves of a diverged warp exchange values among
// themselves: groups of 16 lanes, one after the other.
__global__ void halves(int *out)
{
    int lane = threadIdx.x, value = lane;
    if (lane < 16)
        value += __shfl_xor_sync(0x0000ffffu, value, 1);
    else
        value -= __shfl_xor_sync(0xffff0000u, value, 1);
    out[lane] = value;
}
