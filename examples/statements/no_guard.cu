// SAXPY without `if (i < n)`: the last block goes past the end of the arrays.
__global__ void saxpy(float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + y[i];
}
