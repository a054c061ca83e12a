"""What each caption of the lessons claims, as it must stand on the screen. By lesson, for each of
its captions in order; the figures are worked out by hand from the kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

FULL = 0xFFFFFFFF
EVEN, ODD = 0x55555555, 0xAAAAAAAA


@dataclass(frozen=True)
class Claim:
    """Says what must be on the screen: texts of the lower view, lanes by their state, how many
    lanes are active, the instruction's beginning, values in lanes, elements of arrays (by the name
    and the index of one), texts anywhere. `right` is the other side of a comparison.
    """

    view: tuple[str, ...] = ()
    lanes: dict[str, int] = field(default_factory=dict[str, int])
    right_lanes: dict[str, int] = field(default_factory=dict[str, int])
    right: tuple[str, ...] = ()
    active: int | None = None
    cells: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    right_cells: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    anywhere: tuple[str, ...] = ()
    tree: str = ""
    code: str = ""
    right_code: str = ""
    values: dict[int, str] = field(default_factory=dict[int, str])
    right_values: dict[int, str] = field(default_factory=dict[int, str])


SECTORS_4 = Claim(view=("4 transactions", "128 bytes requested, 128 moved: 100 %"))

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "saxpy": (
        Claim(lanes={"active": FULL}, anywhere=("⟨4, 256⟩",)),
        Claim(lanes={"active": FULL}, anywhere=("i 0 … 31", "n 1000")),
        SECTORS_4,
        Claim(
            lanes={"goes_on": 0xFF, "jumps": 0xFFFFFF00},
            anywhere=("continues at line 6", "jumps to the return"),
        ),
        Claim(view=("1 transaction", "32 bytes requested, 32 moved"), lanes={"active": 0xFF}),
        # y[999] = 2 * 999 + 1
        Claim(cells={("y", 999): "y[999] = 1999", ("y", 0): "y[0] = 1 "}),
    ),
    "layout": (
        Claim(lanes={"active": FULL}, view=("10 \u00d7 7 threads", "26 lanes of the last")),
        # Thread (2, 3) is number 32: its warp 1 has not written yet.
        Claim(cells={("warp", 31): "warp[3][1] = 0 ", ("warp", 32): "warp[3][2] = 0 "}),
        Claim(cells={("warp", 32): "warp[3][2] = 1 ", ("lane", 69): "lane[6][9] = 5 "}),
    ),
    "lockstep": (
        Claim(lanes={"active": FULL}),
        Claim(lanes={"jumps": 0x11111111, "goes_on": 0xEEEEEEEE}),
        Claim(lanes={"active": 0xEEEEEEEE, "gathering": 0x11111111}),
        Claim(lanes={"active": 0x88888888}),
        Claim(view=("4 transactions",), lanes={"active": FULL}),
        Claim(view=("of its lanes used",)),
    ),
    "branch": (
        Claim(
            lanes={"goes_on": ODD, "jumps": EVEN},
            anywhere=("continues at line 12", "jumps to line 8"),
        ),
        Claim(lanes={"active": ODD, "other_path": EVEN}),
        Claim(lanes={"active": EVEN, "gathering": ODD}),
        Claim(lanes={"active": FULL}, tree="no divergence"),
        Claim(view=("the instructions of a uniform warp",)),
    ),
    "switch": (
        Claim(lanes={"active": FULL}),
        Claim(lanes={"goes_on": 0xFFFF, "jumps": 0xFFFF0000}),
        Claim(active=1),
        Claim(active=1),
        # 32 cases of one lane each: 1 of 32 lanes is 3 %, and a little is uniform.
        Claim(view=("4 % of its lanes used",)),
    ),
    "between-warps": (
        Claim(lanes={"active": FULL}, tree="no divergence"),
        Claim(lanes={"active": FULL}, anywhere=("block 0, warp 1",)),
        Claim(view=("100 %", "1.00")),
    ),
    "simd": (
        Claim(lanes={"jumps": 0xFFFFF000}),
        Claim(lanes={"active": 0xFFF}),
        Claim(lanes={"active": FULL}),
        # Lane 1: 3 * (3 * (3 * (3 * 1 + 0) + 1) + 2) + 3 = 99.
        Claim(
            cells={
                ("simt", 1): "simt[1] = 99 ",
                ("simd", 1): "simd[1] = 99 ",
                ("simt", 31): "simt[31] = 31 ",
            }
        ),
    ),
    "coalescing": (
        SECTORS_4,
        Claim(
            view=("32 transactions", "128 bytes requested, 1024 moved: 13 %"),
            right=("8 transactions", "1024 moved"),
        ),
        Claim(view=("transactions",)),
        # 27 lines of 128 bytes.
        Claim(view=("1024 moved",), right=("27 transactions", "3456 moved")),
    ),
    "structures": (
        Claim(view=("16 transactions", "128 bytes requested, 512 moved: 25 %")),
        SECTORS_4,
        Claim(
            cells={
                ("points", 0): "read at step",
                ("points", 1): "not read yet",
                ("points", 4): "read at step",
            }
        ),
    ),
    "caches": (
        Claim(view=("32 transactions", "1024 moved: 13 %")),
        Claim(view=("32 transactions", "1024 moved: 13 %")),
        SECTORS_4,
        Claim(cells={("matrix", 1023): "matrix[31][31] = 1023"}),
    ),
    "constants": (
        Claim(view=("const load", "1 transaction")),
        Claim(view=("32 transactions",)),
        # table[5] + table[0 ^ 5] = 9 + 9
        Claim(cells={("out", 0): "out[0] = 18 "}),
    ),
    "banks": (
        Claim(view=("1 pass, no conflict",)),
        Claim(view=("32 passes, 31 of them for conflicts",)),
        Claim(view=("1 pass, no conflict",)),
        Claim(view=("1 pass, no conflict",)),
    ),
    "reduction": (
        Claim(lanes={"goes_on": EVEN, "jumps": ODD}, right_lanes={"goes_on": FULL}),
        Claim(lanes={"active": EVEN}, right_lanes={"active": FULL}),
        Claim(
            lanes={"active": FULL},
            right_lanes={"active": FULL},
            code="bar.sync",
            right_code="bar.sync",
        ),
        Claim(view=("Divergent branches",), right=("Divergent branches",)),
    ),
    "tiling": (
        # b[0][x] is 1; x of the tile's first element is 0 to 15.
        Claim(
            view=("global load",),
            right=("global load",),
            values={0: "1", 31: "1"},
            right_values={0: "0", 15: "15", 16: "16"},
        ),
        # a[y][0] * b[0][x] = 16 * y
        Claim(
            code="fma", values={0: "0", 16: "16"}, right_code="st.shared", right=("shared store",)
        ),
        # a[y][15] = 16 * y + 15
        Claim(
            view=("global load",),
            right=("shared load", "no conflict"),
            values={0: "15", 16: "31"},
            right_values={0: "15", 16: "31"},
        ),
        # 8 warps: 32 requests each, or 2.
        Claim(view=("global load requests 256",), right=("global load requests 16",)),
    ),
    "histogram": (
        Claim(view=("4 transactions",), code="ld.global"),
        Claim(view=("global atomic", "1 transaction", "32 moved"), lanes={"active": FULL}),
        Claim(cells={("bins", 0): "bins[0] = 16 ", ("bins", 3): "bins[3] = 16 "}),
    ),
    "barrier": (
        Claim(lanes={"active": FULL}, right_lanes={"active": FULL}),
        Claim(lanes={"goes_on": 0xFFFF, "jumps": 0xFFFF0000}),
        Claim(lanes={"active": 0xFFFF}, right_lanes={"active": 0xFFFF}),
        Claim(lanes={"active": 0xFFFF0000, "at_barrier": 0xFFFF}, right_lanes={"active": FULL}),
        Claim(lanes={"active": 0xFFFF}),
    ),
    "race": (
        Claim(view=("1 transaction",)),
        Claim(cells={("plain", 0): "plain[0] = 1 (before: 0) · written now by lane"}),
        Claim(cells={("atomic", 0): "atomic[0] = 32 (before: 0)"}),
    ),
    "exchange": (
        Claim(
            cells={
                ("kept", 31): "kept[31] = 31 (before: 0) · written now",
                ("kept", 32): "not written yet",
            }
        ),
        Claim(
            cells={
                (
                    "kept",
                    63,
                ): "kept[63] = 0 · not written yet · read now by lane 0 of block 0, warp 0"
            }
        ),
        Claim(cells={("kept", 0): "kept[0] = 0 · written at step"}),
        Claim(
            cells={
                ("out", 0): "out[0] = 0 · written",
                ("out", 63): "out[63] = 0 ",
                ("out", 32): "out[32] = 31 ",
            }
        ),
    ),
    "lock": (
        Claim(lanes={"active": 0xF}, right_lanes={"active": 0xF}, view=("global atomic",)),
        # `while (atomicCAS(...) != 0)` is line 4 of the kernel, and the three try it again.
        Claim(
            lanes={"goes_on": 1, "jumps": 0xE},
            right_lanes={"goes_on": 1, "jumps": 0xE},
            anywhere=("continues at line 6", "jumps to line 4 again"),
        ),
        Claim(
            lanes={"active": 0xE, "gathering": 1},
            right_lanes={"active": 1},
            right=("global store",),
        ),
        Claim(
            lanes={"active": 0xE, "gathering": 1},
            right_lanes={"active": 1},
            right=("global atomic",),
        ),
        Claim(
            view=(),
            cells={("total", 0): "total[0] = 0 "},
            right_cells={("total", 0): "total[0] = 4 "},
        ),
    ),
    "lock-warps": (
        Claim(lanes={"active": 0xF}, right_lanes={"active": 1}, view=("global atomic",)),
        Claim(
            lanes={"goes_on": 1, "jumps": 0xE}, right_lanes={"active": 1}, right=("global store",)
        ),
        # Lanes 1 to 3 have tried to take the lock since, and wrote nothing.
        Claim(
            cells={
                ("total", 0): "total[0] = 0 ",
                ("lock", 0): "by lane 0 of block 0, warp 0 · read at step",
            },
            right_cells={("total", 0): "total[0] = 4 "},
        ),
    ),
    "warp-synchronous": (
        # The adversarial schedule runs the last lane first, and alone.
        Claim(lanes={"active": FULL}, right_lanes={"active": 0x80000000}),
        Claim(lanes={"active": FULL}, right_lanes={"active": 0x80000000}),
        Claim(cells={("out", 0): "out[0] = 32 "}),
    ),
    "shuffle": (
        # What a lane takes: 1, then sums of 2, 4, 8 and, from lane 1, 16.
        Claim(lanes={"active": FULL}, code="shfl.sync.down", values={0: "1", 15: "1"}),
        Claim(lanes={"active": FULL}, code="shfl.sync.down", values={0: "2", 7: "2"}),
        Claim(lanes={"active": FULL}, code="shfl.sync.down", values={0: "16"}),
        Claim(
            lanes={"active": 1},
            cells={("out", 0): "out[0] = 32 (before: 0) · written now by lane 0"},
        ),
    ),
    "compaction": (
        Claim(lanes={"active": ODD}, right_lanes={"active": 1}),
        Claim(
            view=("2 transactions", "64 bytes requested, 64 moved: 100 %"),
            right=("2 transactions", "64 bytes requested, 64 moved: 100 %"),
        ),
        Claim(
            cells={
                ("count", 0): "count[0] = 16 ",
                ("out", 15): "out[15] = 31 ",
                ("out", 16): "not written yet",
            },
            right_cells={("count", 0): "count[0] = 16 ", ("out", 0): "out[0] = 1 "},
        ),
    ),
    "occupancy": (
        Claim(view=("Blocks",)),
        # Words 51 to 82: the first and the last sector are used in part.
        Claim(lanes={"active": FULL}, view=("5 transactions",)),
        # The least multiple of 8 that holds 52 values, addresses and an index, as half an SM does.
        Claim(view=("Occupancy", "registers per thread (64 allocated)")),
        Claim(view=("50 % 32 of 64 warps", "limited by registers")),
    ),
    "latency": (
        # x[32 * k + i], for k = 0 and 7
        Claim(view=("Modelled", "long scoreboard"), code="ld.global", values={0: "0", 31: "31"}),
        Claim(view=("long scoreboard",), code="ld.global", values={0: "224", 31: "255"}),
        Claim(view=("cycles",)),
    ),
    "switching": (
        Claim(view=("Modelled", "long scoreboard", "sixteen warps")),
        Claim(view=("long scoreboard",)),
        Claim(view=("one warp: ", "sixteen warps: ")),
    ),
    "smt": (
        Claim(view=("Modelled", "All blocks ran on SM 0"), code="ld.global"),
        Claim(view=("Modelled",), lanes={"active": FULL}),
        Claim(lanes={"active": FULL}),
        # Warp 0 has followed next[i] = i.
        Claim(cells={("out", 5): "out[5] = 5 "}),
    ),
    "poor-fit": (
        Claim(active=1, right_lanes={"active": FULL}),
        Claim(view=("long scoreboard",)),
        Claim(view=("a chain of pointers: ", "32 loads at once: ")),
    ),
    "async-copy": (
        Claim(view=("global load",), code="ld.global", right_code="cp.async"),
        Claim(
            code="st.shared",
            right_code="cp.async.wait",
            cells={("kept", 31): "kept[31] = 31 "},
            right_cells={("kept", 31): "kept[31] = 31 "},
        ),
        Claim(
            values={0: "31", 31: "0"},
            right_values={0: "31", 31: "0"},
            cells={("kept", 31): "read now by lane 0"},
            right_cells={("kept", 31): "read now by lane 0"},
        ),
    ),
    "tensor-cores": (
        Claim(
            lanes={"active": FULL}, right_lanes={"active": FULL}, code="fma", right_code="wmma.mma"
        ),
        Claim(cells={("c", 255): "c[15][15] = 16 "}, right_cells={("c", 255): "c[15][15] = 16 "}),
    ),
    "streams": (
        Claim(
            cells={("middle", 3): "middle[3] = 6 "},
            right_cells={("middle", 3): "middle[3] = 0 "},
        ),
        Claim(view=("global load", "4 transactions"), right=("global load", "4 transactions")),
        Claim(
            cells={("out", 3): "out[3] = 7 (before: 0)"},
            right_cells={("out", 3): "out[3] = 1 (before: 0)"},
        ),
        Claim(cells={("out", 31): "out[31] = 63 "}, right_cells={("out", 31): "out[31] = 1 "}),
    ),
    "torch-compile": (
        Claim(
            lanes={"active": FULL},
            view=("0 waiting · 4 resident",),
            anywhere=("XBLOCK", "⟨4, 128⟩"),
        ),
        Claim(view=("8 transactions", "256 bytes requested, 256 moved: 100 %")),
        Claim(cells={("bias", 63): "read now by", ("bias", 64): "not read yet"}),
        Claim(cells={("out", 3): "out[0][3] = 0 · not written yet"}),
        Claim(cells={("out", 3): "out[0][3] = 2 (before: 0)"}),
        Claim(view=("global load requests 32", "global store requests 16")),
    ),
    "own-coalescer": (
        SECTORS_4,
        Claim(view=("8 transactions", "128 bytes requested, 256 moved: 50 %")),
        # Bytes 16 to 143: sectors 0 to 4.
        Claim(view=("5 transactions", "128 bytes requested, 160 moved: 80 %")),
        Claim(view=("1 transaction", "32 moved")),
    ),
    "own-scheduler": (
        Claim(view=("Modelled", "long scoreboard"), code="ld.global"),
        Claim(view=("not selected",), code="ld.global"),
        Claim(view=("Modelled",)),
    ),
    "own-prefetcher": (
        SECTORS_4,
        Claim(view=("Modelled", "long scoreboard"), code="ld.global"),
        Claim(view=("long scoreboard",), code="ld.global"),
    ),
    "opencl": (
        Claim(lanes={"active": FULL}, anywhere=("⟨2, 64⟩", "sub-group 0")),
        Claim(
            lanes={"active": FULL}, view=("4 transactions", "128 bytes requested, 128 moved: 100 %")
        ),
        Claim(lanes={"active": FULL}, code="st.shared", view=("local store",)),
        Claim(code="bar", view=("2 resident", "Work-items")),
        # 63 * 64 / 2
        Claim(active=1, cells={("to", 0): "to[0] = 2016 (before: 0) · written now by lane 0"}),
    ),
}
