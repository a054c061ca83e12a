// Below compute capability 7.0: the lanes of a warp go in step.

// case warps_go_in_step <<<1, 64>>> race
volatile int *v = s;
v[i] = i;
if (i % 32 < 16) v[i] += v[i + 16];
if (i % 32 < 8) v[i] += v[i + 8];
if (i % 32 == 0) out[i] = v[i];

// case lanes_exchange_in_step <<<1, 32>>> race
volatile int *v = s;
v[i] = i;
out[i] = v[31 - i];

// case warps_do_not_go_in_step <<<1, 64>>> race
s[i] = i;  // here
__syncthreads();  // pass
out[i] = s[63 - i];  // here

// case one_instruction_has_no_order <<<1, 32>>> race
data[i / 2] = i;  // fail here
data[i] = i;  // pass
