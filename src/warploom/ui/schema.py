"""Defines the messages between the page and the server, beside traces (`observe.trace`).

`tools/page_types.py` makes the page's TypeScript types of these.
"""

from __future__ import annotations

import msgspec

AUTOMATIC = "automatic"
"""The engine that is chosen by the size of a launch."""


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A launch that the page requests. The fields correspond to the options of `warploom run`.

    `engine` is AUTOMATIC, "reference" (records everything) or "compiled" (faster, but does not
    record registers). `trace_warps` and `trace_steps` limit the recording. `trace_blocks` lists the
    blocks to record; if it is empty, the first blocks that run are recorded. If `timed` is true,
    the time is modelled, too, with `scheduler` (None: the device's own scheduler), and the page
    shows the warps of SM `sm`. `before` lists kernels of the program that run first, with the same
    grid, block and arguments. `sanitize` lists tools of the sanitizer that check the launch, too.
    `ptx` is the PTX that another compiler generated from `source`; `source` is then shown, but not
    compiled.
    """

    name: str
    source: str
    ptx: str = ""
    kernel: str = ""
    before: tuple[str, ...] = ()
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
    cluster_dims: str = ""
    trace_warps: int = 64
    trace_steps: int = 100_000
    trace_blocks: tuple[int, ...] = ()
    timed: bool = False
    sanitize: tuple[str, ...] = ()
    scheduler: str | None = None
    sm: int = 0


class SourceError(msgspec.Struct, frozen=True):
    """A message of the compiler, and the line that it is about."""

    line: int
    message: str


class Refusal(msgspec.Struct, frozen=True):
    """A reason for which there is no trace: `kind` is "compile", "launch", "time", "memory",
    "output", "stopped", "busy" or "usage"."""

    kind: str
    message: str
    errors: tuple[SourceError, ...] = ()


class Anchor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step of a trace: the `nth` step (counted from 1) of warp `warp` of block `block` that meets
    all given conditions. Negative values of `nth` count from the end.

    The conditions are: the step's source line contains the text `line`; its PTX, without a guard,
    begins with `ptx`; the `event` (divergence, reconvergence, barrier, conflict, uncoalesced or
    fault) occurs at the step.
    """

    block: int = 0
    warp: int = 0
    line: str = ""
    ptx: str = ""
    event: str = ""
    nth: int = 1


class Caption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text of a lesson, and the step `at` that the text explains. `look` is the view to show.

    `array` is the array that the Data view shows. `part` is the part of a view to scroll to:
    "layout" or "occupancy" in the Machine view, "memory" in the Numbers view. `beside` is the step
    in the other run of a comparison. If `beside` is missing, `at` also selects the step in the
    other run.
    """

    at: Anchor
    text: str
    look: str = ""
    array: str = ""
    part: str = ""
    beside: Anchor | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question to answer before the captions are shown; `answer` is an index of `choices`."""

    ask: str
    choices: tuple[str, ...]
    answer: int
    because: str


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to a lesson's launch, for the other run of a comparison or for the task. A field that
    is None does not change the launch."""

    label: str = ""
    ptx: str | None = None
    kernel: str | None = None
    before: tuple[str, ...] | None = None
    device: str | None = None
    schedule: str | None = None
    seed: int | None = None
    block: str | None = None
    grid: str | None = None
    args: tuple[str, ...] | None = None
    max_instructions: int | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A requirement of a task, with the text `label`. One of the following fields selects what is
    measured, and `most` and `least` are the limits:

    `results`: names of buffers, whose contents must be those that the task's solution writes.
    `counter`: a counter of the run, divided by the counter `per` if `per` is given.
    `instruction`: the beginning of PTX instructions, whose executions by warps are counted.
    `findings`: tools of the sanitizer, which must find nothing.
    `occupancy`: the fraction of an SM's warps that can be resident.
    `cycles`: modelled cycles, as a fraction of the cycles of the kernel that the task begins with.
    """

    label: str
    results: tuple[str, ...] = ()
    counter: str = ""
    per: str = ""
    instruction: str = ""
    findings: tuple[str, ...] = ()
    occupancy: bool = False
    cycles: bool = False
    most: float | None = None
    least: float | None = None


class MeasuredKernel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A launch with which designs are measured, of a kernel in a file in `examples/`. The other
    fields are those of a LaunchRequest."""

    file: str
    kernel: str
    grid: str
    block: str
    args: tuple[str, ...]
    shared: int = 0


class Design(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a multiprocessor that the learner writes, as a function in Python: `part` is
    "scheduler", "prefetcher" or "coalescer". The design is measured with `kernels` on `device`, and
    compared with the known designs (`ui.designs`)."""

    part: str
    device: str
    kernels: tuple[MeasuredKernel, ...]


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kernel that the learner changes, and the checks that the changed kernel must pass.

    `source` is the kernel with which the learner begins (empty: the lesson's own kernel). `launch`
    changes the lesson's launch. The results must also be correct in each launch of `also`. In a
    task with a `design`, `source` and `solution` are Python functions, and there are no checks.
    """

    ask: str
    solution: str
    checks: tuple[Check, ...] = ()
    hints: tuple[str, ...] = ()
    source: str = ""
    launch: Variant = Variant()
    also: tuple[Variant, ...] = ()
    design: Design | None = None


class Judged(msgspec.Struct, frozen=True):
    """The result of one requirement: `measured` is what the kernel showed, in words."""

    label: str
    passed: bool
    measured: str


class Score(msgspec.Struct, frozen=True):
    """The costs of a design on each kernel, and its score: their geometric mean relative to the
    costs of the first design that it is compared with; less is better."""

    name: str
    costs: tuple[int, ...]
    score: float


class Ranking(msgspec.Struct, frozen=True):
    """The scores of designs on some kernels, the best first; `unit` is that of the costs, `mine`
    the number of the learner's."""

    kernels: tuple[str, ...]
    unit: str
    scores: tuple[Score, ...]
    mine: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a learner's kernel in a lesson's task. `error` is why it did not run, if it did
    not; `errors` are the compiler's messages. A design has a `ranking`."""

    lesson: str
    passed: bool
    checks: tuple[Judged, ...] = ()
    error: str = ""
    errors: tuple[SourceError, ...] = ()
    ranking: Ranking | None = None


class CheckRequest(msgspec.Struct, frozen=True):
    """A learner's kernel, to be held against the task of the lesson with that id."""

    lesson: str
    source: str


class ProgressNote(msgspec.Struct, frozen=True):
    """A lesson that was read to its end."""

    lesson: str


class Lesson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A small kernel: a question, captions that lead through its steps, a recap, a task. `next`
    is the lesson after it, empty for the last. `aim` is what the learner can do afterwards, `needs`
    are the lessons to take before."""

    id: str
    title: str
    summary: str
    label: str
    request: LaunchRequest
    captions: tuple[Caption, ...]
    question: Question
    recap: str
    task: Task | None = None
    versus: Variant | None = None
    next: str = ""
    aim: str = ""
    needs: tuple[str, ...] = ()


class Assignment(msgspec.Struct, frozen=True):
    """A lesson, and a kernel to be held against its task; `name` is its file, empty for none."""

    lesson: Lesson
    source: str
    name: str = ""


class ValueRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole numbers that a value can be: `least`, and further ones at distances of `step`, up
    to `most`. `label` names the number if a value has several."""

    least: int
    most: int
    step: int = 1
    label: str = ""


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A slider, or buttons where `buttons` is set, over the values of one parameter of a launch.
    `values` are recorded beforehand, and `start` is the number of the value that the control begins
    with. Where a server runs launches, a value can be any number of its range; a value of several
    numbers, separated by commas, has a range for each. Without ranges there are only `values`."""

    name: str
    label: str
    values: tuple[str, ...]
    start: int = 0
    buttons: bool = False
    ranges: tuple[ValueRange, ...] = ()


class Explorable(msgspec.Struct, frozen=True, kw_only=True):
    """A page to play with: a text, and controls whose values each have a launch that was recorded
    beforehand. Launches are in the order of the controls' values, the last control's fastest. `at`
    and `look` say what is shown of each; `figures` say what was counted there, and `curve` is one
    of these numbers, called `curve_label`. `live`: a server runs the launches of other values."""

    id: str
    title: str
    text: tuple[str, ...]
    controls: tuple[Control, ...]
    at: Anchor
    look: str
    figures: tuple[str, ...]
    curve: tuple[float, ...]
    curve_label: str
    live: bool = False


class ExploreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for the launch of an explorable with a value for each of its controls."""

    explorable: str
    values: tuple[str, ...]


class Explored(msgspec.Struct, frozen=True):
    """A launch of an explorable: its figure, its number in the curve, and the bytes of its
    trace."""

    figure: str
    curve: float
    trace: bytes


WHOLE, CUT, ALL = "whole", "cut", "all"
"""What plays when a page opens: the lesson, its cut of at most 60 seconds, or the lesson and those
after it."""


class LessonHead(msgspec.Struct, frozen=True):
    """A lesson in the syllabus; `part` is the part of it."""

    id: str
    title: str
    summary: str
    part: str
    has_task: bool
    aim: str = ""
    needs: tuple[str, ...] = ()


class Stop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text of an explainer and the step of trace number `trace` that it is about. `figure` is
    what was counted there, `look` the view that shows it."""

    topic: str
    text: str
    figure: str
    at: Anchor
    trace: int = 0
    look: str = ""


class Explainer(msgspec.Struct, frozen=True, kw_only=True):
    """A short film through several launches; `names` are those of their lessons, by trace."""

    title: str
    stops: tuple[Stop, ...]
    names: tuple[str, ...]


Change = tuple[int, int, tuple[int, ...]]
"""The first line of a text that is replaced, the line after the last, and the numbers of the lines
that stand there instead."""


class EditableNumber(msgspec.Struct, frozen=True):
    """A number in a source, at offsets `start` to `end` without its suffix. `values` has the values
    that it can be changed to, as texts, each with the number of the changes that makes of PTX."""

    start: int
    end: int
    values: dict[str, int]


class CompiledKernel(msgspec.Struct, frozen=True):
    """The PTX of a source for a device, as numbers of `lines`, for a page without a compiler.
    `changes` are what other values of the source's `numbers` make of it."""

    device: str
    source: str
    lines: tuple[str, ...]
    ptx: tuple[int, ...]
    changes: tuple[tuple[Change, ...], ...] = ()
    numbers: tuple[EditableNumber, ...] = ()


class DeviceChoice(msgspec.Struct, frozen=True):
    """A device that the page can choose."""

    name: str
    title: str
    cc: str


class Show(msgspec.Struct, frozen=True, kw_only=True):
    """The content that a page opens with. `live`: a server is there that runs kernels. `traces` is
    how many there are to begin with: one, or two to compare; `labels` are what they are called.
    `launches` names the launches of a program whose traces can be chosen, by number, if several.
    `progress` has "read" or "done" for the lessons that the user has been through. `watch` says
    what plays when the page opens: WHOLE, CUT, ALL, or nothing if empty.
    An `explainer` has a trace for each of its `names`. `place` is where the page opens, as its URL
    says it behind `#`, unless the URL says otherwise. An `explorable` has a trace for each
    combination of its controls' values."""

    title: str
    live: bool
    traces: int
    labels: tuple[str, ...] = ()
    launches: tuple[str, ...] = ()
    request: LaunchRequest | None = None
    versus: LaunchRequest | None = None
    lesson: Lesson | None = None
    lessons: tuple[LessonHead, ...] = ()
    progress: dict[str, str] = {}
    devices: tuple[DeviceChoice, ...] = ()
    schedules: tuple[str, ...] = ()
    watch: str = ""
    explainer: Explainer | None = None
    place: str = ""
    explorable: Explorable | None = None
    machine: str = ""
