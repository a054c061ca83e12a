// What NVRTC makes of calls and loops. calls.ptx: NVRTC 13, -arch=compute_75 -lineinfo.
struct Pair {
    int a;
    float b[3];
};

__device__ __noinline__ int leaf(int n) {
    if (n == 3) return 7;
    int s = 0;
    for (int i = 0; i < n; i++) {
        if (i % 5 == 2) continue;
        s += i;
    }
    return s;
}

__device__ __noinline__ int twice(int n) { return leaf(n) + leaf(n + 1); }

extern "C" __global__ void nested(int *a, Pair s) {
    int i = threadIdx.x;
    if (i & 1)
        a[i] = twice(i + s.a);
    else
        a[i] = leaf(i);
    if (a[i] == 9) return;
    a[i] += twice(1);
}

extern "C" __global__ void spin(int *a) {
    while (true) {
        if (atomicAdd(a, 1) > 100)
            a[1] = 2;
        else
            a[2] = 3;
    }
}
