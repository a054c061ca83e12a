// A 3 x 3 tent filter (1 2 1, 2 4 2, 1 2 1, over 16), once from memory and once through a texture.

extern "C" __global__ void blur_loads(const float *image, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int column = min(max(x + dx, 0), width - 1), row = min(max(y + dy, 0), height - 1);
            sum += (2 - abs(dx)) * (2 - abs(dy)) * image[row * width + column];
        }
    out[y * width + x] = sum / 16;
}

// Texel (x, y) has its middle at (x + 0.5, y + 0.5). A fetch at its corner is the mean of the four
// texels around, and edges are clamped: four fetches weigh the nine texels as the tent does.
extern "C" __global__ void blur_texture(cudaTextureObject_t image, float *out, int width,
                                        int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float above = tex2D<float>(image, x, y) + tex2D<float>(image, x + 1, y);
    float below = tex2D<float>(image, x, y + 1) + tex2D<float>(image, x + 1, y + 1);
    out[y * width + x] = 0.25f * (above + below);
}
