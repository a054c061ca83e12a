// Many short branches: edges of the data, early exits, differences that depend on a sign.

// The census transform: a bit for each of eight neighbours, whether it is over the centre.
extern "C" __global__ void census(const float *in, unsigned char *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float centre = in[y * width + x];
    unsigned bits = 0;
    for (int v = y - 1; v <= y + 1; v++)
        for (int u = x - 1; u <= x + 1; u++) {
            if (u == x && v == y)
                continue;
            bits *= 2;
            if (u >= 0 && u < width && v >= 0 && v < height && in[v * width + u] > centre)
                bits++;
        }
    out[y * width + x] = bits;
}

// Where rays enter a box around the origin, slab by slab; -1 where they miss it.
extern "C" __global__ void enter_box(const float *rays, float *out, float x, float y, float z,
                                     int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float *ray = rays + 6 * i;
    float from[3] = {ray[0], ray[1], ray[2]}, along[3] = {ray[3], ray[4], ray[5]};
    float half[3] = {x, y, z};
    float enter = 0.0f, leave = 1e30f;
    for (int k = 0; k < 3; k++) {
        if (fabsf(along[k]) < 1e-6f) {
            if (fabsf(from[k]) > half[k]) {
                out[i] = -1.0f;
                return;
            }
            continue;
        }
        float a = (-half[k] - from[k]) / along[k], b = (half[k] - from[k]) / along[k];
        enter = fmaxf(enter, fminf(a, b));
        leave = fminf(leave, fmaxf(a, b));
        if (enter > leave) {
            out[i] = -1.0f;
            return;
        }
    }
    out[i] = enter;
}

// One step of transport on a grid of nx * ny * nz cells: differences against the flow.
extern "C" __global__ void upwind(const float *in, const float *u, const float *v, const float *w,
                                  float *out, int nx, int ny, int nz, float step)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz)
        return;
    int plane = nx * ny, i = z * plane + y * nx + x;
    float here = in[i], change = 0.0f;
    if (u[i] > 0.0f) {
        if (x > 0)
            change += u[i] * (here - in[i - 1]);
    } else if (x < nx - 1)
        change += u[i] * (in[i + 1] - here);
    if (v[i] > 0.0f) {
        if (y > 0)
            change += v[i] * (here - in[i - nx]);
    } else if (y < ny - 1)
        change += v[i] * (in[i + nx] - here);
    if (w[i] > 0.0f) {
        if (z > 0)
            change += w[i] * (here - in[i - plane]);
    } else if (z < nz - 1)
        change += w[i] * (in[i + plane] - here);
    out[i] = here - step * change;
}
