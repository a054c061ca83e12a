"""Computes the roofs of a kernel (the throughputs of the device and how much of each the kernel
used), and names what bounds it."""

from __future__ import annotations

from warploom.timing.pipeline import Pipeline
from warploom.timing.readings import Roof, TimedLaunch
from warploom.timing.work.costs import UNITS

BOUND_SHARE = 0.6
"""The share of a throughput from which on it bounds a kernel; below it, latency does (Nsight
Compute, "Speed Of Light", calls 60 % low)."""

WAITS_FOR = {
    "wait": "on results of arithmetic",
    "short_scoreboard": "on shared memory, mbarriers or the special function units",
    "long_scoreboard": "on global or local memory",
    "barrier": "at barriers",
    "membar": "at fences",
    "branch_resolving": "for branches",
    "no_instruction": "for instructions",
    "math_pipe_throttle": "for a busy arithmetic unit",
    "mio_throttle": "for space in the queue of the memory input/output (MIO) unit",
    "lg_throttle": "for space in the queue for local and global memory accesses",
    "tex_throttle": "for the texture unit",
    "dispatch_stall": "for the dispatch unit",
    "sleeping": "because they sleep (nanosleep)",
    "drain": "for their stores to finish before they exit",
    "no_warp": "",
}
"""Phrases of each stall reason, to follow "most warps wait"."""


def roofs_of(timing: TimedLaunch) -> tuple[Roof, ...]:
    """Returns the roofs of a launch, the most used first: issue, L1, shared memory, DRAM, L2 if the
    device's bandwidth is known, and each other unit that the kernel used but "control" and the
    load/store unit. `used` is the share of the peak of the whole device: what SMs do is measured on
    some SMs and scaled by how many of them have blocks; DRAM and L2 are shared by all, and measured
    as a whole."""
    spec, device = timing.spec, timing.device
    hertz = spec.clock_mhz * 1e6
    cycles = max(1, timing.sample_cycles)
    l1, shared = timing.lsu_use
    # A kernel that issues nothing has no roof, whatever SMs its blocks were on.
    share = timing.sms / device.sms if timing.unit_use else 0
    roofs = [
        Roof("Issue", timing.issued / max(1, timing.scheduler_cycles) * share,
             device.sms * spec.schedulers * hertz, "instructions"),
        Roof("L1", l1 * share, 128 * hertz * device.sms / spec.l1_wavefront_cycles, "bytes"),
        Roof("Shared", shared * share,
             4 * device.shared_banks * hertz * device.sms / spec.shared_wavefront_cycles, "bytes"),
        Roof("DRAM", timing.dram_bytes / cycles / spec.dram_bytes_per_cycle,
             spec.dram_bytes_per_cycle * hertz, "bytes"),
    ]  # fmt: skip
    if spec.l2_bytes_per_cycle:
        used = timing.l2_bytes / cycles / spec.l2_bytes_per_cycle
        roofs.append(Roof("L2", used, spec.l2_bytes_per_cycle * hertz, "bytes"))
    for name, used in timing.unit_use.items():
        if name not in ("control", "tensor", "lsu"):
            lanes = getattr(spec, f"lanes_{name}")
            roofs.append(Roof(name.upper(), used * share, lanes * device.sms * hertz, "results"))
        elif name == "tensor":
            peak = spec.tensor_fma * device.sms * hertz
            roofs.append(Roof("TENSOR", used * share, peak, "products"))
    return tuple(sorted(roofs, key=lambda roof: -roof.used))


def bound_of(timing: TimedLaunch) -> str:
    """Returns what bounds a kernel, as one sentence with the evidence. It is the most used
    throughput, if its share is BOUND_SHARE or more; else the latency of copies, if most waiting is
    for them; else too few warps, if "no_warp" is the most frequent stall of schedulers; else
    latency, with the most frequent stall."""
    top = timing.roofs[0]
    percent = f"{100 * top.used:.0f} %"
    if top.used >= BOUND_SHARE:
        return f"bound by {_phrase(top.name)}: {percent} of its peak"
    main_stall = max(timing.stalls.items(), key=lambda item: item[1])
    share = f"{100 * main_stall[1] / max(1, timing.scheduler_cycles):.0f} %"
    pipeline = timing.pipeline
    if pipeline is not None and _waits_mostly_for_copies(timing, pipeline):
        share = f"{100 * pipeline.for_copies / _waiting_cycles(timing):.0f} %"
        return (
            f"bound by the latency of copies: warps spend {share} of their waiting cycles at "
            "mbarriers, waiting for copies (the Tensor Memory Accelerator is busy "
            f"{100 * pipeline.tma_use:.0f} % of the time); more or larger stages would hide more "
            "latency"
        )
    if main_stall[0] == "no_warp":
        return (
            f"bound by too few warps: in {share} of the schedulers' cycles, no warp is resident; "
            "the "
            f"highest throughput is that of {_phrase(top.name)}, at {percent}"
        )
    return (
        f"bound by latency: in {share} of the schedulers' cycles, most warps wait "
        f"{WAITS_FOR[main_stall[0]]}; the highest throughput is that of {_phrase(top.name)}, at "
        f"{percent}"
    )


def _waits_mostly_for_copies(timing: TimedLaunch, pipeline: Pipeline) -> bool:
    """Returns whether, of the cycles in which warps wait, more than half are waits for copies at
    mbarriers."""
    return 2 * pipeline.for_copies > _waiting_cycles(timing)


def _waiting_cycles(timing: TimedLaunch) -> int:
    """Returns the cycles in which warps are in any state but selected and not selected, summed over
    all warps, at least 1."""
    issuable = ("selected", "not_selected")
    waits = (count for name, count in timing.warp_states.items() if name not in issuable)
    return max(1, sum(waits))


def _phrase(name: str) -> str:
    """Returns the name of a roof as it reads in a sentence: "the FP32 units", "shared memory";
    names of other throughputs, such as DRAM, as they are."""
    if name.lower() in UNITS:
        return f"the {name} units"
    return {"Issue": "the issue of instructions", "Shared": "shared memory"}.get(name, name)
