// Atomics, scopes, fences, release and acquire.

// case lost_update_of_blocks <<<4, 1>>> race
data[0] = data[0] + 1;  // fail here
atomicAdd(data, 1);  // pass

// case lost_update_of_lanes <<<1, 32>>> race
data[0] = data[0] + i;  // fail here
atomicAdd(data, i);  // pass

// case lost_update_of_warps <<<1, 64>>> race
if (i % 32 == 0) data[0] = data[0] + 1;  // fail here
if (i % 32 == 0) atomicAdd(data, 1);  // pass

// case plain_read_beside_atomic <<<2, 32>>> race
if (b == 0) atomicAdd(data, 1);  // here
if (b == 1) out[i] = data[0];  // fail here
if (b == 1) out[i] = atomicAdd(data, 0);  // pass

// case plain_write_beside_atomic <<<2, 32>>> race
if (b == 0) atomicAdd(data, 1);  // here
if (b == 1 && i == 0) data[0] = 5;  // fail here
if (b == 1 && i == 0) atomicExch(data, 5);  // pass

// case block_scope_between_blocks <<<2, 32>>> race
atomicAdd_block(data, 1);  // fail here
atomicAdd(data, 1);  // pass

// case block_scope_inside_a_block <<<2, 64>>> race
atomicAdd_block(data + b, 1);  // pass
atomicAdd_block(data, 1);  // fail here

// case one_scope_too_narrow <<<2, 32>>> race
if (b == 0) atomicAdd_block(data, 1);  // fail here
if (b == 0) atomicAdd(data, 1);  // pass
if (b == 1) atomicAdd(data, 1);  // here

// case shared_histogram <<<1, 64>>> race
if (i < 8) s[i] = 0;  // here
__syncthreads();  // pass
atomicAdd(&s[i % 8], 1);  // here
__syncthreads();
if (i < 8) out[i] = s[i];

// case shared_histogram_read_early <<<1, 64>>> race
if (i < 8) s[i] = 0;
__syncthreads();
atomicAdd(&s[i % 8], 1);  // here
__syncthreads();  // pass
if (i < 8) out[i] = s[i];  // here

// case message_without_fences <<<2, 1>>> race
volatile int *f = flag;
if (b == 0) {
  data[0] = 42;  // here
  __threadfence();  // pass
  atomicExch(flag, 1);
} else {
  while (atomicAdd(flag, 0) == 0) {}
  __threadfence();  // pass
  out[0] = data[0];  // here
}

// case message_without_the_writers_fence <<<2, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  __threadfence();  // pass
  atomicExch(flag, 1);
} else {
  while (atomicAdd(flag, 0) == 0) {}
  __threadfence();
  out[0] = data[0];  // here
}

// case message_without_the_readers_fence <<<2, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  __threadfence();
  atomicExch(flag, 1);
} else {
  while (atomicAdd(flag, 0) == 0) {}
  __threadfence();  // pass
  out[0] = data[0];  // here
}

// case message_with_a_block_fence <<<2, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  __threadfence_block();  // fail
  __threadfence();  // pass
  atomicExch(flag, 1);
} else {
  while (atomicAdd(flag, 0) == 0) {}
  __threadfence();
  out[0] = data[0];  // here
}

// case message_in_a_block_with_a_block_fence <<<1, 64>>> race
if (i == 0) {
  data[0] = 42;  // here
  __threadfence_block();  // pass
  atomicExch_block(flag, 1);
}
if (i == 32) {
  while (atomicAdd_block(flag, 0) == 0) {}
  __threadfence_block();  // pass
  out[0] = data[0];  // here
}

// case release_and_acquire <<<2, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");  // pass
  asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");  // fail
} else {
  int v = 0;
  while (v == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
  out[0] = data[0];  // here
}

// case acquire_missing <<<2, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");
} else {
  int v = 0;
  while (v == 0) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");  // fail
  while (v == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");  // pass
  out[0] = data[0];  // here
}

// case release_of_a_narrow_scope <<<2, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  asm volatile("fence.acq_rel.cta;" ::: "memory");  // fail
  asm volatile("fence.acq_rel.gpu;" ::: "memory");  // pass
  asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");
} else {
  int v = 0;
  while (v == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
  out[0] = data[0];  // here
}

// case release_through_a_read_modify_write <<<3, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(flag) : "memory");
} else if (b == 1) {
  int v = 0;
  while (v == 0) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
  asm volatile("st.relaxed.gpu.global.u32 [%0], 2;" :: "l"(flag) : "memory");  // fail
  atomicAdd(flag, 1);  // pass
} else {
  int v = 0;
  while (v < 2) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
  out[0] = data[0];  // here
}

// case causality_over_three_blocks <<<3, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  __threadfence();
  atomicExch(flag, 1);
} else if (b == 1) {
  while (atomicAdd(flag, 0) == 0) {}
  __threadfence();  // pass
  atomicExch(flag + 1, 1);
} else {
  while (atomicAdd(flag + 1, 0) == 0) {}
  __threadfence();
  out[0] = data[0];  // here
}

// case lock_with_fences <<<4, 1>>> race
while (atomicCAS(flag, 0, 1) != 0) {}
__threadfence();  // pass
data[0] = data[0] + 1;  // here
__threadfence();  // pass
atomicExch(flag, 0);

// case unlock_without_a_fence <<<4, 1>>> race
while (atomicCAS(flag, 0, 1) != 0) {}
__threadfence();
data[0] = data[0] + 1;  // here
__threadfence();  // pass
atomicExch(flag, 0);

// case lock_without_a_fence <<<4, 1>>> race
while (atomicCAS(flag, 0, 1) != 0) {}
__threadfence();  // pass
data[0] = data[0] + 1;  // here
__threadfence();
atomicExch(flag, 0);

// case two_locks_for_one_datum <<<4, 1>>> race
int *mine = flag + b % 2;  // fail
int *mine = flag;  // pass
while (atomicCAS(mine, 0, 1) != 0) {}
__threadfence();
data[0] = data[0] + 1;  // here
__threadfence();
atomicExch(mine, 0);

// case lock_of_a_block_taken_by_two <<<2, 1>>> race
while (atomicCAS_block(flag + b, 0, 1) != 0) {}
__threadfence_block();
data[b] = data[b] + 1;  // pass
data[0] = data[0] + 1;  // fail here
__threadfence_block();
atomicExch_block(flag + b, 0);

// case lock_of_one_lane <<<2, 32>>> race
if (i == 0) {
  while (atomicCAS(flag, 0, 1) != 0) {}
  __threadfence();
}
__syncthreads();
data[i] += 1;  // here
__syncthreads();  // pass
if (i == 0) {
  __threadfence();
  atomicExch(flag, 0);
}

// case unlock_by_a_plain_store <<<4, 1>>> race same-value
while (atomicCAS(flag, 0, 1) != 0) {}  // here
__threadfence();
data[0] = data[0] + 1;  // fail here
__threadfence();
flag[0] = 0;  // fail here
atomicExch(flag, 0);  // pass

// case last_block_sums <<<4, 32>>> race
data[b * 32 + i] = i;  // here
__threadfence();
__syncthreads();
if (i == 0) { __threadfence(); s[0] = atomicAdd(flag, 1); __threadfence(); }
__syncthreads();
if (s[0] == 3 && i < 4) out[i] = data[i * 32];  // pass
if (i < 4) out[b * 4 + i] = data[i * 32];  // fail here

// case ticket_of_blocks <<<4, 1>>> race
int ticket = atomicAdd(flag, 1);
while (atomicAdd(flag + 1, 0) != ticket) {}
__threadfence();  // pass
data[0] += ticket;  // here
__threadfence();  // pass
atomicAdd(flag + 1, 1);

// case volatile_promises_nothing <<<2, 1>>> unpromised
volatile int *d = data;
if (b == 0) d[0] = 42;  // fail here
if (b == 0) atomicExch(data, 42);  // pass
if (b == 1) out[0] = d[0];  // fail here
if (b == 1) out[0] = atomicAdd(data, 0);  // pass

// case volatile_beside_plain <<<2, 1>>> race
volatile int *d = data;
if (b == 0) data[0] = 42;  // fail here
if (b == 1) out[0] = d[0];  // here

// case volatile_flag_and_plain_data <<<1, 64>>> race unpromised
volatile int *f = flag;
if (i == 0) {
  data[0] = 42;  // fail here
  f[0] = 1;  // fail here
}
if (i == 32) {
  while (f[0] == 0) {}  // fail here
  out[0] = data[0];  // fail here
}

// case wide_atomic_beside_a_narrow_one <<<2, 1>>> race
if (b == 0) atomicAdd((unsigned long long *)data, 1ull);  // here
if (b == 1) out[0] = data[1];  // fail here
if (b == 1) out[0] = data[2];  // pass

// case failed_compare_and_swap_is_no_release <<<2, 1>>> race
if (b == 0) {
  data[0] = 42;  // here
  __threadfence();
  atomicCAS(flag, 5, 1);  // fail
  atomicCAS(flag, 0, 1);  // pass
  atomicExch(flag + 1, 1);
} else {
  while (atomicAdd(flag + 1, 0) == 0) {}
  int v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
  out[0] = data[0] + v;  // here
}

// case dekker_without_order <<<2, 1>>> race
volatile int *mine = flag + b;
atomicExch(flag + b, 1);
__threadfence();
if (atomicAdd(flag + 1 - b, 0) == 0) data[0] = b + 1;  // pass
data[0] = b + 1;  // fail here
