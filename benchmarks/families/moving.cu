// Elements moved: by an index array, along columns, by fields of records.

extern "C" __global__ void gather(const double *in, const int *index, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[index[i]];
}

extern "C" __global__ void scatter(const float *in, const int *index, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[index[i]] = 2.0f * in[i];
}

// Threads of a warp are in one column: x counts rows.
extern "C" __global__ void scale_columns(const float *in, const float *scales, float *out, int rows,
                                         int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns)
        out[row * columns + column] = in[row * columns + column] * scales[column];
}

extern "C" __global__ void row_sums(const int *in, long long *sums, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    long long sum = 0;
    for (int c = 0; c < columns; c++)
        sum += in[row * columns + c];
    sums[row] = sum;
}

struct Record {
    int id;
    short kind;
    unsigned char flags, age;
    double amount;
};

// The fields of records to arrays, where a flag is set; zeros elsewhere.
extern "C" __global__ void split_records(const Record *records, int *ids, short *kinds,
                                         double *amounts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const Record &r = records[i];
    bool wanted = r.flags & 4;
    ids[i] = wanted ? r.id : 0;
    kinds[i] = wanted ? r.kind : 0;
    amounts[i] = wanted ? r.amount * r.age : 0.0;
}

extern "C" __global__ void reverse(const short *in, short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[n - 1 - i] = in[i];
}
