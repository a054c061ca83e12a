// Kernels whose executed machine instructions were published, in our own words: what each thread does
// and in which order is that of the published kernel (counts.json). `input` and `output` are device
// arrays; launches are in counts.py.

#define INDEX (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define SMALLEST __int_as_float(0xff800000)  // minus infinity

extern "C" {

// ---- sums of 32-bit integers, a block to a sum ---------------------------------------------------

#define STAGED(values)                             \
    extern __shared__ int values[];                \
    const int lane = threadIdx.x;                  \
    values[lane] = INDEX < n ? input[INDEX] : 0;   \
    __syncthreads();

#define HALVED(values, least)                                  \
    for (int step = blockDim.x >> 1; step > least; step >>= 1) \
    {                                                          \
        if (lane < step)                                       \
            values[lane] += values[lane + step];               \
        __syncthreads();                                       \
    }

typedef const int *__restrict__ Integers;
typedef int *__restrict__ Sums;

__global__ void sum_atomic(Integers input, Sums output, int n)
{
    extern __shared__ int total[];
    if (threadIdx.x == 0)
        total[0] = 0;
    __syncthreads();
    int own = 0;
    if (INDEX < n)
        own = input[INDEX];
    atomicAdd(total, own);
    __syncthreads();
    if (threadIdx.x == 0)
        output[blockIdx.x] = total[0];
}

__global__ void sum_staged_atomic(Integers input, Sums output, int n)
{
    __shared__ int total;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    STAGED(values)
    atomicAdd(&total, values[lane]);
    __syncthreads();
    if (lane == 0)
        output[blockIdx.x] = total;
}

__global__ void sum_divergent(Integers input, Sums output, int n)
{
    extern __shared__ int values[];
    const int lane = threadIdx.x, place = blockIdx.x * blockDim.x + lane;
    if (place < n)
        values[lane] = input[place];
    else
        values[lane] = 0;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step <<= 1)
    {
        if (lane % (2 * step) == 0)
            values[lane] += values[lane + step];
        __syncthreads();
    }
    if (lane == 0)
        output[blockIdx.x] = values[0];
}

__global__ void sum_conflicting(Integers input, Sums output, int n)
{
    STAGED(values)
    for (int step = 1; step < blockDim.x; step <<= 1)
    {
        int place = 2 * step * lane;
        if (place < blockDim.x)
            values[place] += values[place + step];
        __syncthreads();
    }
    if (lane == 0)
        output[blockIdx.x] = values[0];
}

__global__ void sum_halved(Integers input, Sums output, int n)
{
    STAGED(values)
    HALVED(values, 0)
    if (lane == 0)
        output[blockIdx.x] = values[0];
}

__global__ void sum_of_two(Integers input, Sums output, int n)
{
    extern __shared__ int values[];
    const int lane = threadIdx.x;
    values[lane] = 0;
    __syncthreads();
    const int first = blockIdx.x * 2 * blockDim.x + lane;
    if (first >= n)
        return;
#pragma unroll
    for (int part = 0; part < 2; ++part)
    {
        int place = first + part * blockDim.x;
        if (place < n)
            values[lane] += input[place];
    }
    __syncthreads();
    HALVED(values, 0)
    if (lane == 0)
        output[blockIdx.x] = values[0];
}

__global__ void sum_of_strided_pairs(Integers input, Sums output, int n)
{
    extern __shared__ int values[];
    const int threads = blockDim.x, lane = threadIdx.x;
    values[lane] = 0;
    __syncthreads();
    const int block = blockIdx.x;
    int place = block * (2 * threads) + lane;
    const int stride = gridDim.x * (2 * threads);
    while (place < n)
    {
        int one = input[place];
        int other = (place + threads < n) ? input[place + threads] : 0;
        values[lane] += one + other;
        place += stride;
    }
    __syncthreads();
    for (int step = threads >> 1; step > 0; step >>= 1)
    {
        if (lane < step)
            values[lane] += values[lane + step];
        __syncthreads();
    }
    if (lane == 0)
        output[block] = values[0];
}

__device__ void add_below(int *values, int lane, int step)
{
    if (lane < step)
        values[lane] += values[lane + step];
    __syncwarp();
}

__global__ void sum_unrolled_warp(Integers input, Sums output, int n)
{
    STAGED(values)
    HALVED(values, 32)
    add_below(values, lane, 32);
    add_below(values, lane, 16);
    add_below(values, lane, 8);
    add_below(values, lane, 4);
    add_below(values, lane, 2);
    add_below(values, lane, 1);
    if (lane == 0)
        output[blockIdx.x] = values[0];
}

__global__ void sum_unrolled(Integers input, Sums output, int n)
{
    extern __shared__ int values[];
    const int lane = threadIdx.x;
    const int place = blockIdx.x * 256 + lane;
    values[lane] = place < n ? input[place] : 0;
    __syncthreads();
    for (int step = 128; step >= 64; step >>= 1)
    {
        if (lane < step)
            values[lane] += values[lane + step];
        __syncthreads();
    }
    if (lane < 32)
    {
        add_below(values, lane, 32);
        add_below(values, lane, 16);
        add_below(values, lane, 8);
        add_below(values, lane, 4);
        add_below(values, lane, 2);
        add_below(values, lane, 1);
    }
    if (lane == 0)
        output[blockIdx.x] = values[0];
}

#define SHUFFLED(name, shuffle, a, b, c, d, e, last)  \
    __global__ void name(Integers input, Sums output, int n) \
    {                                                 \
        STAGED(values)                                \
        HALVED(values, 32)                            \
        if (lane < 32)                                \
        {                                             \
            values[lane] += values[lane + 32];        \
            int sum = values[lane];                   \
            sum += shuffle(~0u, sum, a);              \
            sum += shuffle(~0u, sum, b);              \
            sum += shuffle(~0u, sum, c);              \
            sum += shuffle(~0u, sum, d);              \
            sum += shuffle(~0u, sum, e);              \
            if (lane == last)                         \
                output[blockIdx.x] = sum;             \
        }                                             \
    }

SHUFFLED(sum_shuffled_down, __shfl_down_sync, 16, 8, 4, 2, 1, 0)
SHUFFLED(sum_shuffled_up, __shfl_up_sync, 16, 8, 4, 2, 1, 31)
SHUFFLED(sum_shuffled_xor, __shfl_xor_sync, 1, 2, 4, 8, 16, 0)

// ---- softmax, norms and attention in 32-bit floats ----------------------------------------------

#define REDUCED(values, combine)                           \
    for (int step = blockDim.x / 2; step > 0; step >>= 1)  \
    {                                                      \
        if (threadIdx.x < step)                            \
            values[threadIdx.x] = combine;                 \
        __syncthreads();                                   \
    }
#define OWN(values) values[threadIdx.x]
#define OTHER(values) values[threadIdx.x + step]

__global__ void block_max(const float *input, float *output, int n)
{
    __shared__ float values[256];
    OWN(values) = INDEX < n ? input[INDEX] : SMALLEST;
    __syncthreads();
    REDUCED(values, fmaxf(OTHER(values), OWN(values)))
    if (threadIdx.x == 0)
        output[blockIdx.x] = values[0];
}

__global__ void max_of_maxima(const float *input, float *output, int n)
{
    extern __shared__ float floats[];
    float most = SMALLEST;
    for (int place = threadIdx.x; place < n; place += blockDim.x)
        most = fmaxf(most, input[place]);
    OWN(floats) = most;
    __syncthreads();
    REDUCED(floats, fmaxf(OWN(floats), OTHER(floats)))
    if (threadIdx.x == 0)
        output[0] = floats[0];
}

__global__ void block_sum_of_exponentials(const float *input, const float *most, float *output, int n)
{
    __shared__ float values[256];
    float m = most[0];
    OWN(values) = INDEX < n ? expf(input[INDEX] - m) : 0.0f;
    __syncthreads();
    REDUCED(values, OWN(values) + OTHER(values))
    if (threadIdx.x == 0)
        output[blockIdx.x] = values[0];
}

__global__ void sum_of_sums(const float *input, float *output, int n)
{
    extern __shared__ float floats[];
    float sum = 0.0f;
    for (int place = threadIdx.x; place < n; place += blockDim.x)
        sum += input[place];
    OWN(floats) = sum;
    __syncthreads();
    REDUCED(floats, OWN(floats) + OTHER(floats))
    if (threadIdx.x == 0)
        output[0] = floats[0];
}

__global__ void softmax(const float *input, float *output, int n, const float *most, const float *sum)
{
    __shared__ float values[256];
    float m = most[0], s = sum[0];
    if (INDEX < n)
        OWN(values) = expf(input[INDEX] - m);
    __syncthreads();
    if (INDEX < n)
        output[INDEX] = OWN(values) / s;
}

__global__ void softmax_strided(
    const float *input, float *output, int n, const float *most, const float *sum)
{
    float m = most[0], s = sum[0];
    int stride = blockDim.x * gridDim.x;
    for (int place = INDEX; place < n; place += stride)
        output[place] = expf(input[place] - m) / s;
}

__global__ void column_means(const float *input, float *output, int rows, int columns)
{
    int column = INDEX;
    if (column >= columns)
        return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row)
        sum += *(input + row * columns + column);
    output[column] = sum / rows;
}

__global__ void column_deviations(
    const float *input, const float *means, float *output, int rows, int columns, float least)
{
    int column = INDEX;
    if (column >= columns)
        return;
    float sum = 0.0f, mean = means[column];
    for (int row = 0; row < rows; ++row)
    {
        float off = *(input + row * columns + column) - mean;
        sum += off * off;
    }
    sum /= rows;
    output[column] = sqrtf(sum + least);
}

__global__ void scaled_columns(
    const float *input, float *means, float *deviations, const float *factors,
    const float *offsets, float *output, int rows, int columns)
{
    int column = INDEX, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < columns && row < rows)
    {
        float x = *(input + row * columns + column), mean = means[column];
        float deviation = deviations[column], factor = factors[column], offset = offsets[column];
        *(output + row * columns + column) = factor * ((x - mean) / deviation) + offset;
    }
}

__global__ void block_sum_of_squares(const float *input, float *output, int n)
{
    extern __shared__ float floats[];
    OWN(floats) = INDEX < n ? input[INDEX] : 0.0f;
    __syncthreads();
    OWN(floats) *= OWN(floats);
    __syncthreads();
    REDUCED(floats, OWN(floats) + OTHER(floats))
    if (threadIdx.x == 0)
        output[blockIdx.x] = floats[0];
}

__global__ void root_of_mean(const float *input, float *output, int count, int n, float least)
{
    extern __shared__ float floats[];
    float sum = 0.0f;
    for (int place = threadIdx.x; place < count; place += blockDim.x)
        sum += input[place];
    OWN(floats) = sum;
    __syncthreads();
    REDUCED(floats, OWN(floats) + OTHER(floats))
    if (threadIdx.x == 0)
        *output = sqrtf(floats[0] / n + least);
}

__global__ void divided_by_root(
    const float *input, const float *root, float factor, float offset, float *output, int n)
{
    if (INDEX < n)
        output[INDEX] = factor * (input[INDEX] / root[0]) + offset;
}

__global__ void block_sum_to_float(const float *input, float *output, float n)
{
    extern __shared__ float floats[];
    OWN(floats) = INDEX < n ? input[INDEX] : 0.0f;
    __syncthreads();
    REDUCED(floats, OWN(floats) + OTHER(floats))
    if (threadIdx.x == 0)
        output[blockIdx.x] = floats[0];
}

__global__ void mean_of_sums(const float *input, float *output, float count, float n)
{
    extern __shared__ float floats[];
    float sum = 0.0f;
    for (int place = threadIdx.x; place < count; place += blockDim.x)
        sum += input[place];
    OWN(floats) = sum;
    __syncthreads();
    REDUCED(floats, OWN(floats) + OTHER(floats))
    if (threadIdx.x == 0)
        *output = floats[0] / n;
}

__global__ void block_variance(const float *input, float *output, const float *mean, int n)
{
    extern __shared__ float floats[];
    if (INDEX < n)
    {
        float x = input[INDEX];
        OWN(floats) = (x - *mean) * (x - *mean);
    }
    else
        OWN(floats) = 0;
    __syncthreads();
    REDUCED(floats, OWN(floats) + OTHER(floats))
    if (threadIdx.x == 0)
        output[blockIdx.x] = floats[0];
}

__global__ void normalized(
    const float *input, float *output, const float *mean, const float *deviation, float factor,
    float offset, int n)
{
    if (INDEX < n)
        output[INDEX] = factor * ((input[INDEX] - *mean) / *deviation) + offset;
}

__global__ void row_maxima(const float *input, float *output, int n)
{
    extern __shared__ float floats[];
    const int row = blockIdx.y;
    OWN(floats) = INDEX < n ? input[row * n + INDEX] : SMALLEST;
    __syncthreads();
    REDUCED(floats, fmaxf(OWN(floats), OTHER(floats)))
    if (threadIdx.x == 0)
        output[row * gridDim.x + blockIdx.x] = floats[0];
}

__global__ void maxima_of_rows(const float *input, float *output, int n)
{
    extern __shared__ float floats[];
    const int row = blockIdx.x;
    float most = SMALLEST;
    for (int place = threadIdx.x; place < n; place += blockDim.x)
        most = fmaxf(most, input[row * n + place]);
    OWN(floats) = most;
    __syncthreads();
    REDUCED(floats, fmaxf(OWN(floats), OTHER(floats)))
    if (threadIdx.x == 0)
        output[row] = floats[0];
}

__global__ void row_sums_of_exponentials(const float *input, float *output, const float *most, int n)
{
    extern __shared__ float floats[];
    const int row = blockIdx.y;
    OWN(floats) = INDEX < n ? expf(input[row * n + INDEX] - most[row]) : 0.0f;
    __syncthreads();
    REDUCED(floats, OWN(floats) + OTHER(floats))
    if (threadIdx.x == 0)
        output[row * gridDim.x + blockIdx.x] = floats[0];
}

__global__ void sums_of_rows(const float *input, float *output, int n)
{
    extern __shared__ float floats[];
    const int row = blockIdx.x;
    float sum = 0.0f;
    for (int place = threadIdx.x; place < n; place += blockDim.x)
        sum += input[row * n + place];
    OWN(floats) = sum;
    __syncthreads();
    REDUCED(floats, OWN(floats) + OTHER(floats))
    if (threadIdx.x == 0)
        output[row] = floats[0];
}

__global__ void softmax_of_rows(
    const float *input, float *output, const float *most, const float *sums, int n)
{
    int row = blockIdx.y;
    if (INDEX < n)
        output[row * n + INDEX] = expf(input[row * n + INDEX] - most[row]) / sums[row];
}

#define PRODUCT(name, load, store)                                                       \
    __global__ void name(                                                                \
        const float *a, const float *b, float *c, int m, int n, int k, float divisor)    \
    {                                                                                    \
        __shared__ float left[16][16], right[16][16];                                    \
        int column = INDEX, row = blockIdx.y * blockDim.y + threadIdx.y;                 \
        int x = threadIdx.x, y = threadIdx.y;                                            \
        float sum = 0.0f;                                                                \
        for (int tile = 0; tile < (k + 15) / 16; ++tile)                                 \
        {                                                                                \
            left[y][x] = row < m && tile * 16 + x < k ? a[row * k + tile * 16 + x] : 0;  \
            store = load;                                                                \
            __syncthreads();                                                             \
            for (int step = 0; step < 16; ++step)                                        \
                sum += left[y][step] * right[step][x];                                   \
            __syncthreads();                                                             \
        }                                                                                \
        if (row < m && column < n)                                                       \
            c[row * n + column] = sum / divisor;                                         \
    }

PRODUCT(product, column < n && tile * 16 + y < k ? b[(tile * 16 + y) * n + column] : 0, right[y][x])
PRODUCT(
    product_transposed,
    blockIdx.x * 16 + y < n && tile * 16 + x < k ? b[(blockIdx.x * 16 + y) * k + tile * 16 + x] : 0,
    right[x][y])

__global__ void transposed(const float *input, float *output, int rows, int columns)
{
    __shared__ float tile[32][33];
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = INDEX;
    if (row < rows && column < columns)
        tile[threadIdx.y][threadIdx.x] = input[row * columns + column];
    __syncthreads();
    int below = blockIdx.x * blockDim.x + threadIdx.y;
    int aside = blockIdx.y * blockDim.y + threadIdx.x;
    if (below < columns && aside < rows)
        output[below * rows + aside] = tile[threadIdx.x][threadIdx.y];
}

__global__ void transposed_by_four(const float *input, float *output, int rows, int columns)
{
    __shared__ float tile[32][33];
    int x = threadIdx.x * 4, y = threadIdx.y;
    int row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    if (row < rows && column + 3 < columns)
    {
        float4 four = *reinterpret_cast<const float4 *>(&input[row * columns + column]);
        tile[y][x] = four.x;
        tile[y][x + 1] = four.y;
        tile[y][x + 2] = four.z;
        tile[y][x + 3] = four.w;
    }
    __syncthreads();
    int below = blockIdx.x * 32 + y, aside = blockIdx.y * 32 + x;
    if (below < columns && aside + 3 < rows)
    {
        float4 four = {tile[x][y], tile[x + 1][y], tile[x + 2][y], tile[x + 3][y]};
        *reinterpret_cast<float4 *>(&output[below * rows + aside]) = four;
    }
}

// ---- convolutions of a line ----------------------------------------------------------------------

__global__ void convolved(const float *input, const float *factors, float *output, int n, int width)
{
    int place = INDEX;
    if (place >= n - width + 1)
        return;
    float sum = 0;
    for (int at = 0; at < width; ++at)
        sum += input[place + at] * factors[at];
    output[place] = sum;
}

__global__ void convolved_in_shared(
    const float *input, const float *factors, float *output, int n, int width)
{
    const int threads = 1024;
    __shared__ float window[threads + 2048], kept[2048];
    int place = INDEX, thread = threadIdx.x, results = n - width + 1;
    int first = blockIdx.x * blockDim.x, length = blockDim.x + width - 1;
    for (int at = thread; at < length; at += blockDim.x)
    {
        int from = first + at;
        window[at] = from < n ? input[from] : 0.0f;
    }
    const int each = (width + threads - 1) / threads;
    for (int at = 0; at < each && thread * each + at < width; ++at)
        kept[thread * each + at] = factors[thread * each + at];
    __syncthreads();
    if (place < results)
    {
        float sum = 0;
        for (int at = 0; at < width; ++at)
            sum += window[thread + at] * kept[at];
        output[place] = sum;
    }
}

// ---- attention in one reading: 16 rows a block, keys and values in tiles of 16 -------------------

__global__ void attended(
    const float *queries, const float *keys, const float *values, float *output, int rows,
    int count, float scale)
{
    const int tile = 16, width = 128;
    __shared__ float query[tile][width], key[tile][width], value[tile][width];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * tile + y;
    float sums[width] = {0.0f}, most = SMALLEST, divisor = 0.0f;
    for (int at = 0; at < width; ++at)
        sums[at] = 0;
    for (int at = x; at < width; at += blockDim.x)
        query[y][at] = row < rows ? queries[row * width + at] : 0.0f;
    __syncthreads();
    for (int first = 0; first < (count + tile - 1) / tile; ++first)
    {
        for (int one = y; one < tile; one += blockDim.y)
        {
            int from = first * tile + one;
            for (int at = x; at < width; at += blockDim.x)
            {
                if (from < count)
                {
                    key[one][at] = keys[from * width + at];
                    value[one][at] = values[from * width + at];
                }
                else
                {
                    key[one][at] = 0.0f;
                    value[one][at] = 0.0f;
                }
            }
        }
        __syncthreads();
        if (row < rows)
        {
            float scores[tile], largest = SMALLEST;
            for (int one = 0; one < tile; ++one)
            {
                float score = 0.0f;
                for (int at = 0; at < width; ++at)
                    score += query[y][at] * key[one][at];
                score *= scale;
                if (first * tile + one >= count)
                    score = SMALLEST;
                scores[one] = score;
                largest = fmaxf(largest, score);
            }
            float now = fmaxf(most, largest);
            float before = expf(most - now), own = expf(largest - now), sum = 0.0f;
            for (int one = 0; one < tile; ++one)
            {
                scores[one] = expf(scores[one] - largest);
                sum += scores[one];
            }
            divisor = before * divisor + own * sum;
            most = now;
            for (int at = x; at < width; at += blockDim.x)
            {
                float product = 0.0f;
                for (int one = 0; one < tile; ++one)
                    product += scores[one] * value[one][at];
                sums[at] = before * sums[at] + own * product;
            }
        }
        __syncthreads();
    }
    if (row < rows)
        for (int at = x; at < width; at += blockDim.x)
            output[row * width + at] = sums[at] / divisor;
}
}

// ---- softmax in one reading: the most so far, and the sum of exponentials below it ---------------

struct Running
{
    float most, sum;
};

__device__ __forceinline__ Running joined(Running a, Running b)
{
    Running both;
    both.most = fmaxf(a.most, b.most);
    both.sum = a.sum * expf(a.most - both.most) + b.sum * expf(b.most - both.most);
    return both;
}

__device__ __forceinline__ Running joined_warp(Running own)
{
    for (int step = 16; step > 0; step /= 2)
    {
        float most = __shfl_down_sync(~0u, own.most, step);
        float sum = __shfl_down_sync(~0u, own.sum, step);
        own = joined(own, {most, sum});
    }
    return own;
}

#define EMPTY {-3.402823466e+38f, 0.0f}

extern "C" __global__ void online_block(const float *input, float *maxima, float *sums, int n)
{
    Running own = EMPTY;
    int stride = blockDim.x * gridDim.x;
    for (int place = INDEX; place < n; place += stride)
        own = joined(own, {input[place], 1.0f});
    own = joined_warp(own);
    __shared__ float most[32], sum[32];
    int thread = threadIdx.x, warp = thread / 32;
    if (thread % 32 == 0)
    {
        most[warp] = own.most;
        sum[warp] = own.sum;
    }
    __syncthreads();
    Running block = EMPTY;
    if (thread < blockDim.x / 32)
        block = {most[thread], sum[thread]};
    if (warp == 0)
    {
        block = joined_warp(block);
        if (thread == 0)
        {
            maxima[blockIdx.x] = block.most;
            sums[blockIdx.x] = block.sum;
        }
    }
}

extern "C" __global__ void online_grid(
    const float *maxima, const float *sums, float *most_of_all, float *sum_of_all, int count)
{
    Running own = EMPTY;
    for (int place = threadIdx.x; place < count; place += blockDim.x)
        own = joined(own, {maxima[place], sums[place]});
    own = joined_warp(own);
    __shared__ float most[32], sum[32];
    int thread = threadIdx.x, warp = thread / 32;
    if (thread % 32 == 0)
    {
        most[warp] = own.most;
        sum[warp] = own.sum;
    }
    __syncthreads();
    if (thread < blockDim.x / 32)
    {
        Running block = joined_warp({most[thread], sum[thread]});
        if (thread == 0)
        {
            most_of_all[0] = block.most;
            sum_of_all[0] = block.sum;
        }
    }
}
