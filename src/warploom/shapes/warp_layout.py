"""Names the layouts of threads in warps, on which the vector shapes of thread indices depend.

    block 64 x 2    LINE                a warp is 32 threads along x
    block 48 x 2    ROWS                two runs of 16 threads; %tid.x: affine<1>x16
    block 16 x 4    WHOLE_ROWS          the same, both from %tid.x 0 on: affine<1>x16r2
    block 12 x 5    ROWS_OF_4           eight runs of 4 threads
    block 5 x 7     ANY                 no runs: %tid.x is varying

Code is compiled for one layout, which the size of a launch's blocks decides (`warp_layout_of`).
"""

from __future__ import annotations

from enum import Enum

from warploom.isa.special import SPECIAL_REGISTERS, Varies
from warploom.shapes.vector_shape import LANES, UNIFORM, VARYING, VectorShape


class WarpLayout(Enum):
    """Names how the threads of a block lie in its warps (CUDA C++ Programming Guide, "Thread
    Hierarchy").

    LINE: a warp is 32 threads along x. ROWS, ROWS_OF_8, ROWS_OF_4, ROWS_OF_2: a warp consists of
    runs of 16, 8, 4 or 2 threads along x. The width of blocks is a multiple of a run's length.
    WHOLE_ROWS, WHOLE_ROWS_OF_8, WHOLE_ROWS_OF_4, WHOLE_ROWS_OF_2: it is a run's length, so that
    `%tid.x` is the same in all runs. ONE_LINE: all threads lie along x, in blocks of any other
    width. ANY: neighboring lanes may differ in y or z anywhere.

    The others describe a whole thread block, across its warps. BLOCK: no layout is known, so that
    registers are uniform in the thread block or varying. ALONG_X: all threads lie along x. IN_ROWS:
    16 threads along x, the others along y; shapes are those of the first two rows, and continue in
    the following rows by the same difference.
    """

    LINE = "line"
    ONE_LINE = "one line"
    ROWS = "rows"
    ROWS_OF_8 = "rows of 8"
    ROWS_OF_4 = "rows of 4"
    ROWS_OF_2 = "rows of 2"
    WHOLE_ROWS = "whole rows"
    WHOLE_ROWS_OF_8 = "whole rows of 8"
    WHOLE_ROWS_OF_4 = "whole rows of 4"
    WHOLE_ROWS_OF_2 = "whole rows of 2"
    ANY = "any"
    BLOCK = "block"
    ALONG_X = "along x"
    IN_ROWS = "in rows"


BLOCK_WIDE = frozenset({WarpLayout.BLOCK, WarpLayout.ALONG_X, WarpLayout.IN_ROWS})
"""Layouts that describe a whole thread block."""

RUNS = {
    WarpLayout.LINE: 1,
    WarpLayout.ONE_LINE: 1,
    WarpLayout.ROWS: 2,
    WarpLayout.ROWS_OF_8: 4,
    WarpLayout.ROWS_OF_4: 8,
    WarpLayout.ROWS_OF_2: 16,
    WarpLayout.WHOLE_ROWS: 2,
    WarpLayout.WHOLE_ROWS_OF_8: 4,
    WarpLayout.WHOLE_ROWS_OF_4: 8,
    WarpLayout.WHOLE_ROWS_OF_2: 16,
    WarpLayout.ANY: LANES,
}
"""Maps layouts of warps to the number of their lane runs, at most; the fewest first."""

WHOLE_ROWS = {
    16: WarpLayout.WHOLE_ROWS,
    8: WarpLayout.WHOLE_ROWS_OF_8,
    4: WarpLayout.WHOLE_ROWS_OF_4,
    2: WarpLayout.WHOLE_ROWS_OF_2,
}
"""Maps the widths of blocks whose rows are runs of a warp to the layouts of warps."""

BLOCK_LAYOUT = {
    WarpLayout.LINE: WarpLayout.ALONG_X,
    WarpLayout.ONE_LINE: WarpLayout.ALONG_X,
    WarpLayout.WHOLE_ROWS: WarpLayout.IN_ROWS,
}
"""Maps layouts of warps to the layout that a thread block of such warps may have; emitted code
checks that it has."""


def warp_layout_of(block: tuple[int, int, int]) -> WarpLayout:
    """Returns the layout of warps in a thread block of (x, y, z) threads: that of the longest runs
    (32, 16, 8, 4, 2 threads) of which x is a multiple, of whole rows if that is x, ANY if x is odd;
    ONE_LINE if all threads lie along x and x is no multiple of 32."""
    x, y, z = block
    if y * z == 1 and x % LANES:
        return WarpLayout.ONE_LINE
    if x in WHOLE_ROWS:
        return WHOLE_ROWS[x]
    return next(one for one, runs in RUNS.items() if x % (LANES // runs) == 0)


MOST_THREADS = {"x": 1024, "y": 1024, "z": 64}
"""The most threads of a block along each axis."""


def special_shape(name: str, warp_layout: WarpLayout) -> VectorShape:
    """Returns the shape of a special register: `%laneid` with stride 1, `%tid.x` with stride 1 in
    each run of the layout, equal in all runs of whole rows, `%tid.y` and `%tid.z` uniform in each
    run, others uniform or varying as the register is defined; clocks are varying. `%laneid`, `%tid`
    and `%ntid` have the bits that may be 1 in the first value of a run (`ones`). Of a whole thread
    block (BLOCK_WIDE), registers that differ between warps are varying, and thread indices but for
    those of ALONG_X and IN_ROWS."""
    special = SPECIAL_REGISTERS[name]
    if name == "%tid.x" and warp_layout is WarpLayout.ALONG_X:
        return VectorShape(1, 1)
    if name == "%tid.x" and warp_layout is WarpLayout.IN_ROWS:
        return VectorShape(1, 1, 0, repeats=2)
    if name == "%tid.y" and warp_layout is WarpLayout.IN_ROWS:
        return VectorShape(2)
    if warp_layout in BLOCK_WIDE:
        # Clocks are read by each warp at a time of its own.
        agreed = special.varies in (Varies.BLOCK, Varies.LAUNCH) and special.clock_bit is None
        return UNIFORM if agreed else VARYING
    if name == "%laneid":
        # `ones` is 0: the first lane of the only run has the value 0.
        return VectorShape(1, 1, 0)
    width, axis = RUNS[warp_layout], name[-1]
    # Blocks in one line are not a multiple of a run's length wide, but one thread high.
    is_one_line = warp_layout is WarpLayout.ONE_LINE
    if warp_layout in WHOLE_ROWS.values() and axis == "x":
        if name == "%ntid.x":
            return VectorShape(1, 0, LANES // width)
        if name == "%tid.x":
            return VectorShape(1, 1, 0, repeats=width)
    if name.startswith("%ntid."):
        multiple = LANES // width if axis == "x" and not is_one_line else 1
        # A size is at most MOST_THREADS, so twice as many less 1 has all bits that it may have; x
        # is a multiple of a run's length, so the bits below that are 0.
        return VectorShape(1, 0, (2 * MOST_THREADS[axis] - 1) & -multiple)
    if name.startswith("%tid.") and width < LANES:
        if axis == "x":
            return VectorShape(width, 1, (MOST_THREADS[axis] - 1) & -(LANES // width))
        return VectorShape(width, 0, 0 if is_one_line else MOST_THREADS[axis] - 1)
    varies = SPECIAL_REGISTERS[name].varies is Varies.LANE or special.clock_bit is not None
    return VARYING if varies else UNIFORM
