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

const STATES = "Nsight Compute, Kernel Profiling Guide, “Warp Stall Reasons”; modelled as docs/timing.md says";

const entry = (text: string, source: string): Help => ({ text, source });

export const HELP = {
  active: entry("Active: the lane executes this instruction.", SIMT),
  unguarded: entry("Predicated off: the lane is active, but the instruction's predicate is false for it, so nothing happens.", SIMT),
  goes_on: entry("Falls through: the lane does not take this branch; it executes the next instruction.", SIMT),
  jumps: entry("Jumps: the lane takes this branch to its target.", SIMT),
  other_path: entry("On the other path: the lane took the other side of a branch, which does not run now.", SIMT),
  gathering: entry("At the reconvergence point: the lane waits for the others of the branch.", SIMT),
  syncing: entry("Waiting for the lanes that a member mask names, as __syncwarp() and shuffles do.", ITS),
  at_barrier: entry("Waiting at a barrier of the block, __syncthreads().", SYNC),
  exited: entry("Exited: the lane's thread has returned.", SIMT),
  absent: entry("Not launched: the block has fewer threads than its warps have lanes.", "CUDA C++ Programming Guide, “Thread Hierarchy”"),
  ready: entry("Ready: the lane can continue, and another warp is executing.", SIMT),
  halves: entry("The wide gap separates half-warps, the narrow ones quarter-warps: accesses of 8 and 16 bytes per lane are served in these parts.", GLOBAL),
  stack: entry("Where lanes that have diverged will reconverge; the innermost point is the last.", SIMT),
  calls: entry("The functions that lanes are in, the innermost first: those that the compiler inlined, and calls that have not returned.", SIMT),
  splits: entry("On compute capability 7.0 and later, each thread has its own program counter: a warp is a set of splits, any of which may run.", ITS),
  divergence: entry("Divergence: active lanes go both ways at this branch; the sides are executed one after the other.", SIMT),
  reconvergence: entry("Reconvergence: lanes that had diverged are together again.", SIMT),
  barrier: entry("Barrier: the warp arrives at __syncthreads() and waits for the block.", SYNC),
  conflict: entry("Bank conflict: lanes want different words of one bank, which gives one word in a pass.", SHARED),
  uncoalesced: entry("Uncoalesced: the access takes more transactions than it would if neighbouring lanes asked for neighbouring words.", GLOBAL),
  involved: entry("Of the finding: a thread of the accesses that nothing orders.", "docs/checking.md"),
  roofline: entry("Operations a second against operations a byte: a kernel can be no higher than the roofs. Modelled from the launch's record.", "S. Williams, A. Waterman, D. Patterson, “Roofline”, CACM 52 (4), 2009"),
  fault: entry("Fault: what ended the launch.", "docs/memory.md"),
  transaction: entry("One transaction: the bytes that memory moves at once. Hatched bytes were fetched and not asked for.", GLOBAL),
  bank: entry("A bank of shared memory. It gives one word in a pass; lanes that want the same word share it.", SHARED),
  pass: entry("A pass over the banks: each bank gives at most one word. A request with no conflict needs one.", SHARED),
  executions: entry("How often warps executed this line's most frequent instruction.", "docs/model.md, “What the numbers mean”"),
  lanes: entry("Lanes active in a warp instruction of this line, on average; 32 is all.", "docs/model.md, “What the numbers mean”"),
  sectors: entry("Sectors of 32 bytes per request of this line to global or local memory, on average.", GLOBAL),
  passes: entry("Passes over the banks per request of this line to shared memory, on average; 1 is without a conflict.", SHARED),
  occupancy: entry("Warps resident on an SM over the most that it can hold. Modelled from the kernel's registers, shared memory and block size.", OCCUPANCY),
  sm: entry("A streaming multiprocessor. The first blocks are spread over all SMs; as one ends, the next takes its place. Hardware promises no order.", "CUDA C++ Programming Guide, “Hardware Implementation”"),
  layout: entry("The program's view of a block is an array of threads, by threadIdx; the hardware's is a row of warps: threads in the order of x, then y, then z, 32 at a time. Colours are warps, darker cells second half-warps.", "CUDA C++ Programming Guide, “Thread Hierarchy”"),
  block: entry("A block of the grid: waiting to start, resident, or done. Blocks run in any order.", "CUDA C++ Programming Guide, “Thread Hierarchy”"),
  in_flight: entry("In flight: a copy, a product or a store that was issued and runs beside the warps. It is over when a thread has waited for its group, or for the phase of the mbarrier to which its completion is reported.", "PTX ISA, “Asynchronous operations”"),
  mbarrier: entry("An mbarrier: its phase ends when all arrivals have come and all bytes that it expects. The phases that have ended are counted.", "PTX ISA, “Parallel Synchronization and Communication Instructions: mbarrier”"),
  cell: entry("An element of the array: its value after this step. A frame marks what this step writes, a bar below what it reads; hatched was read before anything was written.", "docs/view.md"),
  warps: entry("Each row is a warp, from its first step to its last. A bar is as high as lanes are active.", SIMT),
  ratio: entry("Lanes active in this warp's instructions, over those that it has. 100 % means no lane was ever off.", SIMT),
  slower: entry("Instructions that the warp issued, over those that its lanes executed on average: 1 where all lanes go one way.", SIMT),
  state_selected: entry("Selected: the scheduler issues an instruction of this warp.", STATES),
  state_not_selected: entry("Eligible, but not selected: the warp could issue, and its scheduler issues another one's instruction.", STATES),
  state_wait: entry("Stall, wait: a latency that is known beforehand, as of the arithmetic before it, has not passed.", STATES),
  state_dispatch_stall: entry("Stall, dispatch: the scheduler holds an instruction back that it could otherwise issue.", STATES),
  state_short_scoreboard: entry("Stall, short scoreboard: the warp waits for shared memory, a special function or a conversion.", STATES),
  state_long_scoreboard: entry("Stall, long scoreboard: the warp waits for global, local or texture memory.", STATES),
  state_barrier: entry("Stall, barrier: the warp waits for the others of its block.", STATES),
  state_membar: entry("Stall, membar: a fence waits until what the warp wrote is visible.", STATES),
  state_branch_resolving: entry("Stall, branch resolving: a branch was taken, and its target is not known yet.", STATES),
  state_no_instruction: entry("Stall, no instruction: the next instruction has to be fetched.", STATES),
  state_math_pipe_throttle: entry("Stall, math pipe throttle: the unit that the instruction needs is busy.", STATES),
  state_mio_throttle: entry("Stall, MIO throttle: the queue to shared memory and special functions is full.", STATES),
  state_lg_throttle: entry("Stall, LG throttle: the queue to global and local memory is full.", STATES),
  state_tex_throttle: entry("Stall, tex throttle: the queue to the texture unit is full.", STATES),
  state_sleeping: entry("Stall, sleeping: all lanes of the warp sleep, as __nanosleep() makes them.", STATES),
  state_drain: entry("Stall, drain: the warp has ended, and what it wrote is on its way to memory.", STATES),
} as const;

export type HelpKey = keyof typeof HELP;

/** Attributes that let an element explain itself on hover, on focus and to a screen reader. */
export function tip(key: HelpKey, more = ""): { "data-tip": string; "aria-label": string } {
  const text = more ? `${more} ${HELP[key].text}` : HELP[key].text;
  return { "data-tip": `${text}\n${HELP[key].source}`, "aria-label": text };
}
