// Arrays, mipmaps, textures and surfaces through the runtime: prints what kernels saw.

#include "must.h"

__global__ void look(cudaTextureObject_t t, float *out)
{
    out[threadIdx.y * 4 + threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}

__global__ void look_at_bytes(cudaTextureObject_t t, float *out)
{
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
}

__global__ void look_at_levels(cudaTextureObject_t t, float *out)
{
    out[threadIdx.x] = tex2DLod<float>(t, 0.5f, 0.5f, 0.5f * threadIdx.x);
}

__global__ void draw(cudaSurfaceObject_t s)
{
    surf2Dwrite(10.0f * threadIdx.y + threadIdx.x, s, threadIdx.x * 4, threadIdx.y);
}

__global__ void look_inside(cudaTextureObject_t t, float *out)
{
    out[threadIdx.x] = tex3D<float>(t, threadIdx.x % 2 + 0.5f, threadIdx.x / 2 % 2 + 0.5f,
                                    threadIdx.x / 4 + 0.5f);
}

static float *seen;

static int show(const char *name, int n)
{
    MUST(cudaDeviceSynchronize());
    printf("%s", name);
    for (int i = 0; i < n; ++i) printf(" %g", seen[i]);
    printf("\n");
    return 0;
}

int main()
{
    MUST(cudaMallocManaged((void **)&seen, 64 * sizeof(float)));
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>(), found;
    cudaResourceDesc resource = {};
    cudaTextureDesc point = {};
    cudaTextureObject_t texture;

    cudaArray_t array;
    float rows[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    MUST(cudaMallocArray(&array, &floats, 4, 2, cudaArraySurfaceLoadStore));
    MUST(cudaGetChannelDesc(&found, array));
    if (found.x != 32 || found.y != 0 || found.f != cudaChannelFormatKindFloat) return 2;
    MUST(cudaMemcpy2DToArray(array, 0, 0, rows, 16, 16, 2, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    MUST(cudaCreateTextureObject(&texture, &resource, &point, nullptr));
    look<<<1, dim3(4, 2)>>>(texture, seen);
    if (show("array", 8)) return 1;
    MUST(cudaDestroyTextureObject(texture));

    cudaSurfaceObject_t surface;
    MUST(cudaCreateSurfaceObject(&surface, &resource));
    draw<<<1, dim3(4, 2)>>>(surface);
    MUST(cudaMemcpy2DFromArray(seen, 8, array, 8, 0, 8, 2, cudaMemcpyDefault));
    if (show("surface", 4)) return 1;
    MUST(cudaDestroySurfaceObject(surface));
    MUST(cudaFreeArray(array));

    unsigned char bytes[2] = {255, 51}, *linear;
    MUST(cudaMalloc(&linear, sizeof bytes));
    MUST(cudaMemcpy(linear, bytes, sizeof bytes, cudaMemcpyHostToDevice));
    cudaResourceDesc plain = {};
    plain.resType = cudaResourceTypeLinear;
    plain.res.linear.devPtr = linear;
    plain.res.linear.desc = cudaCreateChannelDesc<unsigned char>();
    plain.res.linear.sizeInBytes = sizeof bytes;
    cudaTextureDesc shares = {};
    shares.readMode = cudaReadModeNormalizedFloat;
    MUST(cudaCreateTextureObject(&texture, &plain, &shares, nullptr));
    look_at_bytes<<<1, 2>>>(texture, seen);
    if (show("linear", 2)) return 1;
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(linear));

    cudaMipmappedArray_t levels;
    MUST(cudaMallocMipmappedArray(&levels, &floats, make_cudaExtent(4, 4, 0), 9));
    for (int n = 0; n < 3; ++n) {
        cudaArray_t level;
        float texels[16];
        for (int i = 0; i < 16; ++i) texels[i] = n + 1;
        MUST(cudaGetMipmappedArrayLevel(&level, levels, n));
        MUST(cudaMemcpy2DToArray(level, 0, 0, texels, 16, 16 >> n, 4 >> n, cudaMemcpyHostToDevice));
    }
    cudaArray_t beyond;
    printf("levels %d\n", cudaGetMipmappedArrayLevel(&beyond, levels, 3));
    cudaGetLastError();
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = levels;
    cudaTextureDesc smooth = {};
    smooth.normalizedCoords = 1;
    smooth.mipmapFilterMode = cudaFilterModeLinear;
    for (int most = 1; most <= 2; ++most) {
        smooth.maxMipmapLevelClamp = most;
        MUST(cudaCreateTextureObject(&texture, &resource, &smooth, nullptr));
        look_at_levels<<<1, 6>>>(texture, seen);
        if (show("mipmaps", 6)) return 1;
        MUST(cudaDestroyTextureObject(texture));
    }
    MUST(cudaFreeMipmappedArray(levels));

    cudaPitchedPtr box;
    cudaExtent size = make_cudaExtent(2, 2, 2);
    MUST(cudaMalloc3D(&box, make_cudaExtent(8, 2, 2)));
    if (box.pitch < 8 || box.pitch % 512) return 3;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(rows, 8, 2, 2);
    copy.dstPtr = box;
    copy.extent = make_cudaExtent(8, 2, 2); // bytes by rows by slices
    copy.kind = cudaMemcpyHostToDevice;
    MUST(cudaMemcpy3D(&copy));
    MUST(cudaMalloc3DArray(&array, &floats, size));
    cudaMemcpy3DParms inside = {};
    inside.srcPtr = box;
    inside.dstArray = array;
    inside.extent = size; // texels
    inside.kind = cudaMemcpyDeviceToDevice;
    MUST(cudaMemcpy3D(&inside));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    MUST(cudaCreateTextureObject(&texture, &resource, &point, nullptr));
    look_inside<<<1, 8>>>(texture, seen);
    return show("box", 8);
}
