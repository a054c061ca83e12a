// Asynchronous copies: cp.async, bulk copies, mbarriers.

// case copy_without_a_wait <<<1, 32>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.commit_group;" ::: "memory");
asm volatile("cp.async.wait_group 0;" ::: "memory");  // pass
out[i] = s[i];  // here

// case copy_waited_for_by_one_group_too_few <<<1, 32>>> race
COPY(s + i, data + i);
asm volatile("cp.async.commit_group;" ::: "memory");
COPY(s + 64 + i, data + 64 + i);  // here
asm volatile("cp.async.commit_group;" ::: "memory");
asm volatile("cp.async.wait_group 1;" ::: "memory");  // fail
asm volatile("cp.async.wait_group 0;" ::: "memory");  // pass
out[i] = s[64 + i];  // here

// case first_of_two_copies <<<1, 32>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.commit_group;" ::: "memory");
COPY(s + 64 + i, data + 64 + i);
asm volatile("cp.async.commit_group;" ::: "memory");
asm volatile("cp.async.wait_group 2;" ::: "memory");  // fail
asm volatile("cp.async.wait_group 1;" ::: "memory");  // pass
out[i] = s[i];  // here

// case copy_without_a_commit <<<1, 32>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.commit_group;" ::: "memory");  // pass
asm volatile("cp.async.wait_group 0;" ::: "memory");
out[i] = s[i];  // here

// case wait_all_needs_no_commit <<<1, 32>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.wait_all;" ::: "memory");  // pass
out[i] = s[i];  // here

// case copy_of_another_thread <<<1, 64>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.commit_group;" ::: "memory");
asm volatile("cp.async.wait_group 0;" ::: "memory");
__syncthreads();  // pass
out[i] = s[63 - i];  // here

// case barrier_before_the_wait <<<1, 64>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.commit_group;" ::: "memory");
__syncthreads();  // fail
asm volatile("cp.async.wait_group 0;" ::: "memory");
__syncthreads();  // pass
out[i] = s[63 - i];  // here

// case copy_over_what_is_still_read <<<1, 64>>> race
s[i] = i;
__syncthreads();
out[i] = s[63 - i];  // here
__syncthreads();  // pass
COPY(s + i, data + i);  // here
asm volatile("cp.async.wait_all;" ::: "memory");

// case source_written_behind_the_copy <<<1, 32>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.wait_all;" ::: "memory");  // pass
data[i] = 1;  // here
asm volatile("cp.async.wait_all;" ::: "memory");

// case two_copies_to_one_place <<<1, 32>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.wait_all;" ::: "memory");  // pass
COPY(s + i, data + 64 + i);  // here
asm volatile("cp.async.wait_all;" ::: "memory");

// case pipeline_of_two_stages <<<1, 32>>> race
COPY(s + i, data + i);  // here
asm volatile("cp.async.commit_group;" ::: "memory");
for (int k = 0; k < 4; k++) {
  if (k < 3) COPY(s + 32 * ((k + 1) % 2) + i, data + 32 * (k + 1) + i);  // here
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 1;" ::: "memory");  // pass
  asm volatile("cp.async.wait_group 2;" ::: "memory");  // fail
  out[32 * k + i] = s[32 * (k % 2) + i];  // here
}

// case arrival_behind_copies <<<1, 32>>> race
MBARRIER_INIT(32);
COPY(s + i, data + i);  // here
asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(bar) : "memory");  // pass
MBARRIER_ARRIVE(1);  // fail
MBARRIER_WAIT(0);
out[i] = s[i ^ 1];  // here

// case mbarrier_orders_threads <<<1, 64>>> race
MBARRIER_INIT(64);
s[i] = i;  // here
MBARRIER_ARRIVE(1);
MBARRIER_WAIT(0);  // pass
out[i] = s[63 - i];  // here

// case wrong_parity <<<1, 64>>> race deadlock
MBARRIER_INIT(64);
s[i] = i;  // here
MBARRIER_ARRIVE(1);
MBARRIER_WAIT(1);  // fail
MBARRIER_WAIT(0);  // pass
out[i] = s[63 - i];  // here

// case second_phase_waits_for_the_first <<<1, 64>>> race deadlock
MBARRIER_INIT(64);
MBARRIER_ARRIVE(1);
MBARRIER_WAIT(0);
s[i] = i;  // here
MBARRIER_ARRIVE(1);
MBARRIER_WAIT(0);  // fail
MBARRIER_WAIT(1);  // pass
out[i] = s[63 - i];  // here

// case relaxed_arrival <<<1, 64>>> race
MBARRIER_INIT(64);
s[i] = i;  // here
asm volatile("{ .reg .b64 t; mbarrier.arrive.relaxed.cta.shared.b64 t, [%0], 1; }" :: "r"(bar) : "memory");  // fail
MBARRIER_ARRIVE(1);  // pass
MBARRIER_WAIT(0);
out[i] = s[63 - i];  // here

// case bulk_copy_without_a_wait <<<1, 32>>> race
MBARRIER_INIT(1);
if (i == 0) {
  MBARRIER_EXPECT(128);
  BULK_IN(s, data, 128);  // here
}
MBARRIER_WAIT(0);  // pass
out[i] = s[i];  // here

// case bulk_copy_with_too_few_bytes_expected <<<1, 32>>> race
MBARRIER_INIT(1);
if (i == 0) {
  MBARRIER_EXPECT(64);  // fail
  MBARRIER_EXPECT(128);  // pass
  BULK_IN(s, data, 64);
  BULK_IN(s + 16, data + 16, 64);  // here
}
MBARRIER_WAIT(0);
out[i] = s[i];  // here

// case bulk_copy_waited_for_at_another_mbarrier <<<1, 32>>> race
MBARRIER_INIT(1);
if (i == 0) {
  MBARRIER_EXPECT(128);
  BULK_IN_AT(bar, s, data, 128);  // here
  MBARRIER_EXPECT_AT(bar + 8, 128);
  BULK_IN_AT(bar + 8, s + 64, data + 64, 128);
}
MBARRIER_WAIT_AT(bar + 8, 0);  // fail
MBARRIER_WAIT(0);  // pass
out[i] = s[i];  // here

// case bulk_copy_over_what_is_still_read <<<1, 64>>> race
MBARRIER_INIT(1);
s[i] = i;
__syncthreads();
out[i] = s[i];  // here
__syncthreads();  // pass
if (i == 0) {
  FENCE_PROXY();
  MBARRIER_EXPECT(256);
  BULK_IN(s, data, 256);  // here
}
MBARRIER_WAIT(0);

// case bulk_copy_of_stored_data <<<1, 32>>> proxy
s[i] = i;  // here
FENCE_PROXY();  // pass
__syncthreads();
if (i == 0) {
  BULK_OUT(out, s, 128);  // here
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// case bulk_copy_fenced_by_who_starts_it <<<1, 64>>> proxy
s[i] = i;  // here
__syncthreads();
if (i == 0) {
  FENCE_PROXY();  // pass
  BULK_OUT(out, s, 256);  // here
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// case bulk_copy_before_the_barrier <<<1, 64>>> race
s[i] = i;  // here
FENCE_PROXY();
__syncthreads();  // pass
if (i == 0) {
  BULK_OUT(out, s, 256);  // here
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// case source_of_a_bulk_copy_reused <<<1, 32>>> race
s[i] = i;
FENCE_PROXY();
__syncthreads();
if (i == 0) {
  BULK_OUT(out, s, 128);  // here
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // pass
}
__syncthreads();
s[i] = 5;  // here

// case bulk_copy_without_a_commit <<<1, 32>>> race
s[i] = i;
FENCE_PROXY();
__syncthreads();
if (i == 0) {
  BULK_OUT(out, s, 128);  // here
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");  // pass
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
__syncthreads();
s[i] = 5;  // here

// case result_of_a_bulk_copy_read_back <<<1, 32>>> race
s[i] = i;
FENCE_PROXY();
__syncthreads();
if (i == 0) {
  BULK_OUT(out, s, 128);  // here
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  // pass
  asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");  // fail
  data[0] = out[5];  // here
}
