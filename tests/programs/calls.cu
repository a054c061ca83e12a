// Calls that cannot be inlined: recursion, tables of functions, virtual functions.

__device__ __noinline__ int fib(int n) {
    if (n < 2) return n;
    return fib(n - 1) + fib(n - 2);
}

extern "C" __global__ void fibonacci(const int* in, int* out) {
    out[threadIdx.x] = fib(in[threadIdx.x]);
}

__device__ __noinline__ int ack(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ack(m - 1, 1);
    return ack(m - 1, ack(m, n - 1));
}

extern "C" __global__ void ackermann(const int* in, int* out) {
    out[threadIdx.x] = ack(2, in[threadIdx.x]);
}

__device__ __noinline__ void sort(int* a, int lo, int hi) {
    if (lo >= hi) return;
    int pivot = a[hi], i = lo;
    for (int j = lo; j < hi; ++j) {
        if (a[j] < pivot) {
            int x = a[i];
            a[i] = a[j];
            a[j] = x;
            ++i;
        }
    }
    int x = a[i];
    a[i] = a[hi];
    a[hi] = x;
    sort(a, lo, i - 1);
    sort(a, i + 1, hi);
}

// Each thread sorts the first n of its 16 numbers, those in its local memory first.
extern "C" __global__ void quicksort(int* data, const int* n) {
    int mine[16];
    int* row = data + 16 * threadIdx.x;
    for (int i = 0; i < 16; ++i) mine[i] = row[i];
    sort(mine, 0, n[threadIdx.x] - 1);
    for (int i = 0; i < 16; ++i) row[i] = mine[i];
}

__device__ __noinline__ int twice(int a, int b) { return 2 * a + b; }

__device__ __noinline__ int difference(int a, int b) {
    if (a & 1) return a - b;
    return b - a;
}

__device__ __noinline__ int power(int a, int b) {
    int r = 1;
    for (int i = 0; i < b; ++i) {
        r *= a;
        if (r > 100000) return -1;
    }
    return r;
}

typedef int (*Operation)(int, int);
__device__ Operation operations[3] = {twice, difference, power};

extern "C" __global__ void through_table(const int* which, int* out) {
    int t = threadIdx.x;
    out[t] = operations[which[t]](t, t % 7) + t;
}

extern "C" __global__ void through_number(const unsigned long long* numbers, int* out) {
    Operation f = (Operation)numbers[threadIdx.x];
    out[threadIdx.x] = f(1, 2);
}

struct Shape {
    __device__ virtual int area(int k) const = 0;
};
struct Square : Shape {
    int a;
    __device__ Square(int a) : a(a) {}
    __device__ int area(int k) const override { return a * a + k; }
};
struct Box : Shape {
    int a, b;
    __device__ Box(int a, int b) : a(a), b(b) {}
    __device__ int area(int k) const override {
        if (a > 20) return -k;
        return a * b;
    }
};

extern "C" __global__ void virtual_functions(int* out) {
    int t = threadIdx.x;
    Square square(t);
    Box box(t, t + 1);
    const Shape* shapes[2] = {&square, &box};
    out[t] = shapes[(t / 3) % 2]->area(t);
}
