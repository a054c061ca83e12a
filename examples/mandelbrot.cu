// How many steps each point takes to leave the circle of radius 2, `limit` at most.
extern "C" __global__ void mandelbrot(int *steps, int width, int height, int limit)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    float cx = -2.0f + 3.0f * column / width, cy = -1.5f + 3.0f * row / height;
    float x = 0.0f, y = 0.0f;
    int n = 0;
    while (n < limit && x * x + y * y < 4.0f) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        ++n;
    }
    steps[row * width + column] = n;
}
