"""The pytest plugin, in a pytest of its own, which finds it where the package is installed."""

from __future__ import annotations

import json

import pytest

from warploom.clients.environment import libraries_are_built
from warploom.llvm.disk_cache import cache_directory

pytest_plugins = ["pytester"]

TESTS = """
    import numpy as np
    import pytest
    import warploom as wl

    RACE = '''
    __global__ void race(int *out) { out[0] = blockIdx.x; }
    __global__ void sum(int *out) { atomicAdd(out, 1); }
    '''

    @pytest.mark.warploom(device="rtx-4090", schedules=4)
    def test_sum(gpu):
        assert gpu.name == "rtx-4090"
        out = gpu.zeros(1, np.int32)
        gpu.compile(RACE)["sum"][8, 32](out)
        assert out.copy_to_host()[0] == 256

    @pytest.mark.warploom(schedules=8)
    def test_race(gpu):
        out = gpu.zeros(1, np.int32)
        gpu.compile(RACE)["race"][8, 32](out)
        assert out.copy_to_host()[0] == 7

    def test_driver_and_program(warploom_run, tmp_path):
        numba = pytest.importorskip("numba_cuda")
        from numba import cuda

        @cuda.jit
        def fill(x):
            x[cuda.grid(1)] = 5

        x = np.zeros(64)
        fill[2, 32](x)
        assert x.tolist() == [5.0] * 64
        program = tmp_path / "program.py"
        program.write_text("from numba import cuda; print(cuda.get_current_device().name)")
        assert "A100" in str(warploom_run(program).stdout)
"""


CACHE = str(cache_directory())
"""Where compiled helpers are: pytester gives its own pytest another home."""


def test_orders_fixtures_and_the_summary(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", CACHE)
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built (no C compiler?)")
    pytester.makepyfile(TESTS)
    options = ("--warploom=a100", "--warploom-report=all.json")
    outcome = pytester.runpytest_subprocess(*options, "-p", "no:cacheprovider", "-W", "ignore")
    counts = outcome.parseoutcomes()
    # Four orders of the sum; of the race, the default order leaves block 7 last, others need not.
    assert counts["passed"] + counts["failed"] == 4 + 8 + 1
    assert 1 <= counts["failed"] <= 7
    outcome.stdout.fnmatch_lines(["*kernels on the software GPU*"])
    outcome.stdout.fnmatch_lines(["*sum, * launch* of 8x1x1 blocks of 32x1x1*"])
    outcome.stdout.fnmatch_lines(["*fill, 1 launch of 2x1x1 blocks of 32x1x1*"])
    outcome.stdout.no_fnmatch_line("*test_race?converge-0*FAILED*")
    names = [
        k["kernel"] for k in json.loads((pytester.path / "all.json").read_text("utf-8"))["kernels"]
    ]
    assert any("fill" in name for name in names)
    assert any("sum" in name for name in names)


def test_a_failed_assertion_about_costs_names_the_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every lane of a warp reads a sector of its own: 32 a request."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", CACHE)
    (pytester.path / "apart.cu").write_text(
        'extern "C" __global__ void apart(const float *x, float *y)\n'
        "{\n    y[threadIdx.x] = x[8 * threadIdx.x];\n}\n",
        "utf-8",
    )
    pytester.makepyfile("""
        import numpy as np
        import warploom as wl

        def test_apart(gpu):
            x, y = gpu.zeros(256, np.float32), gpu.zeros(32, np.float32)
            wl.testing.assert_coalesced(gpu.load("apart.cu")["apart"][1, 32](x, y))
    """)
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "ignore")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*apart.cu:3*32.00 sectors per load*"])


def test_without_the_option_nothing_changes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    outcome = pytester.runpytest_subprocess()
    outcome.assert_outcomes(passed=1)
    outcome.stdout.no_fnmatch_line("*software GPU*")


def test_a_file_behind_the_option_is_a_file(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", CACHE)
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built (no C compiler?)")
    pytester.makepyfile(
        test_one="def test_one(gpu): assert gpu.name == 'h100'",
        test_two="def test_two(): assert False",
    )
    options = ("-p", "no:cacheprovider", "-W", "ignore")
    pytester.runpytest_subprocess("--warploom", "test_one.py", *options).assert_outcomes(passed=1)
    outcome = pytester.runpytest_subprocess(*options, "--warploom", "test_one.py::test_one")
    outcome.assert_outcomes(passed=1)
    outcome = pytester.runpytest_subprocess("--warploom", "no-gpu")
    outcome.stderr.fnmatch_lines(["*--warploom no-gpu: no such file, and*"])
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR


FAULTS = """
    import numpy as np
    import pytest
    from numba import cuda

    @cuda.jit
    def fill(x, at):
        x[at] = 5

    def test_that_faults():
        x = cuda.device_array(4)
        fill[1, 1](x, 1 << 20)
        cuda.synchronize()

    def test_that_does_not():
        x = np.zeros(4)
        fill[1, 1](x, 2)
        assert x.tolist() == [0, 0, 5, 0]
"""


@pytest.mark.parametrize("settings", [(), ("-o", "python_files=*.py")])
def test_a_device_is_whole_again_in_the_next_test(
    settings: tuple[str, ...], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where pytest's settings have it import all files."""
    pytest.importorskip("numba_cuda")
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built")
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", CACHE)
    pytester.makepyfile(FAULTS)
    outcome = pytester.runpytest_subprocess("--warploom", "-p", "no:cacheprovider", *settings)
    outcome.assert_outcomes(failed=1, passed=1)
    outcome.stdout.fnmatch_lines(["*FAILED*test_that_faults*"])


def test_the_file_behind_the_option_for_tools_is_no_tool(pytester: pytest.Pytester) -> None:
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built")
    file = pytester.makepyfile("def test_nothing(): pass")
    given = ("--warploom", "--warploom-check", file.name)
    pytester.runpytest_subprocess(*given).assert_outcomes(passed=1)
    unknown = pytester.runpytest_subprocess("--warploom", "--warploom-check", "rase")
    assert "there is no tool 'rase'" in unknown.stderr.str()
