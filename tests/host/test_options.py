"""Options of calls: a name that does not exist, a value of another type or out of range is an
error that names the option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
import pytest

import warploom as wl
from warploom.core.options import checked
from warploom.core.values import Integer, OneOf

library: Any = wl
"""The library without its types: the calls below are wrong on purpose."""

KERNEL = """.version 8.0
.target sm_75
.address_size 64
.entry k(.param .u64 p) { ret; }
"""


@pytest.fixture(scope="module")
def gpu() -> wl.Device:
    return wl.Device()


@pytest.fixture(scope="module")
def kernel(gpu: wl.Device) -> wl.Kernel:
    return gpu.compile(KERNEL, "ptx")["k"]


@pytest.mark.parametrize(
    ("options", "kind", "named"),
    [
        ({"max_instruction": 5}, TypeError, "'max_instruction'.*'max_instructions'"),
        ({"max_instructions": "5"}, TypeError, "max_instructions.*'5'"),
        ({"max_instructions": float("nan")}, TypeError, "max_instructions.*nan"),
        ({"max_instructions": -1}, ValueError, "max_instructions.*-1"),
        ({"max_instructions": 2**63}, ValueError, "max_instructions"),
        ({"max_instructions": [1]}, TypeError, "max_instructions"),
        ({"max_instructions": True}, TypeError, "max_instructions"),
        ({"seed": [1]}, TypeError, "seed"),
        ({"seed": float("inf")}, TypeError, "seed"),
        ({"seed": 2**63}, ValueError, "seed"),
        ({"seed": "x"}, TypeError, "seed"),
        ({"cooperative": np.arange(3)}, TypeError, "cooperative"),
        ({"cooperative": 1}, TypeError, "cooperative"),
        ({"schedule": "adverserial"}, ValueError, "schedule.*'adversarial'"),
        ({"schedule": 1}, TypeError, "schedule"),
        ({"progress": 1}, TypeError, "progress"),
    ],
)
def test_a_launch_refuses_options_that_it_cannot_use(
    gpu: wl.Device, kernel: wl.Kernel, options: Any, kind: type[Exception], named: str
) -> None:
    argument = gpu.zeros(1, np.int32)
    launcher: Any = kernel[1, 1]
    for call in (launcher, launcher.trace) if "progress" not in options else (launcher,):
        with pytest.raises(kind, match=named) as caught:
            call(argument, **options)
        assert isinstance(caught.value, wl.OptionError)


def test_a_launch_takes_the_options_that_exist(gpu: wl.Device, kernel: wl.Kernel) -> None:
    launcher: Any = kernel[1, np.int64(32)]
    run = launcher(
        gpu.zeros(1, np.int32),
        max_instructions=np.int64(100),
        cooperative=np.True_,
        schedule="fair",
        seed=-1,
    )
    assert run.counters.warp_instructions == 1


@pytest.mark.parametrize(
    ("options", "kind", "named"),
    [
        ({"enginee": "reference"}, TypeError, "'enginee'.*'engine'"),
        ({"engine": "compield"}, ValueError, "engine.*'compiled'"),
        ({"engine": 1}, TypeError, "engine"),
        ({"workers": 0}, ValueError, "workers"),
        ({"workers": 1.0}, TypeError, "workers"),
        ({"warp_size": "64"}, TypeError, "warp_size"),
        ({"warp_size": 33}, wl.WarploomError, "warp_size"),
        ({"bank_bytes": 5}, wl.WarploomError, "banks"),
        ({"seed": None}, TypeError, "seed"),
        ({"schedule": None}, TypeError, "schedule"),
        ({"memory_bytes": 0}, ValueError, "memory_bytes"),
        ({"memory_bytes": 1e9}, TypeError, "memory_bytes"),
        ({"stack_bytes": -1}, ValueError, "stack_bytes"),
        ({"output": "text"}, TypeError, "output"),
        ({"record": 0}, TypeError, "record"),
        ({"name": "h1000"}, ValueError, "h1000.*h100"),
        ({"cc": 9.0}, TypeError, "cc"),
    ],
)
def test_a_device_refuses_options_that_it_cannot_use(
    options: Any, kind: type[Exception], named: str
) -> None:
    with pytest.raises(kind, match=named):
        wl.Device(**options)


@pytest.mark.parametrize("make", ["zeros", "empty"])
@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((-2, -3), ValueError),
        (-1, ValueError),
        ("x", TypeError),
        (None, TypeError),
        (1.5, TypeError),
        (float("nan"), TypeError),
        ((2, "3"), TypeError),
        (True, TypeError),
        (2**60, ValueError),
        ((2**40, 2**40), wl.LaunchError),  # more than the device has
    ],
)
def test_buffers_have_shapes_of_integers(
    gpu: wl.Device, make: str, shape: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        getattr(gpu, make)(shape, np.int8)
    assert isinstance(caught.value, wl.WarploomError)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("flot32", TypeError), (None, TypeError), (3, TypeError), (object, ValueError)],
)
def test_buffers_have_types_of_numbers(gpu: wl.Device, dtype: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="dtype"):
        gpu.zeros(3, dtype)


def test_buffers_take_numpy_integers_lists_and_names_of_types(gpu: wl.Device) -> None:
    assert gpu.zeros([np.int64(2), 3], "f4").copy_to_host().shape == (2, 3)
    assert gpu.empty(np.uint8(4), "int16").nbytes == 8


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda gpu, k: gpu.zeros(3, dtyp=np.int32), "'dtyp'.*'dtype'"),
        (lambda gpu, k: gpu.to_device([1], nam="x"), "'nam'.*'name'"),
        (lambda gpu, k: gpu.stream(priority=1), "'priority'"),
        (lambda gpu, k: gpu.texture([1.0], filtr="linear"), "'filtr'.*'filter'"),
        (lambda gpu, k: gpu.compile(KERNEL, options="-DN=3"), "options.*sequence"),
        (lambda gpu, k: k[1, 1].trace(0, limit=3), "'limit'.*'limits'"),
        (lambda gpu, k: k[1, 1].trace(0, limits=3), "limits.*TraceLimits"),
        (lambda gpu, k: library.TraceLimits(step=3), "'step'.*'steps'"),
        (lambda gpu, k: k[1, 1](0).time(shedular="gto"), "'shedular'.*'scheduler'"),
        (lambda gpu, k: k[1, 1](0).time(sample=1.5), "sample"),
        (lambda gpu, k: library.explore(k[1, 1], 0, run=3), "'run'.*'runs'"),
        (lambda gpu, k: library.explore(k, 0), "launcher.*Launcher"),
        (lambda gpu, k: library.tune("a.cu", "k", {}, worker=3), "'worker'.*'workers'"),
        (lambda gpu, k: library.occupancy("h100", "256"), "block_size"),
        (lambda gpu, k: library.show(1), "traces"),
    ],
)
def test_other_calls_name_the_option_that_is_wrong(
    gpu: wl.Device, kernel: wl.Kernel, call: Callable[[Any, Any], object], named: str
) -> None:
    with pytest.raises(TypeError, match=named) as caught:
        call(gpu, kernel)
    assert isinstance(caught.value, wl.OptionError)


@pytest.mark.parametrize(
    "configuration",
    [(1.5, 1), ("x", 1), (1, None), ((1, 2, 3, 4), 1), (1, 1, 5), (1, 1, 0, "x"), (1, 1, 0, -1)],
)
def test_a_launch_configuration_has_integers(kernel: wl.Kernel, configuration: Any) -> None:
    with pytest.raises(ValueError, match=r"launch|stream|shared") as caught:
        kernel[configuration]
    assert isinstance(caught.value, wl.LaunchError)


@pytest.mark.parametrize("configuration", [(-1, 1), (2**70, 1), (1, 0), (1, 1, 0, 2**70)])
def test_a_launch_configuration_fits_the_device(kernel: wl.Kernel, configuration: Any) -> None:
    with pytest.raises(wl.LaunchError):
        kernel[configuration](0)


# ---- the mechanism ------------------------------------------------------------------------------


class Extra(TypedDict, total=False):
    mode: Annotated[str, OneOf(("fast", "slow"))]


@checked("call(...)")
def call(
    first: Annotated[int, Integer(most=9)], *rest: int, **options: Unpack[Extra]
) -> tuple[Any, ...]:
    return first, rest, options


def test_types_are_those_of_the_signature() -> None:
    untyped: Any = call
    assert untyped(np.int8(3), np.uint16(4), mode="slow") == (3, (4,), {"mode": "slow"})
    with pytest.raises(wl.OptionValueError, match=r"call\(...\): first .* at most 9, not 10"):
        untyped(10)
    with pytest.raises(wl.OptionTypeError, match="rest takes an integer, not 'a'"):
        untyped(1, 2, "a")
    with pytest.raises(wl.OptionValueError, match=r"mode .* Did you mean 'fast'"):
        untyped(1, mode="fats")
    with pytest.raises(wl.OptionTypeError, match=r"no option 'colour'\. .* first, mode"):
        untyped(1, colour=3)
