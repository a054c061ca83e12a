// Three ways to read: neighbours, every eighth word, anywhere.
__global__ void reads(const float *data, const int *where, float *out)
{
    int i = threadIdx.x;
    float neighbours = data[i];
    float strided = data[8 * i];
    float scattered = data[where[i] & 4095];
    out[i] = neighbours + strided + scattered;
}
