// Made by tools/page_types.py from the Python schema; do not edit.

export const VERSION = 4;
export const DIVERGED = 1;
export const MET = 2;
export const COSTS = ["requests", "sectors", "lines", "transactions", "transactions_32", "transactions_64", "transactions_128", "bytes_requested", "bytes_moved", "wavefronts", "bank_conflicts", "passes", "writes"] as const;
export const PHRASES: Words = {
  "opencl": {
    "block limit sm": "work-group limit CU",
    "grid size": "NDRange size",
    "shared memory": "local memory",
    "shared mem": "local mem",
    "local memory": "private memory",
    "shared": "local",
    "local": "private",
    "threads": "work-items",
    "thread": "work-item",
    "warps": "sub-groups",
    "warp": "sub-group",
    "blocks": "work-groups",
    "block": "work-group",
    "grid": "NDRange",
    "sms": "CUs",
    "sm": "CU"
  },
  "hip": {
    "shared memory": "shared memory (LDS)",
    "shared mem": "LDS",
    "local memory": "private memory",
    "local": "private",
    "warps": "wavefronts",
    "warp": "wavefront",
    "registers": "VGPRs",
    "register": "VGPR",
    "sms": "CUs",
    "sm": "CU"
  },
  "sycl": {
    "block limit sm": "work-group limit CU",
    "grid size": "ND-range size",
    "shared memory": "local memory",
    "shared mem": "local mem",
    "local memory": "private memory",
    "shared": "local",
    "local": "private",
    "threads": "work-items",
    "thread": "work-item",
    "warps": "sub-groups",
    "warp": "sub-group",
    "blocks": "work-groups",
    "block": "work-group",
    "grid": "ND-range",
    "sms": "CUs",
    "sm": "CU"
  }
};
export const CODE_PHRASES: Words = {
  "opencl": {
    "__syncthreads()": "barrier()",
    "__syncwarp()": "sub_group_barrier()",
    "threadIdx": "get_local_id()"
  }
};
export const GLOSSARY: Readonly<Record<string, string>> = {
  "thread": "one execution of the kernel's code",
  "lane": "a thread's position in its warp: 0 to 31 (0 to 63 with warp_size=64)",
  "warp": "a group of 32 threads that execute each instruction together (64 on AMD's GCN and CDNA)",
  "block": "a group of threads that share memory and can wait for each other at barriers",
  "grid": "all blocks of a launch",
  "active mask": "the lanes of a warp that execute an instruction",
  "SM": "a processor that runs blocks",
  "CUDA core": "an execution unit that performs one single-precision operation per cycle, for one lane",
  "register": "on-chip storage private to a thread",
  "global memory": "memory that all blocks can access",
  "shared memory": "on-chip memory that the threads of a block share",
  "local memory": "memory that is private to a thread and is part of device memory",
  "constant memory": "read-only memory that serves one word at a time to all lanes",
  "barrier": "a point at which the threads of a block wait for each other",
  "atomic": "a read-modify-write performed as one operation",
  "sector": "an aligned group of 32 bytes in memory: the unit of transfers to and from caches",
  "line": "an aligned group of 128 bytes in memory: four sectors",
  "bank": "a part of shared memory that serves one word per pass",
  "occupancy": "the number of resident warps on an SM as a share of the maximum",
  "divergence": "a state in which lanes of a warp take different sides of a branch",
  "SIMT": "Single instruction, multiple threads: one instruction is issued for all threads of a warp, but the program is written for one thread.",
  "half-warp": "A group of 16 neighboring lanes (half-warp) or 8 neighboring lanes (quarter-warp). Before compute capability 2.0, the accesses of each half-warp were served separately. Accesses of 8 bytes per lane are still served one half-warp at a time, and accesses of 16 bytes per lane one quarter-warp at a time.",
  "quarter-warp": "A group of 16 neighboring lanes (half-warp) or 8 neighboring lanes (quarter-warp). Before compute capability 2.0, the accesses of each half-warp were served separately. Accesses of 8 bytes per lane are still served one half-warp at a time, and accesses of 16 bytes per lane one quarter-warp at a time.",
  "active block": "A block that is resident on a multiprocessor, or a warp of such a block. The block keeps its registers and its shared memory until it ends.",
  "active warp": "A block that is resident on a multiprocessor, or a warp of such a block. The block keeps its registers and its shared memory until it ends.",
  "selected": "A warp for which the scheduler issues an instruction in the current cycle.",
  "eligible": "A warp that could issue in the current cycle. The scheduler selects one of the eligible warps.",
  "stalled": "A warp that cannot issue in the current cycle. The tooltips of the Time view and timing.md list Nsight Compute's stall reasons.",
  "coalescing": "Combining the accesses of a warp into as few transactions as their addresses allow.",
  "convergence": "The point at which lanes that had diverged execute together again.",
  "reconvergence": "The point at which lanes that had diverged execute together again."
};
type Words = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface LanesOff {
  absent: number;
  exited: number;
  other_path: number;
  gathering: number;
  syncing: number;
  at_barrier: number;
}

export interface ReconvergencePoint {
  block: number;
  expected: number;
  arrived: number;
  other_block: number;
  other_side: number;
}

export interface ResidentKernel {
  kernel: string;
  sm: number;
  blocks: number;
  warps: number;
}

export interface Multiprocessor {
  schedulers: number;
  cores: number;
  max_warps: number;
  max_threads: number;
  max_blocks: number;
  registers: number;
  shared_bytes: number;
  l1_bytes: number;
  l1_holds_shared: boolean;
  texture_cache_bytes: number;
  constant_cache_bytes: number;
  l2_bytes: number;
  memory_bytes: number;
}

export interface DeviceFacts {
  name: string;
  title: string;
  cc: string;
  sms: number;
  independent: boolean;
  global_rule: string;
  shared_rule: string;
  banks: number;
  bank_bytes: number;
  warp_size: number;
  multiprocessor: Multiprocessor | null;
}

export interface OccupancyFacts {
  active_blocks: number;
  active_warps: number;
  max_warps: number;
  registers: number;
  shared_bytes: number;
  limiters: readonly string[];
  warp_registers: number;
}

export interface LaunchFacts {
  kernel: string;
  name: string;
  grid: readonly [number, number, number];
  block: readonly [number, number, number];
  engine: string;
  schedule: string;
  seed: number;
  terms: string;
}

export interface SourceText {
  name: string;
  text: string;
}

export interface Code {
  text: string;
  file: number;
  line: number;
  ptx_line: number;
  unit: string;
  is_branch: boolean;
  is_barrier: boolean;
  guarded: boolean;
  hidden: boolean;
  block: number;
  reads: readonly number[];
  writes: readonly number[];
  targets: readonly number[];
  frames: number;
  calls: boolean;
  returns: boolean;
}

export interface CallFrame {
  function: string;
  line: number;
}

export interface BasicBlock {
  start: number;
  stop: number;
  meets_at: number;
}

export interface Register {
  name: string;
  type: string;
  variable: string;
}

export interface Warp {
  block: number;
  warp: number;
  existing: number;
  final: number;
  registers: boolean;
  ended: boolean;
}

export interface BlockResidency {
  block: number;
  sm: number;
  slot: number;
  since: number;
  until: number;
}

export interface State {
  active: number;
  off: LanesOff;
  stack: readonly ReconvergencePoint[];
  splits: readonly (readonly [number, number])[];
}

export interface Steps {
  count: number;
  warp: Uint8Array;
  instruction: Uint8Array;
  state: Uint8Array;
  executing: Uint8Array;
  marks: Uint8Array;
}

export interface Site {
  instruction: number;
  space: string;
  op: string;
  size: number;
  rule: string;
  best: number;
}

export interface Shape {
  lanes: number;
  offsets: readonly number[];
  served: readonly (readonly [number, number, number])[];
  cost: readonly number[];
}

export interface Accesses {
  count: number;
  step: Uint8Array;
  site: Uint8Array;
  shape: Uint8Array;
  base: Uint8Array;
}

export interface Writes {
  count: number;
  step: Uint8Array;
  register: Uint8Array;
  value: Uint8Array;
  narrow: Uint8Array;
  wide: Uint8Array;
}

export interface Allocated {
  address: number;
  size: number;
  name: string;
  type: string;
  shape: readonly number[];
  first: Uint8Array;
}

export interface SharedArray {
  name: string;
  address: number;
  size: number;
}

export interface Changes {
  count: number;
  access: Uint8Array;
  value: Uint8Array;
  values: readonly Uint8Array[];
}

export interface MBarrier {
  block: number;
  address: number;
}

export interface BarrierStates {
  count: number;
  step: Uint8Array;
  barrier: Uint8Array;
  phase: Uint8Array;
  pending: Uint8Array;
  expected: Uint8Array;
  bytes_left: Uint8Array;
}

export interface Flights {
  count: number;
  step: Uint8Array;
  until: Uint8Array;
  kind: Uint8Array;
  size: Uint8Array;
  barrier: Uint8Array;
}

export interface Asynchronous {
  kinds: readonly string[];
  barriers: readonly MBarrier[];
  states: BarrierStates;
  flights: Flights;
}

export interface Fault {
  address: number;
  size: number;
  block: number;
  thread: number;
}

export interface Party {
  block: number;
  warp: number;
  lane: number;
  instruction: number;
  step: number;
}

export interface Finding {
  tool: string;
  kind: string;
  severity: string;
  message: string;
  space: string;
  buffer: string;
  offset: number;
  size: number;
  parties: readonly Party[];
}

export interface LeftOut {
  steps: number;
  warps: number;
}

export interface ModelledRoof {
  name: string;
  used: number;
  peak: number;
  unit: string;
}

export interface ModelledCopies {
  count: number;
  warp: Uint8Array;
  instruction: Uint8Array;
  since: Uint8Array;
  until: Uint8Array;
}

export interface ModelledTime {
  scheduler: string;
  clock_mhz: number;
  cycles: number;
  blocks: number;
  sampled_blocks: number;
  sm: number;
  sms: number;
  states: readonly string[];
  count: number;
  slot: Uint8Array;
  warp: Uint8Array;
  state: Uint8Array;
  since: Uint8Array;
  until: Uint8Array;
  instruction: Uint8Array;
  visit: Uint8Array;
  left_out: number;
  roofs: readonly ModelledRoof[];
  copies: ModelledCopies | null;
}

export interface Trace {
  version: number;
  launch: LaunchFacts;
  device: DeviceFacts;
  occupancy: OccupancyFacts;
  sources: readonly SourceText[];
  ptx: string;
  code: readonly Code[];
  basic_blocks: readonly BasicBlock[];
  registers: readonly Register[];
  allocations: readonly Allocated[];
  shared: readonly SharedArray[];
  warps: readonly Warp[];
  states: readonly State[];
  steps: Steps;
  sites: readonly Site[];
  shapes: readonly Shape[];
  accesses: Accesses;
  writes: Writes;
  changes: Changes;
  left_out: LeftOut;
  error: string;
  fault: Fault | null;
  modelled: ModelledTime | null;
  findings: readonly Finding[];
  asynchronous: Asynchronous | null;
  residency: readonly BlockResidency[];
  beside: readonly ResidentKernel[];
  frames: readonly (readonly CallFrame[])[];
}

export interface LaunchRequest {
  name: string;
  source: string;
  ptx: string;
  kernel: string;
  before: readonly string[];
  grid: string;
  block: string;
  shared: number;
  args: readonly string[];
  options: readonly string[];
  device: string;
  engine: string;
  schedule: string;
  seed: number;
  l1: boolean | null;
  bank_bytes: number | null;
  max_instructions: number | null;
  cooperative: boolean;
  cluster_dims: string;
  trace_warps: number;
  trace_steps: number;
  trace_blocks: readonly number[];
  timed: boolean;
  sanitize: readonly string[];
  scheduler: string | null;
  sm: number;
}

export interface SourceError {
  line: number;
  message: string;
}

export interface Refusal {
  kind: string;
  message: string;
  errors: readonly SourceError[];
}

export interface Anchor {
  block: number;
  warp: number;
  line: string;
  ptx: string;
  event: string;
  nth: number;
}

export interface Caption {
  at: Anchor;
  text: string;
  look: string;
  array: string;
  part: string;
  beside: Anchor | null;
}

export interface Question {
  ask: string;
  choices: readonly string[];
  answer: number;
  because: string;
}

export interface Variant {
  label: string;
  ptx: string | null;
  kernel: string | null;
  before: readonly string[] | null;
  device: string | null;
  schedule: string | null;
  seed: number | null;
  block: string | null;
  grid: string | null;
  args: readonly string[] | null;
  max_instructions: number | null;
}

export interface Check {
  label: string;
  results: readonly string[];
  counter: string;
  per: string;
  instruction: string;
  findings: readonly string[];
  occupancy: boolean;
  cycles: boolean;
  most: number | null;
  least: number | null;
}

export interface MeasuredKernel {
  file: string;
  kernel: string;
  grid: string;
  block: string;
  args: readonly string[];
  shared: number;
}

export interface Design {
  part: string;
  device: string;
  kernels: readonly MeasuredKernel[];
}

export interface Task {
  ask: string;
  solution: string;
  checks: readonly Check[];
  hints: readonly string[];
  source: string;
  launch: Variant;
  also: readonly Variant[];
  design: Design | null;
}

export interface Judged {
  label: string;
  passed: boolean;
  measured: string;
}

export interface Score {
  name: string;
  costs: readonly number[];
  score: number;
}

export interface Ranking {
  kernels: readonly string[];
  unit: string;
  scores: readonly Score[];
  mine: number;
}

export interface Verdict {
  lesson: string;
  passed: boolean;
  checks: readonly Judged[];
  error: string;
  errors: readonly SourceError[];
  ranking: Ranking | null;
}

export interface CheckRequest {
  lesson: string;
  source: string;
}

export interface ProgressNote {
  lesson: string;
}

export interface Lesson {
  id: string;
  title: string;
  summary: string;
  label: string;
  request: LaunchRequest;
  captions: readonly Caption[];
  question: Question;
  recap: string;
  task: Task | null;
  versus: Variant | null;
  next: string;
  aim: string;
  needs: readonly string[];
}

export interface Assignment {
  lesson: Lesson;
  source: string;
  name: string;
}

export interface ValueRange {
  least: number;
  most: number;
  step: number;
  label: string;
}

export interface Control {
  name: string;
  label: string;
  values: readonly string[];
  start: number;
  buttons: boolean;
  ranges: readonly ValueRange[];
}

export interface Explorable {
  id: string;
  title: string;
  text: readonly string[];
  controls: readonly Control[];
  at: Anchor;
  look: string;
  figures: readonly string[];
  curve: readonly number[];
  curve_label: string;
  live: boolean;
}

export interface ExploreRequest {
  explorable: string;
  values: readonly string[];
}

export interface Explored {
  figure: string;
  curve: number;
  trace: Uint8Array;
}

export interface LessonHead {
  id: string;
  title: string;
  summary: string;
  part: string;
  has_task: boolean;
  aim: string;
  needs: readonly string[];
}

export interface Stop {
  topic: string;
  text: string;
  figure: string;
  at: Anchor;
  trace: number;
  look: string;
}

export interface Explainer {
  title: string;
  stops: readonly Stop[];
  names: readonly string[];
}

export interface EditableNumber {
  start: number;
  end: number;
  values: Readonly<Record<string, number>>;
}

export interface CompiledKernel {
  device: string;
  source: string;
  lines: readonly string[];
  ptx: readonly number[];
  changes: readonly (readonly (readonly [number, number, readonly number[]])[])[];
  numbers: readonly EditableNumber[];
}

export interface DeviceChoice {
  name: string;
  title: string;
  cc: string;
}

export interface Show {
  title: string;
  live: boolean;
  traces: number;
  labels: readonly string[];
  launches: readonly string[];
  request: LaunchRequest | null;
  versus: LaunchRequest | null;
  lesson: Lesson | null;
  lessons: readonly LessonHead[];
  progress: Readonly<Record<string, string>>;
  devices: readonly DeviceChoice[];
  schedules: readonly string[];
  watch: string;
  explainer: Explainer | null;
  place: string;
  explorable: Explorable | null;
  machine: string;
}
