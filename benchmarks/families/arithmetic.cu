// Integer arithmetic and random numbers.

extern "C" __global__ void modular_powers(const unsigned long long *bases,
                                          const unsigned *exponents, unsigned long long *powers,
                                          int n, unsigned long long modulus)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long base = bases[i] % modulus, power = 1;
    for (unsigned e = exponents[i]; e; e >>= 1) {
        if (e & 1)
            power = power * base % modulus;
        base = base * base % modulus;
    }
    powers[i] = power;
}

// Both matrices have four bytes of a row in each word; the second one is transposed.
extern "C" __global__ void product_int8(const int *a, const int *b, int *c, int m, int n, int words)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n)
        return;
    int sum = 0;
    for (int i = 0; i < words; i++)
        sum = __dp4a(a[row * words + i], b[column * words + i], sum);
    c[row * n + column] = sum;
}

__device__ unsigned xorshift(unsigned &state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

// Counts those of a thread's random points that are in the quarter circle.
extern "C" __global__ void monte_carlo(unsigned *hits, int n, int points)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned state = 2654435769u * (i + 1), inside = 0;
    for (int k = 0; k < points; k++) {
        float x = (xorshift(state) >> 8) * (1.0f / 16777216.0f);
        float y = (xorshift(state) >> 8) * (1.0f / 16777216.0f);
        if (x * x + y * y < 1.0f)
            inside++;
    }
    hits[i] = inside;
}

extern "C" __global__ void collatz(int *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    long long value = i + 1;
    int count = 0;
    while (value != 1) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        count++;
    }
    steps[i] = count;
}

extern "C" __global__ void primes(unsigned char *prime, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    bool found = i >= 2;
    for (int d = 2; d * d <= i; d++)
        if (i % d == 0) {
            found = false;
            break;
        }
    prime[i] = found;
}
