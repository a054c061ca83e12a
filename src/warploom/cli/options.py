"""The options that verbs share, each declared once; groups of them are dataclasses.

`@grouped` lets a verb take a group as one parameter: what typer sees has its fields instead.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeGuard, get_args, get_type_hints

import typer

from warploom.core.host_cores import usable_cores
from warploom.host.device import Device
from warploom.host.engines import ENGINES
from warploom.host.option_types import CACHES, CODES
from warploom.host.requests import Request
from warploom.machine.launch import ORDERS, POLICIES
from warploom.timing.layout import SCHEDULERS

ARGUMENT_HELP = (
    "One kernel argument. Give this option once for each parameter of the kernel, in order. An "
    "argument is a number (42, 2.5), a buffer TYPE[SHAPE]=CONTENT, or a buffer FILE.npy. TYPE is "
    "one of f16 f32 f64 i8..i64 u8..u64. CONTENT is zeros, ones, arange, a number, "
    "comma-separated numbers, random[:SEED], uniform:LOW:HIGH[:SEED], normal:MEAN:SD[:SEED], or "
    "a file (.npy .csv .txt .bin). {f32:1.5,i32:3} is a structure; local:BYTES is local memory "
    "for an OpenCL kernel. A buffer can have a name (y:f32[64]=ones); its default name is its "
    "position among the arguments."
)

File = Annotated[
    Path, typer.Argument(help="A CUDA C++ (.cu), HIP (.hip), OpenCL C (.cl) or PTX (.ptx) file.")
]
KernelName = Annotated[
    str | None, typer.Option(help="The kernel to launch; required if the file has several kernels.")
]
Grid = Annotated[str, typer.Option(metavar="X[xY[xZ]]", help="Blocks in the grid, such as 16x8.")]
Block = Annotated[str, typer.Option(metavar="X[xY[xZ]]", help="Threads per block, such as 16x8.")]
Shared = Annotated[int, typer.Option(min=0, help="Bytes of dynamic shared memory per block.")]
Arg = Annotated[list[str] | None, typer.Option(metavar="VALUE", help=ARGUMENT_HELP)]
Constant = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=CONTENT",
        help="Set a __constant__ or __device__ variable before the launch: NAME=TYPE[SHAPE]=CONTENT"
        " or NAME=FILE.npy.",
    ),
]
DeviceName = Annotated[
    str | None, typer.Option(help="A device listed by `warploom devices`. Default: h100.")
]
Engine = Annotated[
    str | None,
    typer.Option(
        help=f"Engine to use: {' or '.join(ENGINES)}. Default: compiled, or reference if the "
        "compiled engine cannot run the kernel."
    ),
]
WarpSize = Annotated[
    int, typer.Option(metavar="32|64", help="Lanes per warp: 32, or 64 for AMD wavefronts.")
]
CompilerOption = Annotated[
    list[str] | None, typer.Option(help="Compiler option, such as -DN=4; repeatable.")
]
Save = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FILE.npy", help="Write a buffer to a file after the launch."),
]
MaxInstructions = Annotated[
    int | None, typer.Option(min=0, help="Stop after this many warp instructions.")
]
StrictTarget = Annotated[
    bool,
    typer.Option(help="Reject PTX whose .target is newer than the device, as a CUDA driver does."),
]
Strict = Annotated[
    bool,
    typer.Option(
        help="Reject arguments whose types differ from the parameter types in the source."
    ),
]
Caches = Annotated[bool, typer.Option(help="Count hits and misses of the device's caches.")]
L1 = Annotated[
    bool | None,
    typer.Option(
        "--l1/--no-l1", help="Cache global loads in L1, on devices where L1 caching is optional."
    ),
]
BankBytes = Annotated[
    int | None,
    typer.Option(help="Width of a shared memory bank in bytes on compute capability 3.x: 4 or 8."),
]
Cooperative = Annotated[
    bool,
    typer.Option(
        help="Make the launch cooperative: all blocks are resident at once, or the launch is "
        "refused."
    ),
]
ClusterDims = Annotated[
    str,
    typer.Option(
        metavar="X[xY[xZ]]",
        help="Blocks per cluster, such as 2x1, if the kernel does not specify the cluster size.",
    ),
]
Schedule = Annotated[
    str,
    typer.Option(
        help=f"Policy for the order in which ready warps and lanes run: {', '.join(POLICIES)}."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed for the schedule.")]
Core = Annotated[
    str,
    typer.Option(
        metavar="FILE.wlcore",
        help="If a launch fails, save it to a file for `warploom debug FILE.wlcore`; %p in the "
        "name stands for the process ID.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Maximum number of host threads that run blocks in parallel. Warploom uses several "
        "threads only if they save time and do not change the results. Default: one per core.",
    ),
]
AnyOrder = Annotated[
    bool,
    typer.Option(
        "--any-order",
        help="Run blocks on several host threads even if accesses by different blocks may "
        "conflict. The results are legal, but may differ from run to run.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help=f"Policy that selects among ready warps: {', '.join(SCHEDULERS)}."),
]
Code = Annotated[
    str | None,
    typer.Option(
        help=f"Code to replay: {' or '.join(CODES)}. Default: machine if ptxas is installed, "
        "otherwise ptx."
    ),
]
CacheState = Annotated[
    str,
    typer.Option(
        help=f"State of the caches when the launch begins: {' or '.join(CACHES)} (as left by an "
        "identical previous launch)."
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(min=1, help="Simulate only this many waves of blocks, starting with the first."),
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, help="Number of processes that share the work. Default: one per core."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Address of a Dask scheduler whose workers share the work."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


@dataclass(frozen=True)
class LaunchOptions:
    """The options of what is launched, and where."""

    kernel: KernelName = None
    grid: Grid = "1"
    block: Block = "32"
    shared: Shared = 0
    arg: Arg = None
    device: DeviceName = None
    option: CompilerOption = None
    constant: Constant = None
    max_instructions: MaxInstructions = None
    cooperative: Cooperative = False
    cluster_dims: ClusterDims = ""

    def command_line(self, file: Path) -> str:
        """Returns the arguments of a command that launches the same."""
        words = [str(file)]
        for name in ("kernel", "grid", "block", "shared", "device", "cluster_dims"):
            value = getattr(self, name)
            if name in ("grid", "block") or value != getattr(LaunchOptions, name):
                words += [f"--{name.replace('_', '-')}", str(value)]
        for name, values in (
            ("--option", self.option),
            ("--constant", self.constant),
            ("--arg", self.arg),
        ):
            words += [word for value in values or () for word in (name, value)]
        return shlex.join([*words, *(["--cooperative"] if self.cooperative else [])])

    def request(self, file: Path, save: list[str] | None = None) -> Request:
        """Returns the launch, written down."""
        return Request(
            file=file,
            kernel=self.kernel,
            grid=self.grid,
            block=self.block,
            shared=self.shared,
            args=self.arg or (),
            options=self.option or (),
            saves=save or (),
            constants=self.constant or (),
            max_instructions=self.max_instructions,
            cooperative=self.cooperative,
            cluster_dims=self.cluster_dims,
        )


@dataclass(frozen=True)
class RuleOptions:
    """The options of what the architecture leaves open."""

    schedule: Schedule = "converge"
    seed: Seed = 0
    l1: L1 = None
    bank_bytes: BankBytes = None

    def given(self) -> dict[str, Any]:
        """Returns them as options of `Device`."""
        return {
            "l1_global": self.l1,
            "bank_bytes": self.bank_bytes,
            "schedule": self.schedule,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class SpreadOptions:
    """Options for sharing the work of many launches."""

    workers: Processes = None
    cluster: Cluster = None

    @property
    def processes(self) -> int:
        """Returns the number of processes that is asked for, else one a processor."""
        return self.workers or usable_cores()


@dataclass(frozen=True)
class DeviceOptions:
    """The options of a device, beside its name and its rules."""

    engine: Engine = None
    warp_size: WarpSize = 32
    workers: Workers = None
    any_order: AnyOrder = False
    strict_target: StrictTarget = False
    strict: Strict = True
    caches: Caches = False
    core: Core = ""

    def given(self, rules: RuleOptions) -> dict[str, Any]:
        """Returns the options of `Device` that are given."""
        return {
            "engine": self.engine,
            "warp_size": self.warp_size,
            "strict_target": self.strict_target,
            "strict": self.strict,
            "caches": self.caches,
            "order": ORDERS[self.any_order],
            "workers": self.workers,
            "core": self.core or None,
            **rules.given(),
        }

    def make(self, name: str | None, rules: RuleOptions) -> Device:
        """Returns the device."""
        return Device(name, **self.given(rules))


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """Returns a verb whose groups of options are given one by one, by name."""
    hints = get_type_hints(verb, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if _is_group(hint)}

    @wraps(verb)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            taken = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**taken)
        verb(**given)

    shown = list(_shown(inspect.signature(verb), hints))
    setattr(called, "__signature__", inspect.Signature(shown))  # noqa: B010
    called.__annotations__ = {one.name: one.annotation for one in shown}
    return called


def _is_group(hint: Any) -> TypeGuard[type[Any]]:
    return isinstance(hint, type) and is_dataclass(hint)


def _shown(signature: inspect.Signature, hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """Yields the parameters of a verb, those of a group in its place."""
    for name, parameter in signature.parameters.items():
        hint = hints[name]
        if not _is_group(hint):
            yield parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        types = get_type_hints(hint, include_extras=True)
        title = TITLES.get(hint.__name__)
        for field in fields(hint):
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=_titled(types[field.name], title),
            )


TITLES = {
    "LaunchOptions": "Launch",
    "CaptureOptions": "Launch of a program",
    "RuleOptions": "Unspecified behavior",
    "DeviceOptions": "Device",
    "SpreadOptions": "Work",
    "SearchOptions": "Search",
    "TraceOptions": "Recording",
    "PageOptions": "Page",
    "FindingOptions": "Findings",
    "ProgramOptions": "Program",
    "ModelOptions": "Time model",
    "BlockOptions": "Block",
    "SweepOptions": "Sweep",
    "Outputs": "Files",
    "OutputOptions": "Files",
    "AddedOptions": "Additional analysis",
    "ShownOptions": "Page",
}
"""The headings of the groups of options in a command's help."""


def _titled(hint: Any, title: str | None) -> Any:
    """Returns an option's annotation, with the heading under which help lists it."""
    declared, option = get_args(hint)
    shown = copy(option)
    shown.rich_help_panel = title
    return Annotated[declared, shown]
