// A whole program: four texels through the texture unit, at thirteen coordinates, in each of its
// address modes. Outside of 0 to 4 the mode decides; between texel centers (0.5, 1.5 ...) the linear
// filter interpolates.
#include <cstdio>
#include <cuda_runtime.h>

const int COUNT = 13;

__constant__ float width = 4;  // in the constant cache: all threads read one address

__global__ void look(cudaTextureObject_t texels, float *out)
{
    float x = -1.0f + 0.5f * threadIdx.x;
    out[threadIdx.x] = tex1D<float>(texels, x / width);  // normalized: 0 to 1 is the whole width
}

void show(const char *name, cudaArray_t array, cudaTextureAddressMode mode,
          cudaTextureFilterMode filter)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc texture = {};
    texture.addressMode[0] = mode;
    texture.filterMode = filter;
    texture.normalizedCoords = 1;  // wrap and mirror need it
    cudaTextureObject_t texels;
    cudaCreateTextureObject(&texels, &resource, &texture, nullptr);
    float *out, seen[COUNT];
    cudaMalloc(&out, sizeof(seen));
    look<<<1, COUNT>>>(texels, out);
    cudaMemcpy(seen, out, sizeof(seen), cudaMemcpyDeviceToHost);
    printf("%-14s", name);
    for (float value : seen) printf("%5g", value);
    printf("\n");
    cudaFree(out);
    cudaDestroyTextureObject(texels);
}

int main()
{
    const float texels[4] = {10, 20, 30, 40};
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &floats, 4);
    cudaMemcpy2DToArray(array, 0, 0, texels, sizeof(texels), sizeof(texels), 1,
                        cudaMemcpyHostToDevice);
    printf("%-14s", "x");
    for (int i = 0; i < COUNT; i++) printf("%5g", -1.0 + 0.5 * i);
    printf("\n");
    show("wrap, point", array, cudaAddressModeWrap, cudaFilterModePoint);
    show("wrap, linear", array, cudaAddressModeWrap, cudaFilterModeLinear);
    show("mirror, linear", array, cudaAddressModeMirror, cudaFilterModeLinear);
    show("clamp, linear", array, cudaAddressModeClamp, cudaFilterModeLinear);
    show("border, linear", array, cudaAddressModeBorder, cudaFilterModeLinear);
    cudaFreeArray(array);
}
