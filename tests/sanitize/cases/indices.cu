// Which threads reach which elements: after the classes of Faial's examples (Cogumbreiro et al.,
// "Checking Data-Race Freedom of GPU Kernels, Compositionally", CAV 2021).

// case row_of_a_matrix <<<1, (8, 8)>>> race
out[threadIdx.y * 8 + threadIdx.x] = i;  // pass
out[threadIdx.y * 7 + threadIdx.x] = threadIdx.y * 100 + i;  // fail here

// case alias_of_a_shifted_pointer <<<1, 32>>> race
int *moved = data + 1;
out[i] = moved[i];  // pass
data[i] = moved[i];  // fail here

// case alias_of_shared_memory <<<1, 64>>> race
int *low = s, *high = s + 64;
low[i] = i;  // here
int seen = high[63 - i] = 2 * i;  // pass
int seen = (high - 64)[63 - i];  // fail here
out[i] = seen;

// case alias_that_is_assigned_in_a_loop <<<1, 32>>> race
int *at = out + i;
for (int k = 0; k < 3; k++) {
  at[0] = i;  // here
  at += 32;  // pass
  at += 1;  // fail
}

// case stride_of_the_block <<<1, 32>>> race
for (int k = i; k < 128; k += blockDim.x) out[k] = i;  // pass
for (int k = i; k < 128; k += blockDim.x - 1) out[k] = i;  // fail here

// case two_indices_in_one_loop <<<1, 32>>> race
for (int j = 0, k = i; j < 2; j++, k += 32) out[k] = i;  // pass
for (int j = 0, k = i; j < 2; j++, k += 16) out[k] = i;  // fail here

// case rounds_with_a_barrier <<<1, 64>>> race
for (int k = 0; k < 3; k++) {
  s[i] = k;  // here
  __syncthreads();
  out[64 * k + i] = s[(i + 1) % 64];  // here
  __syncthreads();  // pass
}

// case triangle_of_rounds <<<1, 64>>> race
s[i] = i;
__syncthreads();
for (int width = 32; width > 0; width /= 2) {
  if (i < width) s[i] += s[i + width];  // pass
  if (i < width + 1) s[i] += s[i + width];  // fail here
  __syncthreads();
}
if (i == 0) out[0] = s[0];

// case saxpy_of_a_grid <<<4, 32>>> race
int k = b * 32 + i;
out[k] = 2 * data[k] + k;  // pass
out[i] = 2 * data[k] + k;  // fail here

// case neighbour_of_a_saxpy <<<1, 64>>> race
int next = data[i + 1];
__syncthreads();  // pass
data[i] = 2 * next;  // pass
data[i] = 2 * data[i + 1];  // fail here

// case scalar_of_the_block <<<1, 64>>> race
if (i == 0) s[0] = data[0];  // here
__syncthreads();  // pass
out[i] = s[0];  // here

// case field_of_a_struct <<<1, 32>>> race
struct Pair { int a, b; };
Pair *pairs = (Pair *)out;
pairs[i].a = i;  // pass
pairs[i / 2].a = i;  // fail here
pairs[i].b = i;

// case index_that_a_function_gives <<<1, 32>>> race
struct Index { __device__ static int of(int i, int by) { return i / by; } };
out[Index::of(i, 1)] = i;  // pass
out[Index::of(i, 2)] = i;  // fail here

// case reference_that_a_function_takes <<<1, 32>>> race
struct Put { __device__ static void into(int &to, int from) { to = from; } };
Put::into(out[i], i);  // pass
Put::into(out[0], i);  // fail
__syncthreads();

// case index_of_a_template <<<1, 32>>> race
auto place = [](auto n) { return n % 31; };
out[place(i)] = i;  // fail here
out[place(i) + 31 * (i == 31)] = i;  // pass

// case index_from_memory <<<1, 32>>> race
out[data[i]] = i;  // pass
out[data[i] / 2] = i;  // fail here

// case index_by_bits <<<1, 64>>> race
s[i ^ 32] = i;  // pass
s[i & 31] = i;  // fail here
__syncthreads();
if (i < 32) out[i] = s[i];

// case atomic_index <<<1, 64>>> race
int k = atomicAdd(flag, 1);  // pass
int k = i == 63 ? 0 : i;  // fail
out[k] = i;  // here

// case halves_of_a_warp <<<1, 32>>> race
if (i < 16) s[i] = i;  // here
__syncwarp();  // pass
if (i >= 16) out[i] = s[i - 16];  // here

// case grid_in_two_dimensions <<<2, (4, 4)>>> race
int k = threadIdx.y * 4 + threadIdx.x;
out[b * 16 + k] = k;  // pass
out[b * 8 + k] = k + 100 * b;  // fail here

// case changed_index <<<1, 32>>> race
int k = i;
out[k] = 1;  // here
k = k + 1;  // fail
out[k] = 2;  // here

// case fields_of_structures <<<1, 64>>> race
out[3 * i] = i;
out[3 * i + 1] = i;  // here
out[3 * i + 2] = out[3 * i + 1];  // pass
out[3 * i + 2] = i < 63 ? out[3 * i + 4] : 0;  // fail here

// case fields_of_overlapping_structures <<<1, 64>>> race
((int2 *)out)[2 * i] = make_int2(i, i);  // here
out[4 * i + 2] = i;  // pass
out[4 * i + 5] = i;  // fail here
