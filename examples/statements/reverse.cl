// Reverses the elements of each work-group in local memory; the barrier lets all work-items see what
// the others have stored.
__kernel void reverse(__global const int *in, __global int *out)
{
    __local int tile[64];
    int number = get_local_id(0);
    tile[number] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = tile[63 - number];
}
