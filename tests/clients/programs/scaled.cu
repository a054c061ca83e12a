// Three launches: y = 3 * x, x = 3 * y, and the sum of x.
#include <cstdio>

__constant__ float factor[2];

__global__ void scale(float *y, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = factor[1] * x[i];
}

__global__ void total(float *sum, const float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(sum, y[i]);
}

int main(int count, char **words)
{
    const int n = 1000;
    float *x, *y, *sum, host[n], factors[2] = {1.0f, 3.0f}, result = 0.0f;
    for (int i = 0; i < n; i++)
        host[i] = i;
    cudaMalloc(&x, sizeof host);
    cudaMalloc(&y, sizeof host);
    cudaMalloc(&sum, sizeof result);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemset(sum, 0, sizeof result);
    cudaMemcpyToSymbol(factor, factors, sizeof factors);
    scale<<<8, 128>>>(y, x, n);
    scale<<<4, 256>>>(x, y, n);
    total<<<8, 128>>>(sum, x, n);
    cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost);
    printf("%s %.0f\n", count > 1 ? words[1] : "total", result);
    return 0;
}
