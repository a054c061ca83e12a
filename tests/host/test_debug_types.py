"""Types of parameters that only the debug information in a PTX text has."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import warploom as wl
from warploom.host.programs.debug_types import debug_parameters

SOURCE = """
struct Pair { int a, b; };
typedef unsigned int word;
extern "C" __global__ void k(float *x, const double *const y, word n, Pair p, void **q)
{ x[0] = y[n] + p.a; }
extern "C" __global__ void other(unsigned char c, long long *out) { *out = c; }
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return wl.Device("a100").compile(SOURCE, options=["-G"]).ptx


def test_parameters_have_the_types_and_names_of_the_source(ptx: str) -> None:
    wanted = [
        *(("float *", "x"), ("double *", "y"), ("unsigned int", "n"), ("Pair", "p")),
        ("void * *", "q"),
    ]
    assert debug_parameters(ptx, "k") == wanted
    assert debug_parameters(ptx, "other") == [("unsigned char", "c"), ("long long *", "out")]
    assert debug_parameters(ptx, "none") is None


def test_a_text_without_debug_information_has_no_types() -> None:
    plain = wl.Device("a100").compile(SOURCE).ptx
    assert debug_parameters(plain, "k") is None


def test_a_buffer_of_another_type_is_refused_by_the_parameter(ptx: str) -> None:
    gpu = wl.Device("a100")
    kernel = gpu.compile(ptx, "ptx")["other"][1, 1]
    out = gpu.zeros(1, np.int64)
    kernel(7, out)
    assert out.copy_to_host()[0] == 7
    wrong = gpu.zeros(1, np.float64)
    with pytest.raises(wl.LaunchError, match=r"long long \*out"):
        kernel(7, wrong)
    kernel(7, wrong, strict=False)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_debug_information_is_not_read(ptx: str, seed: int) -> None:
    drawn = random.Random(seed)
    places = [found.span(1) for found in re.finditer(r"\.b(?:8|32) (\d+)$", ptx, re.MULTILINE)]
    damaged = ptx
    for start, stop in sorted(drawn.sample(places, 5), reverse=True):
        damaged = damaged[:start] + str(drawn.choice([0, 1, 127, 255])) + damaged[stop:]
    found = debug_parameters(damaged, "k")
    assert found is None or all(len(each) == 2 for each in found)
