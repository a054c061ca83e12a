"""When works of streams run: worked out by hand from the rules of `timing.timeline.schedule`."""

import re

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.report.timeline_fills import fills_of
from warploom.report.timeline_page import WIDTH, timeline_page
from warploom.sanitize.stream_order import HOST, StreamOrder
from warploom.timing.timeline.residents import residents
from warploom.timing.timeline.schedule import DeviceLimits, schedule
from warploom.timing.timeline.work import Demand, Engine, TimelineWork

MODERN = DeviceLimits(resident_grids=128, copy_engines=2, one_queue=False)


class Issuing:
    """Issues works to streams, as a host does."""

    def __init__(self):
        self.order, self.works = StreamOrder(), []

    def kernel(self, stream, seconds, share, block=0.01, **uses):
        demand = Demand(seconds, (share,), min(share, block), uses)
        self._add("kernel", stream, Engine.SMS, demand)

    def copy(self, stream, engine, seconds):
        self._add("copy", stream, engine, Demand(seconds))

    def _add(self, name, stream, engine, demand):
        self.works.append(TimelineWork(name, self.order.issue(stream), engine, demand))

    def times(self, limits=MODERN):
        scheduled = schedule(self.works, limits)
        return [(round(work.begin, 6), round(work.end, 6)) for work in scheduled]


def test_kernels_of_one_stream_run_one_after_the_other():
    issuing = Issuing()
    issuing.kernel("a", 3, 0.1)
    issuing.kernel("a", 2, 0.1)
    assert issuing.times() == [(0, 3), (3, 5)]


def test_kernels_of_two_streams_overlap_if_both_fit():
    issuing = Issuing()
    issuing.kernel("a", 3, 0.5)
    issuing.kernel("b", 2, 0.5)
    assert issuing.times() == [(0, 3), (0, 2)]


def test_a_kernel_waits_for_slots_and_takes_those_that_are_left():
    """The second has half of its slots until the first ends, so has done a half of 4 seconds' work
    in 4 seconds: 2 of 4; the rest takes 2 seconds more."""
    issuing = Issuing()
    issuing.kernel("a", 4, 0.5)
    issuing.kernel("b", 4, 1.0)
    issuing.kernel("c", 1, 0.5)
    assert issuing.times() == [(0, 4), (0, 6), (6, 7)]


def test_block_slots_of_resident_kernels():
    """The second kernel has the half that the first leaves, then all."""
    issuing = Issuing()
    issuing.kernel("a", 4, 0.5)
    issuing.kernel("b", 4, 1.0)
    issuing.copy("c", Engine.TO_HOST, 1)
    first, second, copy = schedule(issuing.works, MODERN)
    assert first.slots == ((0, 0.5),)
    assert second.slots == ((0, 0.5), (4, 1.0))
    assert copy.slots == ()


def test_the_page_shows_streams_and_resident_kernels():
    """A second kernel has half of the slots until 4 of 6 seconds, so its column is half as high
    there and twice as high later."""
    issuing = Issuing()
    issuing.kernel("a", 4, 0.5)
    issuing.kernel("b<&>", 4, 1.0)
    page = timeline_page("H100", schedule(issuing.works, MODERN), 4)
    assert page.count(": 50% of the block slots") == 2
    assert page.count("kernel, stream 2: 100% of the block slots") == 1
    widths = [float(text) for text in re.findall(r'height="80.0" width="([0-9.]+)"', page)]
    assert widths == [pytest.approx(WIDTH * 4 / 6, abs=0.1)] * 2
    assert "6,000,000.0 us; without overlap 8,000,000.0 us" in page
    assert "stream 1" in page
    assert "stream 2" in page
    assert "There were no launches and no copies" in timeline_page("H100", [], 4)


def test_launches_of_several_streams_differ_in_the_picture():
    """Two kernels: the first has launches in three streams, so one color in three hatches."""
    issuing = Issuing()
    for name, stream in (("k", "a"), ("k", "b"), ("k", "c"), ("other", "a"), ("k", "a")):
        demand = Demand(1, (0.2,), 0.01)
        issuing.works.append(TimelineWork(name, issuing.order.issue(stream), Engine.SMS, demand))
    issuing.copy("a", Engine.TO_HOST, 1)
    *kernels, copy = fills_of(schedule(issuing.works, MODERN))
    assert len({fill.colour for fill in (*kernels, copy)}) == 3
    assert len({fill.colour for fill in (*kernels[:3], kernels[4])}) == 1
    assert len({fill.angle for fill in kernels[:3]}) == 3
    assert kernels[4] == kernels[0]
    assert copy.angle is None
    page = timeline_page("H100", schedule(issuing.works, MODERN), 4)
    for fill in kernels[:3]:
        assert f'fill="{fill.svg}"' in page
        assert fill.definition in page
    assert re.search(r'<text class="in-bar"[^>]*>stream 3</text>', page)


def test_blocks_of_resident_kernels_on_each_sm():
    """Four SMs that hold four blocks of a or two of b. a has 8 blocks, two on each SM, and b, with
    the other half, one on each. When a has ended, b gets a second block on each."""
    issuing = Issuing()
    issuing.kernel("a", 4, 0.5, 1 / 16)
    issuing.kernel("b", 4, 1.0, 1 / 8)
    first, second = residents(schedule(issuing.works, MODERN), 4)
    assert (first.begin, first.end) == (0, 4)
    assert {index: on.tolist() for index, on in first.blocks.items()} == {0: [2] * 4, 1: [1] * 4}
    assert {index: on.tolist() for index, on in second.blocks.items()} == {1: [2] * 4}
    assert first.without_sm == {0: 0, 1: 0}


def test_no_sm_has_more_blocks_than_fit():
    """Two SMs that hold two blocks of a or three of b: beside one of a, a half is left on each,
    which holds one of b (a third), though the shares of both SMs together would hold three."""
    issuing = Issuing()
    issuing.kernel("a", 4, 0.5, 1 / 4)
    issuing.kernel("b", 1, 0.5, 1 / 6)
    first, second = residents(schedule(issuing.works, MODERN), 2)
    assert {index: on.tolist() for index, on in first.blocks.items()} == {0: [1, 1], 1: [1, 1]}
    assert first.without_sm == {0: 0, 1: 1}
    assert {index: on.tolist() for index, on in second.blocks.items()} == {0: [1, 1]}


def test_the_last_wave_of_a_kernel_leaves_slots():
    """A kernel of one and a half waves, two seconds each half of its time; the next has half of the
    slots in the second."""
    issuing = Issuing()
    waves = Demand(4, (1.0, 0.5), 0.01)
    issuing._add("kernel", "a", Engine.SMS, waves)
    issuing.kernel("b", 1, 0.5)
    assert issuing.times() == [(0, 4), (2, 3)]


def test_kernels_that_ask_for_more_than_a_throughput_are_slowed_down():
    issuing = Issuing()
    issuing.kernel("a", 1, 0.25, DRAM=0.75)
    issuing.kernel("b", 1, 0.25, DRAM=0.75)
    assert issuing.times() == [(0, 1.5), (0, 1.5)]


def test_an_event_orders_streams():
    issuing = Issuing()
    issuing.kernel("a", 3, 0.1)
    event = issuing.order.recorded("a")
    issuing.kernel("a", 5, 0.1)
    issuing.order.wait("b", event)
    issuing.kernel("b", 1, 0.1)
    assert issuing.times() == [(0, 3), (3, 8), (3, 4)]


def test_the_host_waits_for_a_stream():
    issuing = Issuing()
    issuing.kernel("a", 3, 0.1)
    issuing.order.synchronize("a")
    issuing.kernel("b", 1, 0.1)
    assert issuing.times() == [(0, 3), (3, 4)]


@pytest.mark.parametrize(
    ("engines", "expected"),
    [
        # Two: one in each direction, both beside the kernel.
        (2, [(0, 2), (0, 3), (0, 4)]),
        # One for both directions.
        (1, [(0, 2), (2, 5), (0, 4)]),
        # None: nothing runs beside a copy.
        (0, [(0, 2), (2, 5), (5, 9)]),
    ],
)
def test_copies_run_on_the_copy_engines(engines, expected):
    issuing = Issuing()
    issuing.copy("a", Engine.TO_DEVICE, 2)
    issuing.copy("b", Engine.TO_HOST, 3)
    issuing.kernel("c", 4, 0.5)
    assert issuing.times(DeviceLimits(128, engines, one_queue=False)) == expected


def test_a_device_runs_only_so_many_kernels_at_a_time():
    issuing = Issuing()
    for stream in range(5):
        issuing.kernel(stream, 1, 0.1)
    limits = DeviceLimits(2, 2, one_queue=False)
    assert issuing.times(limits) == [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3)]


def test_one_queue_makes_kernels_wait_for_those_issued_before():
    """Depth first on compute capability 2.x (the CUDA C Programming Guide's example of false
    dependences): b waits behind a's second kernel; with queues of their own it does not."""
    issuing = Issuing()
    issuing.kernel("a", 1, 0.1)
    issuing.kernel("a", 1, 0.1)
    issuing.kernel("b", 1, 0.1)
    assert issuing.times() == [(0, 1), (1, 2), (0, 1)]
    assert issuing.times(DeviceLimits(16, 2, one_queue=True)) == [(0, 1), (1, 2), (1, 2)]


SOURCE = """
extern "C" __global__ void triad(float *a, const float *b, const float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = b[i] + 2 * c[i];
}
"""


def test_small_launches_of_several_streams_overlap_on_a_device():
    """Three times 8 blocks fit on an H100; one stream takes as long as the three one by
    one."""
    gpu = wl.Device("h100", record=True)
    triad = gpu.compile(SOURCE)["triad"]
    n = 2048
    a, b, c = (gpu.zeros(n, np.float32) for _ in range(3))

    def timeline_of(streams):
        with gpu.timeline() as timeline:
            for stream in streams:
                triad[n // 256, 256, stream](a, b, c, n)
            for stream in streams:
                stream.synchronize()
        return timeline

    first = gpu.stream()
    one = timeline_of([first] * 3)
    alone = one.seconds / 3
    assert one.seconds == pytest.approx(one.seconds_one_by_one)
    three = timeline_of([gpu.stream() for _ in range(3)])
    assert three.seconds == pytest.approx(alone, rel=0.05)
    assert three.seconds_one_by_one == pytest.approx(one.seconds, rel=0.01)


def test_copies_of_arguments_and_buffers_are_in_the_timeline():
    gpu = wl.Device("v100", record=True)
    triad = gpu.compile(SOURCE)["triad"]
    n = 1024
    with gpu.timeline() as timeline:
        b = gpu.to_device(np.ones(n, np.float32))
        written = np.zeros(n, np.float32)
        triad[4, 256](written, b, b, n)
        assert len(timeline.works) == 4  # more are added after it was read
        b.copy_to_host()
    shown = [(work.work.engine, work.work.issued.stream) for work in timeline.works]
    assert shown == [
        (Engine.TO_DEVICE, HOST),
        (Engine.TO_DEVICE, HOST),
        (Engine.SMS, HOST),
        (Engine.TO_HOST, HOST),
        (Engine.TO_HOST, HOST),
    ]
    # 4,096 bytes at 12 GB/s (0.34 us) beyond 10 us.
    first = timeline.works[0]
    assert first.end - first.begin == pytest.approx(10.34e-6, rel=0.001)
    lines = timeline.report().splitlines()
    assert lines[0].startswith("Timeline on Tesla V100")
    assert len(lines) == 3 + 5
    assert timeline.seconds == timeline.works[-1].end
    triad[4, 256](written, b, b, n)  # after the timeline was taken
    assert len(timeline.works) == 5


def test_further_launches_of_a_shape_get_the_mean_of_the_first() -> None:
    """The last four of twelve are beyond the first eight, which differ in their paths: more blocks
    have something to do in each. The one after them has another shape."""
    gpu = wl.Device("h100")
    triad = gpu.compile(SOURCE)["triad"]
    n = 2048
    a, b, c = (gpu.zeros(n, np.float32) for _ in range(3))
    with gpu.timeline() as timeline:
        for launch in range(12):
            triad[n // 256, 256](a, b, c, 256 * launch if launch < 8 else 7)
        triad[1, 256](a, b, c, n)
    works = [scheduled.work for scheduled in timeline.works]
    replayed = [work.demand.seconds for work in works[:8]]
    assert len(set(replayed)) > 1
    assert [work.demand.seconds for work in works[8:12]] == [pytest.approx(np.mean(replayed))] * 4
    assert works[9].title == "triad, mean of the first 8"
    assert works[12].title == "triad"
    assert works[12].demand.block_share == works[0].demand.block_share
    assert works[12].demand.shares[0] == works[0].demand.block_share  # one block


def test_equal_launches_are_replayed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten launches over arrays of one size are recorded until two are equal; one over fewer
    elements is another launch."""
    replays: list[int] = []
    time = wl.Run.time
    monkeypatch.setattr(wl.Run, "time", lambda run: (replays.append(0), time(run))[1])
    gpu = wl.Device("h100")
    triad = gpu.compile(SOURCE)["triad"]
    n, parts = 2048, 10
    runs = []
    a, b, c = (gpu.zeros(n, np.float32) for _ in range(3))
    with gpu.timeline() as timeline:
        for _ in range(parts):
            a, b, c = (gpu.zeros(n, np.float32) for _ in range(3))
            runs.append(triad[n // 256, 256](a, b, c, n))
        for _ in range(2):
            triad[n // 256, 256](a, b, c, n - 256)
    works = [one.work for one in timeline.works if one.work.engine is Engine.SMS]
    assert len(replays) == 2
    assert [run.record is not None for run in runs] == [True] * 2 + [False] * 8
    assert works[0].title == "triad"
    assert {work.title for work in works[1:parts]} == {"triad, same as an equal launch"}
    assert len({work.demand.seconds for work in works[:parts]}) == 1
    assert works[parts].title == "triad"
    assert works[parts + 1].demand == works[parts].demand


def test_launches_whose_data_lead_to_other_paths_are_not_equal() -> None:
    """The arguments are the same buffer each time; what is in it decides how often a thread loops.
    The fourth launch would be as the first two by its arguments, but is counted, and the fifth is
    recorded."""
    gpu = wl.Device("h100")
    loops = gpu.compile(
        "__global__ void loops(volatile int *n) { for (int i = *n; i > 0; i--) n[1] = i; }"
    )["loops"]
    n = gpu.zeros(2, np.int32)
    with gpu.timeline() as timeline:
        for count in (1, 1, 1, 10_000, 10_000):
            n.view[0] = count
            loops[1, 1](n)
    works = [one.work for one in timeline.works if one.work.engine is Engine.SMS]
    equal = "same as an equal launch"
    assert [work.basis for work in works] == ["", equal, equal, "mean of the first 3", ""]
    assert works[4].demand.seconds > 3 * works[0].demand.seconds


@pytest.mark.parametrize("options", [{"engine": "reference"}, {"sanitize": ("race",)}])
def test_a_timeline_needs_the_engine_that_records(options):
    gpu = wl.Device("v100", **options)
    with pytest.raises(WarploomError, match="requires the compiled engine"), gpu.timeline():
        pass
