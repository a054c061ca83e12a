// What each mark means, in a sentence, and where that is written.

export interface Help {
  readonly text: string;
  readonly source: string;
}

const SIMT = "CUDA C++ Programming Guide, “SIMT Architecture”";
const ITS = "CUDA C++ Programming Guide, “Independent Thread Scheduling”";
const GLOBAL = "CUDA C++ Programming Guide, “Device Memory Accesses”";
const SHARED = "CUDA C++ Programming Guide, “Shared Memory”";
const OCCUPANCY = "CUDA C++ Programming Guide, “Hardware Multithreading”";
const SYNC = "CUDA C++ Programming Guide, “Synchronization Functions”";

const STATES = "Nsight Compute, Kernel Profiling Guide, “Warp Stall Reasons”; modelled as described in docs/timing.md";

const entry = (text: string, source: string): Help => ({ text, source });

export const HELP = {
  active: entry("Active: the lane executes this instruction.", SIMT),
  unguarded: entry("Predicated off: the lane is active, but the instruction's predicate is false for this lane, so the instruction has no effect in it.", SIMT),
  goes_on: entry("Falls through: the lane does not take this branch; it executes the next instruction.", SIMT),
  jumps: entry("Jumps: the lane takes this branch to its target.", SIMT),
  other_path: entry("On the other path: the lane took the other side of a branch, which is not executing now.", SIMT),
  gathering: entry("At the reconvergence point: the lane waits for the other lanes of the branch.", SIMT),
  syncing: entry("Syncing: the lane waits for the other lanes of a member mask, as at __syncwarp() or a shuffle.", ITS),
  at_barrier: entry("At a barrier: the lane waits at a barrier of the block, such as __syncthreads().", SYNC),
  exited: entry("Exited: the lane's thread has returned.", SIMT),
  absent: entry("Not launched: the block has fewer threads than its warps have lanes.", "CUDA C++ Programming Guide, “Thread Hierarchy”"),
  ready: entry("Ready: the lane can continue, and another warp is executing.", SIMT),
  halves: entry("The wide gap separates half-warps, and the narrow gaps separate quarter-warps. An access of 8 bytes per lane is served one half-warp at a time, and an access of 16 bytes per lane one quarter-warp at a time.", GLOBAL),
  stack: entry("The points at which lanes that have diverged will reconverge. The last point is the innermost.", SIMT),
  calls: entry("The functions that lanes are executing, with the innermost function first. The list contains inlined functions and calls that have not returned.", SIMT),
  splits: entry("On compute capability 7.0 and later, each thread has its own program counter. Lanes of a warp that execute together form a split, and any split may run next.", ITS),
  divergence: entry("Divergence: active lanes take both sides of this branch; the warp executes the sides one after the other.", SIMT),
  reconvergence: entry("Reconvergence: lanes that had diverged execute together again.", SIMT),
  barrier: entry("Barrier: the warp arrives at __syncthreads() and waits for the block.", SYNC),
  conflict: entry("Bank conflict: lanes access different words of one bank, which serves one word per pass.", SHARED),
  uncoalesced: entry("Uncoalesced: the access takes more transactions than it would if neighboring lanes accessed neighboring words.", GLOBAL),
  involved: entry("In the finding: this thread made one of the accesses that the finding reports.", "docs/checking.md"),
  roofline: entry("Operations per second, plotted against operations per byte. A kernel cannot be above the roofs. Modelled from the recorded launch.", "S. Williams, A. Waterman, D. Patterson, “Roofline”, CACM 52 (4), 2009"),
  fault: entry("Fault: the error that ended the launch.", "docs/memory.md"),
  transaction: entry("One transaction: bytes that memory moves together. Hatched bytes were moved but not requested.", GLOBAL),
  bank: entry("A bank of shared memory. A bank serves one word per pass; lanes that access the same word are served together.", SHARED),
  pass: entry("A pass over the banks: each bank serves at most one word. A request without a conflict needs one pass.", SHARED),
  executions: entry("How often warps executed this line's most frequent instruction.", "docs/model.md, “What the numbers mean”"),
  lanes: entry("Active lanes per warp instruction of this line, on average; 32 means all lanes.", "docs/model.md, “What the numbers mean”"),
  sectors: entry("Sectors of 32 bytes per request of this line to global or local memory, on average.", GLOBAL),
  passes: entry("Passes over the banks per request of this line to shared memory, on average; 1 means no conflict.", SHARED),
  occupancy: entry("Warps resident on an SM, as a share of the maximum. Modelled from the kernel's registers, shared memory and block size.", OCCUPANCY),
  sm: entry("A streaming multiprocessor. The first blocks are spread over all SMs; when a block ends, the next block takes its place. Hardware guarantees no order.", "CUDA C++ Programming Guide, “Hardware Implementation”"),
  layout: entry("For the program, a block is an array of threads with the index threadIdx. The hardware divides the block into warps of 32 threads, in the order of x, then y, then z. Colours show the warps; darker cells are second half-warps.", "CUDA C++ Programming Guide, “Thread Hierarchy”"),
  block: entry("A block of the grid: waiting to start, resident, or done. Blocks run in any order.", "CUDA C++ Programming Guide, “Thread Hierarchy”"),
  in_flight: entry("In flight: a copy, a matrix product or a store that was issued and runs asynchronously. It is in flight until a thread has waited for its group, or for the phase of the mbarrier that tracks its completion.", "PTX ISA, “Asynchronous operations”"),
  mbarrier: entry("An mbarrier: its phase completes when all expected arrivals have occurred and all expected bytes have been transferred. The phase number counts the completed phases.", "PTX ISA, “Parallel Synchronization and Communication Instructions: mbarrier”"),
  cell: entry("An element of the array, with its value after this step. A frame marks an element that this step writes; a bar at the bottom marks an element that this step reads. A hatched element was read before anything was written to it.", "docs/view.md"),
  warps: entry("Each row is a warp, from its first step to its last. The height of a bar shows how many lanes are active.", SIMT),
  ratio: entry("Active lanes of this warp as a share of its lanes, averaged over its instructions. 100 % means that no lane was ever inactive.", SIMT),
  slower: entry("Instructions that the warp issued, divided by the average number of instructions that a lane of the warp executed. The ratio is 1 if the lanes never diverge.", SIMT),
  state_selected: entry("Selected: the scheduler issues an instruction of this warp.", STATES),
  state_not_selected: entry("Not selected: the warp is eligible, but its scheduler issues an instruction of another warp.", STATES),
  state_wait: entry("Stall, wait: the warp waits for a fixed latency, such as that of the preceding arithmetic instruction.", STATES),
  state_dispatch_stall: entry("Stall, dispatch: the dispatcher holds back an instruction that is ready to issue.", STATES),
  state_short_scoreboard: entry("Stall, short scoreboard: the warp waits for the result of a shared memory access, a special function or a conversion.", STATES),
  state_long_scoreboard: entry("Stall, long scoreboard: the warp waits for the result of a global, local or texture memory access.", STATES),
  state_barrier: entry("Stall, barrier: the warp waits for the other warps of its block.", STATES),
  state_membar: entry("Stall, membar: the warp waits at a memory fence until its writes are visible.", STATES),
  state_branch_resolving: entry("Stall, branch resolving: the warp has executed a branch, and the target is not known yet.", STATES),
  state_no_instruction: entry("Stall, no instruction: the warp waits until its next instruction has been fetched.", STATES),
  state_math_pipe_throttle: entry("Stall, math pipe throttle: the execution unit that the instruction needs is busy.", STATES),
  state_mio_throttle: entry("Stall, MIO throttle: the instruction queue for shared memory and special functions is full.", STATES),
  state_lg_throttle: entry("Stall, LG throttle: the instruction queue for global and local memory is full.", STATES),
  state_tex_throttle: entry("Stall, tex throttle: the instruction queue for the texture unit is full.", STATES),
  state_sleeping: entry("Stall, sleeping: all lanes of the warp sleep in __nanosleep().", STATES),
  state_drain: entry("Stall, drain: the warp has exited, but its writes have not reached memory yet.", STATES),
} as const;

export type HelpKey = keyof typeof HELP;

/** Attributes that let an element explain itself on hover, on focus and to a screen reader. */
export function tip(key: HelpKey, more = ""): { "data-tip": string; "aria-label": string } {
  const text = more ? `${more} ${HELP[key].text}` : HELP[key].text;
  return { "data-tip": `${text}\n${HELP[key].source}`, "aria-label": text };
}
