"""Detects data races: pairs of conflicting accesses that PTX's memory model leaves unordered. The
input is a stream of a launch's events in execution order (warp accesses, barriers, fences,
asynchronous copies). The output is a list of findings in the detector's state (`layout`).

It is a happens-before detector with vector clocks and shadow memory, as FastTrack is, with
shortcuts for lockstep warps and barriers. docs/decisions/0032-happens-before.md explains the
algorithm; `tests/sanitize/oracle.py` is its slow definition. All functions are plain Python that
Numba compiles: `state` is the detector's one array of 64-bit words, `event` the event, and both are
indexed by the constants of `layout`. The *current* thread is the one whose access or
synchronization is being processed (`knowledge.set_current_thread`). That a thread *knows* an access
means that the access happens before whatever the thread does next. To *record* an access is to
check it against the records of the same bytes and to add it to them.

- *Interval*: the stretch between two barriers of all threads of a block. `st [0]; bar.sync 0; ld
  [0]`: the store is of interval 0, the load of interval 1, so they are ordered without a look at
  clocks.
- *Run*: lanes of one access whose addresses in a line are evenly spaced, as one record. `st.b32 [a
  + 4 * tid]` of a warp is one run: thread 0, bytes 0 to 128, stride 4.
- *Line*: what is recorded of 128 bytes of memory, as up to 32 runs: a store by warp 0 and, in the
  next interval, a load by warp 1 are two records, not 64.
- *Cell*: what is recorded of 4 bytes, with one record for each lane: the last weak write, one weak
  read, and lists. A line goes over to its 32 cells where runs cannot decide, such as for `atom` or
  where two runs overlap in part.
- *Chain*: the releases that a read of a location synchronizes with, newest first. After `fence;
  st.relaxed [f]` the chain of `f` has the fence's release; `atom [f]` of another thread adds to it,
  a weak store to `f` empties it.

In: `sanitize.events` (reference machine) and `lower.instrument` (compiled kernels). Names of what
is found, and advice, are `sanitize`'s.
"""
