// Order inside of a block and a warp.

// case shared_between_warps <<<1, 64>>> race
s[i] = i;  // here
__syncthreads();  // pass
out[i] = s[63 - i];  // here

// case shared_between_lanes <<<1, 32>>> race
s[i] = i;  // here
__syncwarp();  // pass
out[i] = s[i ^ 1];  // here

// case shared_write_after_read <<<1, 64>>> race
s[i] = i;
__syncthreads();
int v = s[(i + 32) % 64];  // here
__syncthreads();  // pass
s[i] = v + 1;  // here
out[i] = s[i];

// case shared_write_after_write <<<1, 64>>> race
s[i] = i;  // here
__syncthreads();  // pass
s[63 - i] = i + 100;  // here
__syncthreads();
out[i] = s[i];

// case reduction_missing_last_barrier <<<1, 64>>> race
s[i] = i;
__syncthreads();
if (i < 32) s[i] += s[i + 32];  // here
__syncthreads();  // pass
if (i == 40) out[0] = s[0];  // here

// case scan_in_place <<<1, 64>>> race
s[i] = i;
__syncthreads();
int t = i >= 32 ? s[i - 32] : 0;  // here
__syncthreads();  // pass
s[i] += t;  // here
__syncthreads();
out[i] = s[i];

// case partial_mask_of_one_half <<<1, 32>>> race
if (i < 16) {
  s[i] = i;  // here
  __syncwarp(0xffff);  // pass
  out[i] = s[15 - i];  // here
}

// case partial_masks_leave_out_the_other_half <<<1, 32>>> race
s[i] = i;  // here
if (i < 16) __syncwarp(0xffff);  // fail
else __syncwarp(0xffff0000);  // fail
__syncwarp();  // pass
out[i] = s[31 - i];  // here

// case shuffle_orders_nothing <<<1, 32>>> race
s[i] = i;  // here
out[64 + i] = __shfl_xor_sync(0xffffffff, i, 1);  // fail
__syncwarp();  // pass
out[i] = s[i ^ 1];  // here

// case vote_orders_nothing <<<1, 32>>> race
s[i] = i;  // here
out[64 + i] = __ballot_sync(0xffffffff, i < 3);  // fail
__syncwarp();  // pass
out[i] = s[i ^ 1];  // here

// case global_between_lanes <<<1, 32>>> race
data[i] = i;  // here
__syncwarp();  // pass
out[i] = data[31 - i];  // here

// case global_between_warps <<<1, 64>>> race
data[i] = i;  // here
__syncthreads();  // pass
out[i] = data[63 - i];  // here

// case global_between_blocks <<<2, 32>>> race
if (i == 0) data[0] = b;  // fail here
if (i == 0) data[b] = b;  // pass

// case read_of_another_block <<<2, 32>>> race
data[b * 32 + i] = i;  // here
out[b * 32 + i] = data[(1 - b) * 32 + i];  // fail here
out[b * 32 + i] = data[b * 32 + i];  // pass

// case two_lanes_store_to_one_place <<<1, 32>>> race
data[i / 2] = i;  // fail here
data[i] = i;  // pass

// case two_lanes_store_one_value <<<1, 32>>> same-value
data[0] = 7;  // fail here
data[i] = 7;  // pass

// case two_blocks_store_one_value <<<2, 1>>> same-value
flag[0] = 1;  // fail here
flag[b] = 1;  // pass

// case bytes_of_one_word <<<1, 32>>> race
char *c = (char *)data;
c[i] = i;  // here
__syncwarp();  // pass
out[i] = c[i ^ 3];  // here

// case own_bytes_of_shared_words <<<2, 64>>> race
char *c = (char *)data;
c[i] = i + b;  // fail here
c[b * 64 + i] = i;  // pass

// case halves_of_one_word <<<1, 64>>> race
short *h = (short *)data;
h[i] = i;  // here
__syncthreads();  // pass
out[i] = ((int *)data)[i / 2];  // here

// case wide_over_narrow <<<1, 64>>> race
data[i] = i;  // here
__syncthreads();  // pass
if (i < 16) ((int4 *)out)[i] = ((int4 *)data)[15 - i];  // here

// case barrier_of_both_halves <<<1, 64>>> race
s[i] = i;  // here
if (i < 32) { asm volatile("bar.sync 1, 32;"); } else { asm volatile("bar.sync 2, 32;"); }  // fail
asm volatile("bar.sync 1, 64;");  // pass
out[i] = s[63 - i];  // here

// case named_barrier_of_a_pair_of_warps <<<1, 96>>> race
if (i < 64) {
  s[i] = i;  // here
  asm volatile("bar.sync 1, 64;" ::: "memory");
}
if (i < 64) out[i] = s[63 - i];  // pass
if (i >= 64) out[i] = s[i - 64];  // fail here

// case producer_arrives <<<1, 64>>> race
if (i < 32) {
  s[i] = i;  // here
  asm volatile("bar.arrive 1, 64;" ::: "memory");
} else {
  asm volatile("bar.sync 1, 64;" ::: "memory");  // pass
  asm volatile("bar.sync 2, 32;" ::: "memory");  // fail
  out[i] = s[i - 32];  // here
}

// case arriving_waits_for_nobody <<<1, 64>>> race
if (i < 32) {
  asm volatile("bar.arrive 1, 64;" ::: "memory");  // fail
  asm volatile("bar.sync 1, 64;" ::: "memory");  // pass
  out[i] = s[i + 32];  // here
} else {
  s[i] = i;  // here
  asm volatile("bar.sync 1, 64;" ::: "memory");
}

// case counting_barrier <<<1, 64>>> race
s[i] = i;  // here
int n = i;  // fail
int n = __syncthreads_count(i < 5);  // pass
out[i] = s[63 - i] + n;  // here

// case loop_with_one_barrier <<<1, 64>>> race
for (int k = 0; k < 3; k++) {
  s[i] = i + k;  // here
  __syncthreads();
  out[64 * k + i] = s[63 - i];  // here
  __syncthreads();  // pass
}

// case double_buffer <<<1, 64>>> race
for (int k = 0; k < 4; k++) {
  int *buffer = s + 64 * (k % 2);  // pass
  int *buffer = s;  // fail
  buffer[i] = i + k;  // here
  __syncthreads();
  out[i] += buffer[63 - i];  // here
}

// case early_exit <<<1, 64>>> race
s[i] = i;  // here
if (i >= 48) return;
__syncthreads();  // pass
out[i] = s[47 - i];  // here

// case lane_of_a_partial_warp <<<1, 40>>> race
s[i] = i;  // here
__syncwarp();  // fail
__syncthreads();  // pass
out[i] = s[39 - i];  // here

// case divergent_sides <<<1, 32>>> race
if (i < 16) s[i] = i;  // here
__syncwarp();  // pass
if (i >= 16) out[i] = s[i - 16];  // here

// case tile_of_a_matrix <<<1, (16, 16)>>> race
int x = threadIdx.x, y = threadIdx.y;
s[y * 16 + x] = data[y * 16 + x];  // here
__syncthreads();  // pass
out[y * 16 + x] = s[x * 16 + y];  // here

// case lock_by_barriers <<<1, 128>>> race
for (int turn = 0; turn < 4; turn++) {
  if (i / 32 == turn) data[i % 32] += i;  // here
  __syncthreads();  // pass
}
