// Atomics, barriers, semaphores and values of libcu++, NVIDIA's C++ standard library.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/chrono>
#include <cuda/std/complex>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>

using cuda::thread_scope_block;

extern "C" __global__ void references(int *x, long long *y, float *f) {
    cuda::atomic_ref<int, cuda::thread_scope_device> a(*x);
    a.fetch_add(3, cuda::memory_order_relaxed);
    cuda::atomic_ref<long long, cuda::thread_scope_block> b(*y);
    b.fetch_xor(threadIdx.x + 1, cuda::memory_order_acq_rel);
    cuda::atomic_ref<float, cuda::thread_scope_system> c(*f);
    c.fetch_add(0.5f, cuda::memory_order_seq_cst);
}

extern "C" __global__ void in_shared_memory(int *out) {
    __shared__ cuda::atomic<int, thread_scope_block> count;
    __shared__ cuda::atomic<unsigned char, thread_scope_block> byte;
    __shared__ cuda::atomic<double, thread_scope_block> sum;
    if (threadIdx.x == 0) {
        new (&count) cuda::atomic<int, thread_scope_block>(0);
        new (&byte) cuda::atomic<unsigned char, thread_scope_block>(0);
        new (&sum) cuda::atomic<double, thread_scope_block>(0.0);
    }
    __syncthreads();
    count.fetch_max(threadIdx.x, cuda::memory_order_relaxed);
    byte.fetch_add(3, cuda::memory_order_acq_rel);
    sum.fetch_add(0.25);
    __syncthreads();
    if (threadIdx.x == 0) {
        int expected = 5;
        out[0] = count.load();
        out[1] = byte.load(cuda::memory_order_acquire);
        out[2] = (int)sum.load();
        out[3] = count.compare_exchange_strong(expected, 9) * 100 + expected;
        count.store(4, cuda::memory_order_release);
        out[4] = count.exchange(6) * 10 + ++count;
        cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
    }
}

extern "C" __global__ void barrier_rounds(int *out) {
    __shared__ cuda::barrier<thread_scope_block> barrier;
    __shared__ int kept[128];
    int i = threadIdx.x, n = blockDim.x;
    if (i == 0) init(&barrier, n);
    __syncthreads();
    for (int round = 0; round < 4; round++) {
        kept[i] = i + round;
        auto token = barrier.arrive();
        barrier.wait(cuda::std::move(token));
        out[i] += kept[(i + 1) % n];
        barrier.arrive_and_wait();
    }
}

extern "C" __global__ void time_out(int *out) {
    __shared__ cuda::barrier<thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x + 1);
    __syncthreads();
    auto token = barrier.arrive();
    out[threadIdx.x] = barrier.try_wait_for(cuda::std::move(token), cuda::std::chrono::nanoseconds(500));
}

extern "C" __global__ void semaphore(int *out) {
    alignas(8) __shared__ char room[64];
    auto &gate = *(cuda::counting_semaphore<thread_scope_block, 4> *)room;
    __shared__ int inside, most;
    if (threadIdx.x == 0) {
        new (&gate) cuda::counting_semaphore<thread_scope_block, 4>(4);
        inside = most = 0;
    }
    __syncthreads();
    gate.acquire();
    atomicMax(&most, atomicAdd(&inside, 1) + 1);
    atomicSub(&inside, 1);
    gate.release();
    __syncthreads();
    out[threadIdx.x] = most > 0 && most <= 4 && inside == 0;
}

extern "C" __global__ void latch(int *out) {
    alignas(8) __shared__ char room[64];
    auto &gate = *(cuda::latch<thread_scope_block> *)room;
    __shared__ int total;
    if (threadIdx.x == 0) {
        new (&gate) cuda::latch<thread_scope_block>(blockDim.x);
        total = 0;
    }
    __syncthreads();
    atomicAdd(&total, threadIdx.x);
    gate.arrive_and_wait();
    out[threadIdx.x] = total;
}

extern "C" __global__ void wait_for_another_block(int *x) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(x[0]);
    if (blockIdx.x == 0) {
        flag.wait(0);
        x[1 + threadIdx.x] = flag.load() + threadIdx.x;
    } else if (threadIdx.x == 0) {
        for (int i = 0; i < 100; i++) __nanosleep(10);
        flag.store(5);
        flag.notify_all();
    }
}

extern "C" __global__ void values(float *out) {
    cuda::std::array<float, 4> a{1, 2, 3, 4};
    cuda::std::tuple<int, float> both(threadIdx.x, a[threadIdx.x % 4]);
    cuda::std::complex<float> z(cuda::std::get<1>(both), 1.0f);
    z *= z;
    cuda::std::optional<int> odd;
    if (threadIdx.x & 1) odd = threadIdx.x;
    float total = 0;
    for (auto each : cuda::std::span<float>(a)) total += each;
    out[threadIdx.x] = z.real() + abs(z) + odd.value_or(-1) + total
        + cuda::std::popcount(threadIdx.x) + cuda::std::countl_zero(threadIdx.x + 1);
}
