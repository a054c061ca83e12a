// Addresses out of bounds, bytes that nobody wrote, barriers that threads skip.

// case missing_tail_guard <<<1, 64>>> out of bounds
out[i + N - 32] = i;  // fail here
if (i < 32) out[i + N - 32] = i;  // pass

// case read_before_the_start <<<1, 32>>> out of bounds
out[i] = data[i - 1];  // fail here
out[i] = i ? data[i - 1] : 0;  // pass

// case atomic_out_of_bounds <<<1, 32>>> out of bounds
atomicAdd(out + N - 16 + i, 1);  // fail here
if (i < 16) atomicAdd(out + N - 16 + i, 1);  // pass

// case misaligned_store <<<1, 32>>> misaligned
((int4 *)(out + 1))[i] = make_int4(1, 2, 3, 4);  // fail here
((int4 *)(out + 4))[i] = make_int4(1, 2, 3, 4);  // pass

// case shared_out_of_bounds <<<1, 32>>> out of bounds
volatile int *v = s;
v[i * 40] = i;  // fail here
v[i * 20] = i;  // pass

// case local_out_of_bounds <<<1, 32>>> out of bounds
int a[8];
for (int k = 0; k < 8; k++) a[(k * 5 + i) % 8] = k;
out[i] = a[(data[i] + i) % 8];  // pass
out[i] = a[data[i] + i + 1000];  // fail here

// case goes_on_after_a_fault <<<1, 32>>> out of bounds race
data[i + N] = i;  // fail here
s[i] = i;  // here
__syncwarp();  // pass
out[i] = s[31 - i];  // here

// case unwritten_shared_memory <<<1, 64>>> uninitialized read
s[i] = i;
__syncthreads();
out[i] = s[i] + s[(i + 1) % 64];  // pass
out[i] = s[i] + s[i + 1];  // fail here

// case unwritten_condition <<<1, 32>>> uninitialized read
if (fresh[i] > 3) out[i] = 1;  // fail here
fresh[i] = i;  // pass
if (fresh[i] > 3) out[i] = 1;  // pass

// case unwritten_address <<<1, 32>>> uninitialized read
out[i] = data[fresh[i] & 63];  // fail here
fresh[i] = i;  // pass
out[i] = data[fresh[i] & 63];  // pass

// case unwritten_sum <<<1, 32>>> uninitialized read
for (int k = 0; k < 2; k++) out[i] += fresh[2 * i + k];  // fail here
fresh[i] = i;  // pass
out[i] = fresh[i] + 1;  // pass

// case partly_written_word <<<1, 32>>> uninitialized read
((short *)fresh)[2 * i] = 1;  // fail
fresh[i] = 1;  // pass
out[i] = fresh[i] + 1;  // here

// case unwritten_bytes_are_copied <<<1, 32>>> uninitialized read
out[i] = fresh[i];  // pass
out[i] = 2 * fresh[i];  // fail here

// case unwritten_operand_of_an_atomic <<<1, 32>>> uninitialized read
atomicAdd(fresh, i);  // fail here
if (i == 0) fresh[0] = 0;  // pass
__syncwarp();  // pass
atomicAdd(fresh, i);  // pass

// case barrier_skipped_by_a_warp <<<1, 64>>> divergent barrier
if (i < 32) __syncthreads();  // fail here
__syncthreads();  // here

// case barrier_that_threads_skip <<<1, 64>>> skipped barrier
if (i >= 48) return;  // pass
if (i < 48) __syncthreads();  // fail here
__syncthreads();  // pass
out[i] = 1;

// case barrier_in_loops_of_different_lengths <<<1, 64>>> skipped barrier
int laps = 2;  // pass
int laps = i < 32 ? 2 : 3;  // fail
for (int k = 0; k < laps; k++) __syncthreads();  // here
out[i] = laps;

// case warp_barrier_that_lanes_skip <<<1, 32>>> skipped barrier
if (i < 16) __syncwarp();  // fail here
if (i < 16) __syncwarp(0xffff);  // pass
out[i] = i;

// case lanes_leave_before_a_warp_barrier <<<1, 32>>> race
if (i >= 16) return;
s[i] = i;  // here
__syncwarp();  // pass
out[i] = s[15 - i];  // here

// case barrier_that_others_never_reach <<<1, 64>>> deadlock
if (i >= 32) while (atomicAdd(flag, 0) == 0) {}  // fail
__syncthreads();
if (i < 32) atomicExch(flag, 1);

// case barrier_on_both_sides <<<1, 64>>> divergent barrier
s[i] = i;
if (i < 32) {  // fail
  __syncthreads();  // fail here
  out[i] = s[i + 32];  // fail
} else {  // fail
  __syncthreads();  // fail here
  out[i] = s[i - 32];  // fail
}  // fail
__syncthreads();  // pass
out[i] = s[63 - i];  // pass

// case barrier_with_the_wrong_count <<<1, 96>>> deadlock
if (i < 64) asm volatile("bar.sync 1, 96;" ::: "memory");  // fail
if (i < 64) asm volatile("bar.sync 1, 64;" ::: "memory");  // pass

// case mbarrier_expects_too_many <<<1, 32>>> deadlock
MBARRIER_INIT(33);  // fail
MBARRIER_INIT(32);  // pass
MBARRIER_ARRIVE(1);
MBARRIER_WAIT(0);

// case not_a_member <<<1, 32>>> not a member
if (i < 8) out[i] = __shfl_sync(0xf, i, 0);  // fail here
if (i < 8) out[i] = __shfl_sync(0xff, i, 0);  // pass
