// The x of 32 points: first from an array of structures, then from a structure of arrays.
struct Point { float x, y, z, mass; };

__global__ void xs(const Point *points, const float *x, float *out)
{
    int i = threadIdx.x;
    float apart = points[i].x;
    float together = x[i];
    out[i] = apart + together;
}
