// Clusters of two blocks: each other's shared memory, their barrier, mbarriers and copies of others.

// case store_to_the_other_block <<<2, 32>>> race
CLUSTER_SYNC
PEER(s)[i] = i;  // here
CLUSTER_SYNC  // pass
__syncthreads();  // fail
out[b * 32 + i] = s[i];  // here
CLUSTER_SYNC

// case store_over_what_the_other_reads <<<4, 32>>> race
s[i] = i;
CLUSTER_SYNC
out[b * 32 + i] = PEER(s)[i];  // here
CLUSTER_SYNC  // pass
s[i] = 2;  // here
CLUSTER_SYNC

// case arrival_that_releases_nothing <<<2, 64>>> race
CLUSTER_SYNC
PEER(s)[i] = i;  // here
CLUSTER_ARRIVE  // pass
CLUSTER_ARRIVE_RELAXED  // fail
CLUSTER_WAIT
out[b * 64 + i] = s[i];  // here
CLUSTER_SYNC

// case store_between_arrival_and_wait <<<2, 32>>> race
CLUSTER_SYNC
PEER(s)[i] = i;  // pass
CLUSTER_ARRIVE
PEER(s)[i] = i;  // fail here
CLUSTER_WAIT
out[b * 32 + i] = s[i];  // here
CLUSTER_SYNC

// case read_before_the_wait <<<2, 32>>> race
CLUSTER_SYNC
PEER(s)[i] = i;  // here
CLUSTER_ARRIVE
out[b * 32 + i] = s[i];  // fail here
CLUSTER_WAIT
out[b * 32 + i] = s[i];  // pass
CLUSTER_SYNC

// case cluster_barrier_in_the_block <<<2, 64>>> race
s[i] = i;  // here
CLUSTER_SYNC  // pass
out[b * 64 + i] = s[63 - i];  // here
CLUSTER_SYNC

// case global_memory_in_a_cluster <<<4, 32>>> race
fresh[b * 32 + i] = i;  // here
CLUSTER_SYNC  // pass
out[b * 32 + i] = fresh[(b ^ 1) * 32 + i];  // here

// case global_memory_of_two_clusters <<<4, 32>>> race
fresh[b * 32 + i] = i;  // here
CLUSTER_SYNC
out[b * 32 + i] = fresh[(b ^ 1) * 32 + i];  // pass
out[b * 32 + i] = fresh[(b ^ 2) * 32 + i];  // fail here

// case sums_in_the_other_block <<<2, 64>>> race same-value
if (i < 8) s[i] = 0;
CLUSTER_SYNC
atomicAdd(&PEER(s)[i & 7], 1);  // pass
PEER(s)[i & 7] += 1;  // fail here
CLUSTER_SYNC
out[b * 64 + i] = s[i & 7];

// case flag_of_too_narrow_a_scope <<<2, 32>>> race
if (i == 0) s[0] = 0;
CLUSTER_SYNC
if (b == 1 && i == 0) {
  data[7] = 5;  // here
  unsigned there = of_block(SHARED(s), 0);
  asm volatile("st.release.cluster.shared::cluster.u32 [%0], 1;" :: "r"(there) : "memory");  // pass
  asm volatile("st.release.cta.shared::cluster.u32 [%0], 1;" :: "r"(there) : "memory");  // fail here
}
if (b == 0 && i == 0) {
  int seen = 0;
  while (!seen)
    asm volatile("ld.acquire.cluster.shared.u32 %0, [%1];" : "=r"(seen) : "r"(SHARED(s)) : "memory");  // here
  out[0] = data[7];  // here
}
CLUSTER_SYNC

// case fence_of_the_cluster <<<2, 32>>> race
if (i == 0) s[0] = 0;
CLUSTER_SYNC
if (b == 1 && i == 0) {
  data[7] = 5;  // here
  asm volatile("fence.acq_rel.cluster;" ::: "memory");  // pass
  asm volatile("fence.acq_rel.cta;" ::: "memory");  // fail
  unsigned there = of_block(SHARED(s), 0);
  asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], 1;" :: "r"(there) : "memory");
}
if (b == 0 && i == 0) {
  int seen = 0;
  while (!seen)
    asm volatile("ld.relaxed.cluster.shared.u32 %0, [%1];" : "=r"(seen) : "r"(SHARED(s)) : "memory");
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
  out[0] = data[7];  // here
}
CLUSTER_SYNC

// case arrival_at_the_other_blocks_mbarrier <<<2, 32>>> race
MBARRIER_INIT(32)
CLUSTER_SYNC
PEER(s)[i] = i;  // pass
ARRIVE_AT(of_block(bar, OTHER));
PEER(s)[i] = i;  // fail here
WAIT_CLUSTER(0)
out[b * 32 + i] = s[31 - i];  // here
CLUSTER_SYNC

// case knowledge_that_comes_back <<<2, 64>>> race
MBARRIER_INIT(1)
CLUSTER_SYNC
if (b == 0 && i == 0) {
  s[40] = data[1];  // pass
  ARRIVE_AT(of_block(bar, 1));
  s[40] = data[1];  // fail here
}
if (b == 1 && i == 0) { WAIT_CLUSTER(0) ARRIVE_AT(of_block(bar, 0)); }
if (b == 0 && i == 32) { WAIT_CLUSTER(0) out[0] = s[40]; }  // here
CLUSTER_SYNC

// case asynchronous_store_read_at_once <<<2, 32>>> race
MBARRIER_INIT(1)
if (i == 0) { MBARRIER_EXPECT(32 * 4); }
CLUSTER_SYNC
asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: "r"(of_block(SHARED(s + i), OTHER)), "r"(i), "r"(of_block(bar, OTHER)) : "memory");  // here
WAIT_CLUSTER(0)  // pass
out[b * 32 + i] = s[i];  // here
CLUSTER_SYNC

// case asynchronous_sum_read_at_once <<<2, 32>>> race
MBARRIER_INIT(1)
if (i == 0) { s[0] = 0; MBARRIER_EXPECT(32 * 4); }
CLUSTER_SYNC
asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" :: "r"(of_block(SHARED(s), OTHER)), "r"(1), "r"(of_block(bar, OTHER)) : "memory");  // here
WAIT_CLUSTER(0)  // pass
out[b * 32 + i] = s[0];  // here
CLUSTER_SYNC

// case copy_to_both_blocks <<<2, 32>>> race
MBARRIER_INIT(1)
if (i == 0) { MBARRIER_EXPECT(128); }
CLUSTER_SYNC
if (b == 0 && i == 0) MULTICAST(s, data, 128, 3);  // here
if (b == 1) WAIT_CLUSTER(0)  // pass
if (b == 0) WAIT_CLUSTER(0)
out[b * 32 + i] = s[i];  // here
CLUSTER_SYNC

// case copies_of_both_to_one_place <<<2, 32>>> race
MBARRIER_INIT(1)
if (i == 0) { MBARRIER_EXPECT(256); }
CLUSTER_SYNC
if (i == 0) MULTICAST(s + 32 * b, data, 128, 3);  // pass
if (i == 0) MULTICAST(s, data, 128, 3);  // fail here
WAIT_CLUSTER(0)
out[b * 32 + i] = s[i];
CLUSTER_SYNC

// case copy_over_what_the_other_still_reads <<<2, 32>>> race
MBARRIER_INIT(1)
if (i == 0) { MBARRIER_EXPECT(128); }
CLUSTER_SYNC
if (b == 0 && i == 0) MULTICAST(s, data, 128, 3);
WAIT_CLUSTER(0)
if (i == 0) { MBARRIER_EXPECT(128); }
out[b * 32 + i] = s[i];  // here
CLUSTER_SYNC  // pass
__syncthreads();  // fail
if (b == 0 && i == 0) MULTICAST(s, data + 64, 128, 3);  // here
WAIT_CLUSTER(1)
CLUSTER_SYNC

// case copy_between_blocks_whose_source_changes <<<2, 32>>> race
MBARRIER_INIT(1)
if (i == 0) { MBARRIER_EXPECT(128); }
s[i] = i;
FENCE_PROXY();
CLUSTER_SYNC
if (i == 0) asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(of_block(SHARED(s + 64), OTHER)), "r"(SHARED(s)), "r"(128), "r"(of_block(bar, OTHER)) : "memory");  // here
WAIT_CLUSTER(0)
CLUSTER_SYNC  // pass
if (i == 0) s[3] = 7;  // here
out[b * 32 + i] = s[64 + i];
CLUSTER_SYNC

// case sums_of_bulk_copies <<<2, 32>>> race
s[i] = 1;
FENCE_PROXY();
__syncthreads();
if (i == 0) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" :: "l"(data), "r"(SHARED(s)), "r"(128) : "memory");  // here
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
CLUSTER_SYNC  // pass
__syncthreads();  // fail
out[b * 32 + i] = data[i];  // here
