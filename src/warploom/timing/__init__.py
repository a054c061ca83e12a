"""Models the time of a launch: replays the record that the compiled engine wrote on a cycle-level
model of a device.

    gpu = wl.Device("v100", record=True)
    run = gpu.load("saxpy.cu")["saxpy"][grid, block](n, 2.0, x, y)
    t = run.time(scheduler="gto")        # lrr, gto, two-level, oldest; default: the device's own

`t` is a `timing.result.Timing`: `cycles elapsed_cycles seconds ipc issue_utilisation
active_warps eligible_warps instructions`; `issued scheduler_cycles stalls` (scheduler cycles
without an issue, by reason: issued + their sum = scheduler_cycles); `warp_states` (cycles of all
warps by state); `l1_hit_rate l2_hit_rate l1_bytes l2_bytes dram_bytes dram_read_bytes
dram_written_bytes l2_dirty_bytes`; `unit_use lsu_use roofs bound pipeline`; `by_line()`;
`timeline(sm)` and `copies(sm)`, for which `time(timeline=N)` reserves N events, `warp_cycles(sm)`,
and `add_to(trace, sm)`, which adds the timeline to a trace for the view; `blocks sampled_blocks
sample_cycles cycles_error`. `run.time` accepts `scheduler=`, `sample=` (waves of blocks),
`workers=`, `timeline=` and `spec=` (a changed `TimingSpec`).

`run.replay(...)`, with the same options, is a `timing.replaying.Replaying`: it can stop, be saved
and go on (`advance(cycle) state restore(state) time()`).

The steps, each a package or module: `record` reduces the log of a launch to streams of basic blocks
and accesses; `work` maps PTX instructions, and `machinecode` machine instructions, to operations of
units; `replay` runs both on the cycle-level model in `engine`, quantum by quantum; `result` reads
the figures off its state; `accelsim` writes and reads traces in Accel-Sim's format.

Everything here is modelled; nothing changes what a kernel computes. docs/timing.md has the model.

In: the log of a launch, and a `TimingSpec`. Out: a `Timing`. Recording is left to `abi.log` and
`lower.instrument`, texts and charts to `report`.
"""
