"""What the page and the server tell each other, beside traces (`observe.trace`).

`tools/page_types.py` makes the page's TypeScript types of these.
"""

from __future__ import annotations

import msgspec

AUTOMATIC = "automatic"
"""The engine that is chosen by the size of a launch."""


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that the page asks for; fields mean what the options of `warploom run` do.

    `engine` is AUTOMATIC, "reference" (everything is recorded) or "compiled" (fast; registers are
    not). `trace_warps` and `trace_steps` bound the recording; `trace_blocks` are the blocks to
    record, the first that run where there are none. `timed`: model the time, too, with `scheduler`
    (the device's own if None), and show what the warps of SM `sm` did.
    """

    name: str
    source: str
    kernel: str = ""
    grid: str = "1"
    block: str = "32"
    shared: int = 0
    args: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    device: str = "h100"
    engine: str = AUTOMATIC
    schedule: str = "converge"
    seed: int = 0
    l1: bool | None = None
    bank_bytes: int | None = None
    max_instructions: int | None = None
    cooperative: bool = False
    trace_warps: int = 64
    trace_steps: int = 100_000
    trace_blocks: tuple[int, ...] = ()
    timed: bool = False
    scheduler: str | None = None
    sm: int = 0


class SourceError(msgspec.Struct, frozen=True):
    """A message of the compiler, and the line that it is about."""

    line: int
    message: str


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no trace: `kind` is "compile", "launch", "time", "memory", "stopped",
    "busy" or "usage"."""

    kind: str
    message: str
    errors: tuple[SourceError, ...] = ()


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a trace: of warp `warp` of block `block`, the `nth` (from 1) at which something
    holds; negative numbers count from the end.

    What is given must hold: its source line has the text `line` in it; its PTX, behind a guard,
    begins with `ptx`; an `event` of that name (divergence, reconvergence, barrier, conflict,
    uncoalesced, fault) is there.
    """

    block: int = 0
    warp: int = 0
    line: str = ""
    ptx: str = ""
    event: str = ""
    nth: int = 1


class Caption(msgspec.Struct, frozen=True, kw_only=True):
    """What a lesson says at a step; `look` names the view that shows it."""

    at: Anchor
    text: str
    look: str = ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something to predict before the answer is shown; `answer` is an index into `choices`."""

    ask: str
    choices: tuple[str, ...]
    answer: int
    because: str


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """What the run that a lesson compares with has different."""

    label: str
    kernel: str | None = None
    device: str | None = None
    schedule: str | None = None
    seed: int | None = None
    block: str | None = None
    grid: str | None = None


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """A small kernel and what to see in it."""

    id: str
    title: str
    summary: str
    label: str
    request: LaunchRequest
    captions: tuple[Caption, ...]
    question: Question
    versus: Variant | None = None


class LessonHead(msgspec.Struct, frozen=True):
    """A lesson in a list."""

    id: str
    title: str
    summary: str


class DeviceChoice(msgspec.Struct, frozen=True):
    """A device that the page can choose."""

    name: str
    title: str
    cc: str


class Show(msgspec.Struct, frozen=True, kw_only=True):
    """What a page opens with. `live`: a server is there that runs kernels. `traces` is how many
    there are to begin with: one, or two to compare; `labels` are what they are called."""

    title: str
    live: bool
    traces: int
    labels: tuple[str, ...] = ()
    request: LaunchRequest | None = None
    versus: LaunchRequest | None = None
    lesson: Lesson | None = None
    lessons: tuple[LessonHead, ...] = ()
    devices: tuple[DeviceChoice, ...] = ()
    schedules: tuple[str, ...] = ()
