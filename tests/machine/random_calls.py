"""Draws functions and calls of them: direct, indirect and recursive ones.

A function has two words as parameters and returns one. A recursive one has its remaining depth as a
parameter.
"""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
from random_writer import Writer, declared

SIGNATURE = "(.param .b32 given) {} (.param .b32 first, .param .b32 second)"
PROTOTYPE = "kind: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);"
NAMES = ("f0", "f1", "deep")

Body = Callable[[Writer, int, int], None]
"""Writes so many statements, so deep in each other."""


def functions(draw: st.DrawFn, body: Body, *, alone: bool) -> tuple[str, tuple[str, ...]]:
    """Draws the text of up to three functions, and their names. A later one may call those before
    it."""
    texts: list[str] = []
    names: tuple[str, ...] = ()
    for name in NAMES[: draw(st.sampled_from((0, 0, 1, 2, 3, 3)))]:
        writer = Writer(draw, functions=names, alone=alone)
        body(writer, draw(st.integers(1, 3)), 1)
        if name == "deep":
            _call_itself(writer)
        texts.append(_function(name, "\n".join(writer.lines)))
        names = (*names, name)
    return "\n".join(texts), names


def _function(name: str, body: str) -> str:
    return f"""
.func {SIGNATURE.format(name)}
{{
{declared()}
\t.reg .b32 %left;
\t{PROTOTYPE}
\tld.param.b32 %r0, [first];
\tld.param.b32 %r1, [second];
\tmov.u32 %n, %tid.x;
\tmov.u32 %lap, 0;
\tand.b32 %left, %r1, 3;
\tsetp.lt.u32 %p2, %r0, %r1;
\tst.param.b32 [given], %r0;
{body}
DONE:
\tadd.u32 %r0, %r0, %r1;
\tst.param.b32 [given], %r0;
\tret;
}}
"""


def _call_itself(w: Writer) -> None:
    """Returns a recursive call, which is skipped when the second argument is a multiple of 4."""
    w.emit("setp.eq.u32 %p3, %left, 0")
    w.emit("@%p3 bra DONE")
    w.emit("sub.u32 %left, %left, 1")
    _passed(w, "call (q), deep, (a, b)", w.register(32), "%left")


def call(w: Writer, _: int) -> None:
    """Draws a call of any function; in an indirect call, lanes may call different functions."""
    if not w.functions:
        return
    name = w.draw(st.sampled_from(w.functions))
    arguments = w.register(32), w.register(32)
    if w.draw(st.booleans()):
        w.emit(f"mov.u64 %base, {name}")
        w.emit(f"mov.u64 %at, {w.draw(st.sampled_from(w.functions))}")
        w.emit(f"selp.b64 %at, %at, %base, {w.register(1)}")
        _passed(w, f"{w.guard()}call (q), %at, (a, b), kind", *arguments)
    else:
        _passed(w, f"{w.guard()}call (q), {name}, (a, b)", *arguments)


def _passed(w: Writer, call: str, first: str, second: str) -> None:
    """Returns a call with the parameter passing around it."""
    w.lines.append("\t{")
    for name in "abq":
        w.emit(f".param .b32 {name}")
    w.emit(f"st.param.b32 [a], {first}")
    w.emit(f"st.param.b32 [b], {second}")
    w.emit("st.param.b32 [q], 7")
    w.emit(call)
    w.emit(f"ld.param.b32 {w.register(32)}, [q]")
    w.lines.append("\t}")
