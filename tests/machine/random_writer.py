"""Holds the text of a drawn PTX kernel in construction, with its registers and labels."""

from __future__ import annotations

from dataclasses import dataclass, field

import hypothesis.strategies as st

PREFIXES = {1: "%p", 16: "%h", 32: "%r", 64: "%d"}
COUNTS = {1: 4, 16: 3, 32: 6, 64: 4}


@dataclass
class Writer:
    """Lines, the number of labels, and the functions that can be called. `alone` leaves out
    instructions that depend on other threads."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list[str])
    labels: int = 0
    functions: tuple[str, ...] = ()
    alone: bool = False

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def emit(self, text: str) -> None:
        self.lines.append(f"\t{text};")

    def mark(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def register(self, bits: int) -> str:
        return f"{PREFIXES[bits]}{self.draw(st.integers(0, COUNTS[bits] - 1))}"

    def guard(self) -> str:
        """Draws no guard mostly, else a predicate or its negation."""
        kind = self.draw(st.integers(0, 5))
        return "" if kind > 1 else f"@{'!' * kind}{self.register(1)} "


def declared() -> str:
    """Returns the declarations of a function's registers, and of its own memory."""
    drawn = (
        f"\t.reg .{'pred' if bits == 1 else f'b{bits}'} {prefix}<{COUNTS[bits]}>;"
        for bits, prefix in PREFIXES.items()
    )
    return "\n".join(
        (
            *drawn,
            "\t.reg .b16 %t;",
            "\t.reg .b32 %i, %j, %n, %lap;",
            "\t.reg .b64 %base, %mine, %at;",
            "\t.local .align 16 .b8 own[64];",
        )
    )
