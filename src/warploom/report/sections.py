"""The sections of a report, named as Nsight Compute names its own.

Every number says of what kind it is: "launch" (as launched), "counted" (in the execution) or
"modelled" (computed from the device's facts). How sections look is for `report.render`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from warploom.analysis.linear.register_values import LaunchInputs
from warploom.core.errors import Dim3
from warploom.devices.occupancy import Occupancy
from warploom.devices.spec import DeviceSpec
from warploom.devices.timing import find_timing
from warploom.observe.counters import Counters
from warploom.observe.examples import Example
from warploom.observe.metrics import metric_of
from warploom.program.program import Program
from warploom.report.advice import Advice, Case, advise
from warploom.report.advice.case import PointerParameter
from warploom.report.advice.latency import latency_cycles
from warploom.report.advice.memory import passes_in_one_slice
from warploom.report.advice.origins import BufferUse, buffer_uses
from warploom.report.advice.strides import ThreadStrides
from warploom.report.costs import LineCost, line_costs
from warploom.report.work import Work, l1_bytes, local_per_sm, work_of

Value = int | float | str


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a launch beside its counters. `seconds` and `compile_seconds`
    (0 where the code was there already) were measured on the host, in code of `tier` (`Run.tier`).

    `terms` are those in which the report is written, if not asked for in others. `registers_from`
    is "ptxas" or "estimate"; `spill_bytes` a thread are None where only ptxas could determine it.
    `newer_target` is the module's `.target` where the device is older than it. `any_order`: the
    result is one of several that the architecture allows (`Run.any_order`). `has_structures`: a
    parameter of the kernel points to structures; None where the source does not say.
    """

    kernel: str
    spec: DeviceSpec
    engine: str
    grid: Dim3
    block: Dim3
    warps: int
    registers: int
    registers_from: str
    spill_bytes: int | None
    static_shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    newer_target: str | None
    seconds: float
    compile_seconds: float
    tier: str = ""
    terms: str = "cuda"
    any_order: bool = False
    has_structures: bool | None = None

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of a section; `nsight` is Nsight Compute's name of it, where it has one."""

    name: str
    unit: str
    value: Value
    kind: str
    nsight: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """Lines under a title."""

    title: str
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All that is reported of one launch; `lines` are its source lines, the costliest first;
    `modelled_bound` says what bounds the modelled time, where it has one. `work` is the work of the
    launch by parts of the GPU; None for a device whose peaks are not known."""

    facts: Facts
    sections: tuple[Section, ...]
    lines: tuple[LineCost, ...]
    advice: tuple[Advice, ...]
    counters: Counters
    examples: tuple[Example, ...]
    modelled_bound: str = ""
    work: Work | None = None


def make_report(
    facts: Facts,
    program: Program,
    counters: Counters,
    occupancy: Occupancy,
    examples: tuple[Example, ...],
    inputs: LaunchInputs | None = None,
    pointers: tuple[PointerParameter, ...] = (),
) -> Report:
    """Returns the report of a launch; `inputs` are its known values, by which addresses are
    analysed for advice, and `pointers` the parameters that point to buffers."""
    sections = (
        launch_statistics(facts, occupancy),
        occupancy_section(occupancy),
        instruction_statistics(counters),
        memory_workload(counters),
    )
    if asynchronous := asynchronous_work(counters):
        sections = (*sections, asynchronous)
    lines = line_costs(counters, examples, facts.spec.warp_size)
    case = Case(
        facts.spec,
        facts.grid,
        facts.block,
        program,
        counters,
        occupancy,
        examples,
        ThreadStrides(program, facts.block, inputs),
        sum(line.cost for line in lines),
        facts.registers,
        facts.spill_bytes,
        facts.has_structures,
        facts.warps,
        _work(facts, counters, occupancy),
        pointers,
    )
    case = _analysed(case)
    return Report(facts, sections, lines, advise(case), counters, examples, work=case.work)


def _work(
    facts: Facts,
    counters: Counters,
    occupancy: Occupancy,
) -> Work | None:
    """Returns the work of a launch; None for a device whose peaks are not known."""
    try:
        timing = find_timing(facts.spec)
    except KeyError:
        return None
    return replace(
        work_of(counters, facts.spec, timing, facts.blocks),
        local_per_sm=local_per_sm(facts.local_bytes, occupancy, facts.spec, facts.blocks),
        l1_bytes=l1_bytes(facts.spec, occupancy),
        held_warps=occupancy.active_warps,
    )


def _analysed(case: Case) -> Case:
    """Returns a case whose work has what follows from the accesses of its kernel, too."""
    if case.work is None:
        return case
    loads, stores = buffer_uses(case, "load"), buffer_uses(case, "store", "atomic")
    large = case.spec.l2_bytes
    work = replace(
        case.work,
        atomic_passes=passes_in_one_slice(case),
        latency=latency_cycles(case, case.occupancy.active_warps),
        loads_once=_moved_once(loads, large),
        stores_once=_moved_once(stores, large),
        may_hit_l2=any(large < one.size < one.moved for one in (*(loads or ()), *(stores or ()))),
    )
    return replace(case, work=work)


def _moved_once(uses: tuple[BufferUse, ...] | None, large: int) -> int | None:
    """Returns the bytes that some buffers move between L2 and DRAM: each once, but of those larger
    than L2 all that are accessed."""
    if uses is None:
        return None
    return sum(one.size if one.size <= large else one.moved for one in uses)


def launch_statistics(facts: Facts, occupancy: Occupancy) -> Section:
    """Returns the shape of the launch, and what it takes of an SM."""
    threads = facts.blocks * facts.threads_per_block
    launched = (
        ("Grid Size", "block", facts.blocks, "launch__grid_size"),
        ("Block Size", "thread", facts.threads_per_block, "launch__block_size"),
        ("Grid", "block", _dims(facts.grid), None),
        ("Block", "thread", _dims(facts.block), None),
        ("Threads", "thread", threads, "launch__thread_count"),
        ("Warps", "warp", facts.warps, None),
        (
            *("Static Shared Memory Per Block", "byte", facts.static_shared_bytes),
            "launch__shared_mem_per_block_static",
        ),
        (
            *("Dynamic Shared Memory Per Block", "byte", facts.dynamic_shared_bytes),
            "launch__shared_mem_per_block_dynamic",
        ),
        ("Local Memory Per Thread", "byte", facts.local_bytes, None),
        ("# SMs", "SM", facts.spec.sms, "launch__sm_count"),
    )
    metrics = [Metric(*line[:3], "launch", line[3]) for line in launched]
    name = f"Registers Per Thread ({facts.registers_from})"
    registers = "launch__registers_per_thread"
    metrics.append(Metric(name, "register/thread", facts.registers, "modelled", registers))
    if facts.spill_bytes is not None:
        metrics.append(Metric("Spills Per Thread", "byte", facts.spill_bytes, "modelled"))
    if occupancy.active_blocks:
        waves = facts.blocks / (facts.spec.sms * occupancy.active_blocks)
        nsight = "launch__waves_per_multiprocessor"
        metrics.append(Metric("Waves Per SM", "wave", waves, "modelled", nsight))
    return Section("Launch Statistics", tuple(metrics))


_LIMITS = {
    "blocks": ("Block Limit SM", "launch__occupancy_limit_blocks"),
    "registers": ("Block Limit Registers", "launch__occupancy_limit_registers"),
    "shared": ("Block Limit Shared Mem", "launch__occupancy_limit_shared_mem"),
    "warps": ("Block Limit Warps", "launch__occupancy_limit_warps"),
    "barriers": ("Block Limit Barriers", "launch__occupancy_limit_barriers"),
}


def occupancy_section(occupancy: Occupancy) -> Section:
    """Returns how many blocks an SM holds at once, and what limits them."""
    metrics = [
        Metric(name, "block", limit, "modelled", nsight)
        for resource, (name, nsight) in _LIMITS.items()
        if (limit := occupancy.limits[resource]) is not None
    ]
    warps = "sm__maximum_warps_avg_per_active_cycle"
    share = "sm__maximum_warps_per_active_cycle_pct"
    percent = 100 * occupancy.fraction
    metrics += [
        Metric("Active Blocks per SM", "block", occupancy.active_blocks, "modelled"),
        Metric(
            "Theoretical Active Warps per SM", "warp", occupancy.active_warps, "modelled", warps
        ),
        Metric("Theoretical Occupancy", "%", percent, "modelled", share),
        Metric("Limited By", "", ", ".join(occupancy.limiters), "modelled"),
    ]
    return Section("Occupancy", tuple(metrics))


def instruction_statistics(counters: Counters) -> Section:
    """Returns what was executed, by class, and how control flowed."""
    given: list[tuple[str, str, Value]] = [
        ("Warp Instructions", "inst", counters.warp_instructions),
        ("Thread Instructions", "inst", counters.thread_instructions),
        (
            *("Thread Instructions, Predicated On", "inst"),
            counters.thread_instructions_predicated_on,
        ),
        ("Active Lanes Per Warp Instruction", "lane", counters.average_active_lanes),
    ]
    by_class = sorted(counters.instructions_by_unit.items(), key=lambda item: -item[1])
    given += [(f"Class {name}", "inst", count) for name, count in by_class]
    given += [
        ("Branches", "inst", counters.branches),
        ("Divergent Branches", "inst", counters.divergent_branches),
        ("Reconvergences", "event", counters.reconvergences),
        ("Barriers", "inst", counters.barriers),
    ]
    if counters.selects:
        given.append(("Selects (conditionals without a branch)", "inst", counters.selects))
    return Section("Instruction Statistics", tuple(_counted(*line) for line in given))


def memory_workload(counters: Counters) -> Section:
    """Returns what the accesses of each kind cost; kinds that did not occur are left out."""
    metrics: list[Metric] = []
    for space in ("global", "local", "shared", "constant", "texture", "surface"):
        for op in ("load", "store", "atomic"):
            if counters.get(f"{space}_{op}_requests", 0):
                metrics += _accesses(counters, space, op)
    if counters.atomic_requests:
        metrics.append(_counted("Atomic Passes", "pass", counters.atomic_passes))
    return Section("Memory Workload Analysis", tuple(metrics))


_ASYNCHRONOUS = (
    ("Tensor Copies", "request", "tensor_copies"),
    ("Tensor Copies, Into Shared Memory", "byte", "tensor_copy_bytes_loaded"),
    ("Tensor Copies, From Shared Memory", "byte", "tensor_copy_bytes_stored"),
    ("Warpgroup Matrix Products", "inst", "warp_group_products"),
    ("Tensor Memory Matrix Products", "request", "tensor_memory_products"),
    ("Tensor Memory Loads", "inst", "tensor_memory_loads"),
    ("Tensor Memory Stores", "inst", "tensor_memory_stores"),
    ("Tensor Memory Copies", "request", "tensor_memory_copies"),
    ("Cluster Barriers", "inst", "cluster_barriers"),
    ("Launch Cancellations", "request", "launch_cancellations"),
)


def asynchronous_work(counters: Counters) -> Section | None:
    """Returns what ran beside the warps' instructions; None where nothing did."""
    lines = [(name, unit, counters[counter]) for name, unit, counter in _ASYNCHRONOUS]
    metrics = tuple(_counted(*line) for line in lines if line[2])
    return Section("Asynchronous Work", metrics) if metrics else None


_FIELDS = (
    ("sectors", "sector"),
    ("lines", "line"),
    ("wavefronts", "wavefront"),
    ("bank_conflicts", "wavefront"),
    ("transactions", "transaction"),
    ("passes", "pass"),
)
_OF_CACHES = ("sectors", "lines", "transactions")
_SIZES = ("transactions_32", "transactions_64", "transactions_128")


def _accesses(counters: Counters, space: str, op: str) -> list[Metric]:
    """Returns the lines of one kind of access."""
    title, kind = f"{space.title()} {op.title()}", f"{space}_{op}"
    requests = counters[f"{kind}_requests"]
    found = [_counted(f"{title} Requests", "request", requests, f"{kind}_requests")]
    for field, unit in _FIELDS:
        count = counters.get(f"{kind}_{field}")
        if count is not None and not (space == "shared" and field in _OF_CACHES):
            name = f"{title} {field.replace('_', ' ').title()}"
            found.append(_counted(name, unit, count, f"{kind}_{field}"))
            found.append(_counted(f"{name} Per Request", unit, count / requests))
    for field in _SIZES:
        if count := counters.get(f"{kind}_{field}"):
            name = f"{title} Transactions of {field.rpartition('_')[2]} Bytes"
            found.append(_counted(name, "transaction", count))
    if (writes := counters.get(f"{kind}_writes")) is not None:
        found.append(_counted(f"{title} Writes", "write", writes))
    asked, moved = counters[f"{kind}_bytes_requested"], counters[f"{kind}_bytes_moved"]
    found.append(_counted(f"{title} Bytes Requested", "byte", asked))
    found.append(_counted(f"{title} Bytes Moved", "byte", moved))
    if moved:
        found.append(_counted(f"{title} Efficiency", "%", 100 * asked / moved))
    return found + _caches(counters, kind, title)


def _caches(counters: Counters, kind: str, title: str) -> list[Metric]:
    """Hits and misses, where caches were counted."""
    found: list[Metric] = []
    for level in ("l1", "l2"):
        hits = counters.get(f"{kind}_{level}_hits", 0)
        looked_up = hits + counters.get(f"{kind}_{level}_misses", 0)
        if looked_up:
            name = f"{title} {level.upper()}"
            found.append(_counted(f"{name} Hits", "sector", hits))
            found.append(_counted(f"{name} Misses", "sector", looked_up - hits))
            found.append(_counted(f"{name} Hit Rate", "%", 100 * hits / looked_up))
    return found


def _counted(name: str, unit: str, value: Value, counter: str | None = None) -> Metric:
    return Metric(name, unit, value, "counted", metric_of(counter) if counter else None)


def _dims(dims: Dim3) -> str:
    return f"({dims[0]}, {dims[1]}, {dims[2]})"
