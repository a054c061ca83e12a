#include <cub/cub.cuh>
#include <cooperative_groups.h>
#include <cstdio>
#include <vector>
#include <algorithm>
#include <numeric>
namespace cg = cooperative_groups;
__global__ void grid(int *x, int *sum) {
  cg::grid_group g = cg::this_grid();
  int i = g.thread_rank();
  x[i] = i;
  g.sync();
  int n = g.size();
  int v = x[n - 1 - i];
  g.sync();
  x[i] = v;
  g.sync();
  if (i == 0) { int s = 0; for (int k = 0; k < n; ++k) s += x[k]; *sum = s; }
}
int main() {
  const int n = 5000;
  std::vector<int> h(n), r(n);
  for (int i = 0; i < n; ++i) h[i] = (i * 7919) % 1009;
  int *a, *b, *c; 
  cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4); cudaMalloc(&c, 4);
  cudaMemcpy(a, h.data(), n * 4, cudaMemcpyHostToDevice);
  void *temp = nullptr; size_t bytes = 0, most = 0;
  cub::DeviceScan::InclusiveSum(nullptr, bytes, a, b, n); most = std::max(most, bytes);
  cub::DeviceReduce::Sum(nullptr, bytes, a, c, n); most = std::max(most, bytes);
  cub::DeviceRadixSort::SortKeys(nullptr, bytes, a, b, n); most = std::max(most, bytes);
  cudaMalloc(&temp, most);
  bytes = most;
  cub::DeviceScan::InclusiveSum(temp, bytes, a, b, n);
  cudaMemcpy(r.data(), b, n * 4, cudaMemcpyDeviceToHost);
  std::vector<int> e(n); std::partial_sum(h.begin(), h.end(), e.begin());
  printf("scan %d\n", (int)(e == r));
  bytes = most;
  cub::DeviceReduce::Sum(temp, bytes, a, c, n);
  int s; cudaMemcpy(&s, c, 4, cudaMemcpyDeviceToHost);
  printf("reduce %d\n", (int)(s == e[n - 1]));
  bytes = most;
  cub::DeviceRadixSort::SortKeys(temp, bytes, a, b, n);
  cudaMemcpy(r.data(), b, n * 4, cudaMemcpyDeviceToHost);
  e = h; std::sort(e.begin(), e.end());
  printf("sort %d\n", (int)(e == r));
  int *sum = c; void *args[] = {&b, &sum};
  cudaLaunchCooperativeKernel((void *)grid, dim3(8), dim3(96), args, 0, 0);
  cudaMemcpy(&s, c, 4, cudaMemcpyDeviceToHost);
  printf("grid %d\n", (int)(s == 768 * 767 / 2));
  cudaFree(a); cudaFree(b); cudaFree(c); cudaFree(temp);
  return 0;
}
