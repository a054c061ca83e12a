// The words of OpenCL C that opencl_kernels.cl uses, as CUDA C++.
#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define CLK_LOCAL_MEM_FENCE 0
#define barrier(fence) __syncthreads()
#define atomic_add atomicAdd
#define sin sinf
#define exp expf
#define pow powf
#define log logf
#define rsqrt rsqrtf

__device__ inline int part_of(uint3 all, int dimension) { return dimension == 0 ? all.x : dimension == 1 ? all.y : all.z; }
__device__ inline int get_local_id(int d) { return part_of(threadIdx, d); }
__device__ inline int get_group_id(int d) { return part_of(blockIdx, d); }
__device__ inline int get_local_size(int d) { return part_of(uint3{blockDim.x, blockDim.y, blockDim.z}, d); }
__device__ inline int get_global_id(int d) { return get_group_id(d) * get_local_size(d) + get_local_id(d); }
