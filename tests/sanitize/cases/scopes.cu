// Locks, fences and flags by scope: after the classes of ScoR's micro benchmarks (Kamath et al.,
// "ScoRD: A Scoped Race Detector for GPUs", ISCA 2020), between warps and between blocks. Messages, and
// atomics of one scope, are in atomics.cu.

// case lock_of_the_block_between_warps <<<1, 64>>> race
if (i % 32 == 0) {
  while (atomicCAS_block(flag, 0, 1)) {}
  __threadfence_block();  // pass
  data[0] = data[0] + 1;  // here
  __threadfence_block();  // pass
  atomicExch_block(flag, 0);
}

// case lock_of_the_block_without_its_first_fence <<<1, 64>>> race
if (i % 32 == 0) {
  while (atomicCAS_block(flag, 0, 1)) {}
  __threadfence_block();  // pass
  data[0] = data[0] + 1;  // here
  __threadfence_block();
  atomicExch_block(flag, 0);
}

// case lock_of_two_scopes_between_warps <<<1, 64>>> race
if (i == 0) {
  while (atomicCAS(flag, 0, 1)) {}
  __threadfence();
  data[0] = 1;  // here
  __threadfence();  // pass
  atomicExch(flag, 0);
} else if (i == 32) {
  while (atomicCAS_block(flag, 0, 1)) {}
  __threadfence_block();  // pass
  data[0] = 2;  // here
  __threadfence_block();
  atomicExch_block(flag, 0);
}

// case lock_that_one_warp_does_not_take <<<1, 64>>> race
if (i == 0) {
  while (atomicCAS_block(flag, 0, 1)) {}
  __threadfence_block();
  data[0] = 1;  // here
  __threadfence_block();
  atomicExch_block(flag, 0);
} else if (i == 32) {
  while (atomicCAS_block(flag, 0, 1)) {}  // pass
  __threadfence_block();  // pass
  data[0] = 2;  // here
  __threadfence_block();  // pass
  atomicExch_block(flag, 0);  // pass
}

// case lock_that_one_block_does_not_take <<<2, 1>>> race
if (b == 0) {
  while (atomicCAS(flag, 0, 1)) {}
  __threadfence();
  data[0] = 1;  // here
  __threadfence();
  atomicExch(flag, 0);
} else {
  while (atomicCAS(flag, 0, 1)) {}  // pass
  __threadfence();  // pass
  data[0] = 2;  // here
  __threadfence();  // pass
  atomicExch(flag, 0);  // pass
}

// case write_behind_the_unlock <<<2, 1>>> race
while (atomicCAS(flag, 0, 1)) {}
__threadfence();
out[b] = data[0];  // here
if (b == 0) data[0] = 1;  // pass
__threadfence();
atomicExch(flag, 0);
if (b == 0) data[0] = 1;  // fail here

// case lock_with_fences_of_the_block_between_blocks <<<2, 1>>> race
while (atomicCAS(flag, 0, 1)) {}
__threadfence();  // pass
__threadfence_block();  // fail
data[0] = data[0] + 1;  // here
__threadfence();  // pass
__threadfence_block();  // fail
atomicExch(flag, 0);

// case lock_between_blocks_without_its_last_fence <<<2, 1>>> race
while (atomicCAS(flag, 0, 1)) {}
__threadfence();
data[0] = data[0] + 1;  // here
__threadfence();  // pass
atomicExch(flag, 0);

// case read_behind_the_signal <<<2, 1>>> race
if (b == 0) {
  out[0] = data[0];
  out[1] = data[0];  // pass
  __threadfence();
  atomicExch(flag, 1);
  out[1] = data[0];  // fail here
} else {
  while (atomicAdd(flag, 0) == 0) {}
  __threadfence();
  data[0] = 1;  // here
}

// case plain_store_beside_an_atomic_of_another_warp <<<1, 64>>> race
if (i == 0) atomicExch_block(data, 1);  // here
if (i == 32) data[0] = 2;  // fail here
if (i == 32) atomicExch_block(data, 2);  // pass

// case atomics_of_two_scopes_between_warps <<<1, 64>>> race
if (i == 0) atomicExch(data, 1);  // here
if (i == 32) atomicExch_block(data, 2);  // pass
if (i == 32) data[0] = 2;  // fail here

// case order_through_two_scopes <<<2, 64>>> race
if (b == 0 && i == 0) {
  data[0] = 1;  // here
  __threadfence_block();  // pass
  atomicExch(flag, 1);
} else if (b == 0 && i == 32) {
  while (atomicAdd(flag, 0) != 1) {}
  __threadfence();
  atomicExch(flag, 2);
} else if (b == 1 && i == 0) {
  while (atomicAdd(flag, 0) != 2) {}
  __threadfence_block();
  __threadfence();
  atomicExch(flag, 3);
} else if (b == 1 && i == 32) {
  while (atomicAdd(flag, 0) != 3) {}
  __threadfence_block();
  out[0] = data[0];  // here
}

// case narrow_link_between_blocks <<<2, 64>>> race
if (b == 0 && i == 0) {
  data[0] = 1;  // here
  __threadfence_block();
  atomicExch(flag, 1);
} else if (b == 0 && i == 32) {
  while (atomicAdd(flag, 0) != 1) {}
  __threadfence();  // pass
  __threadfence_block();  // fail
  atomicExch(flag, 2);
} else if (b == 1 && i == 0) {
  while (atomicAdd(flag, 0) != 2) {}
  __threadfence();
  out[0] = data[0];  // here
}
