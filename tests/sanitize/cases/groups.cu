// Cooperative groups, and the whole grid.

// case tile_of_eight <<<1, 32>>> race
auto tile = cg::tiled_partition<8>(cg::this_thread_block());
s[i] = i;  // here
tile.sync();  // pass
out[i] = s[i / 8 * 8 + 7 - i % 8];  // here

// case tile_reads_its_neighbour <<<1, 32>>> race
auto tile = cg::tiled_partition<8>(cg::this_thread_block());
s[i] = i;  // here
tile.sync();
out[i] = s[(i + 8) % 32];  // fail here
out[i] = s[i / 8 * 8 + (i + 1) % 8];  // pass

// case block_group <<<1, 64>>> race
s[i] = i;  // here
cg::this_thread_block().sync();  // pass
out[i] = s[63 - i];  // here

// case coalesced_lanes <<<1, 32>>> race
if (i % 2) {
  auto group = cg::coalesced_threads();
  s[i] = i;  // here
  group.sync();  // pass
  out[i] = s[32 - i];  // here
}

// case grid_sync <<<2, 64>>> race cooperative
data[b * 64 + i] = i;  // here
cg::this_grid().sync();  // pass
out[b * 64 + i] = data[(1 - b) * 64 + 63 - i];  // here

// case grid_sync_between_rounds <<<2, 32>>> race cooperative
int *from = data, *to = out;
for (int k = 0; k < 3; k++) {
  to[b * 32 + i] = from[(1 - b) * 32 + i] + 1;  // here
  cg::this_grid().sync();  // pass
  int *swap = from; from = to; to = swap;
}

// case grid_barrier_of_ones_own <<<3, 64>>> race cooperative
data[b * 64 + i] = i;  // here
__syncthreads();  // pass
if (i == 0) {
  __threadfence();
  atomicAdd(flag, 1);
  while (atomicAdd(flag, 0) < 3) {}
  __threadfence();
}
__syncthreads();
out[b * 64 + i] = data[(b + 1) % 3 * 64 + i];  // here
