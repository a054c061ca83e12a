"""Draws kernels with loops, branches and integer arithmetic whose values decide the addresses of
their stores."""

from __future__ import annotations

from hypothesis import strategies as st

MIDDLE = 1 << 20
"""The byte of the array at which index 0 is; stores are executed for indices from -65,536 to
65,535."""

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n)
{{
  .reg .b32 %i<4>, %n, %c<8>, %s; .reg .b64 %x, %p, %q; .reg .pred %b, %h;
  ld.param.u64 %x, [x];
  ld.param.u32 %n, [n];
  mov.u32 %i0, %tid.x;
  mov.u32 %i1, %ctaid.x;
  mov.u32 %i2, %ntid.x;
  mad.lo.s32 %i3, %i1, %i2, %i0;
  mul.wide.s32 %p, %i3, 4;
  add.s64 %p, %x, %p;
{body}
  ret;
}}
"""

VALUES = (
    "mov.u32 {to}, %tid.x;",
    "mov.u32 {to}, {small};",
    "add.s32 {to}, {of}, {small};",
    "sub.s32 {to}, {of}, {other};",
    "sub.s32 {to}, %n, {of};",
    "not.b32 {to}, {of};",
    "add.s32 {to}, {of}, {other};",
    "mul.lo.s32 {to}, {of}, {factor};",
    "shr.s32 {to}, {of}, {shift};",
    "shr.u32 {to}, {of}, {shift};",
    "shr.s32 %s, {of}, 31; shr.u32 %s, %s, 27; add.s32 %s, {of}, %s; and.b32 %s, %s, -32;"
    " sub.s32 {to}, {of}, %s;",
    "and.b32 {to}, {of}, {mask};",
    "or.b32 {to}, {of}, {other};",
    "cvt.s64.s32 %q, {of}; and.b64 %q, %q, {wide_mask}; cvt.u32.u64 {to}, %q;",
    "rem.s32 {to}, {of}, {divisor};",
    "div.u32 {to}, {of}, {divisor};",
    "min.s32 {to}, {of}, %n;",
)

STORE = """
  add.u32 %s, {of}, 65536;
  setp.lt.u32 %h, %s, 131072;
  mul.wide.s32 %q, {of}, 4;
  add.s64 %q, %x, %q;
  @%h st.global.u32 [%q+{offset}], {of};
"""

COMPARISONS = ("lt.s32", "ge.s32", "gt.s32", "ne.s32", "eq.s32", "le.u32")


@st.composite
def loop_kernels(draw: st.DrawFn) -> str:
    """Draws a kernel of one to five statements, of which some have inner ones."""
    return KERNEL.format(body=_Statements(draw).several(0))


class _Statements:
    """Draws statements, with labels and counters of their own."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw, self._labels, self._counters = draw, 0, 0

    def several(self, depth: int) -> str:
        """Draws one to five statements, and a store."""
        count = self._draw(st.integers(1, 5 if depth == 0 else 3))
        return "".join(self._one(depth) for _ in range(count)) + self._store()

    def _one(self, depth: int) -> str:
        kinds = ["value", "value", "pointer"] if depth == 2 else ["value", "pointer", "if", "loop"]
        kind = self._draw(st.sampled_from(kinds))
        if kind == "value":
            return "  " + self._value() + "\n"
        if kind == "pointer":
            at = "  setp.ge.u64 %h, %p, %x;\n  @%h st.global.u32 [%p], %i0;\n"
            return f"  add.s64 %p, %p, {4 * self._draw(st.sampled_from((1, 8, 64)))};\n{at}"
        return self._branch(depth) if kind == "if" else self._loop(depth)

    def _value(self) -> str:
        register = st.sampled_from(("%i0", "%i1", "%i2", "%i3"))
        return self._draw(st.sampled_from(VALUES)).format(
            to=self._draw(register),
            of=self._draw(register),
            other=self._draw(register),
            small=self._draw(st.integers(-3, 70)),
            factor=self._draw(st.sampled_from((-1, 2, 4, 32, 100))),
            shift=self._draw(st.integers(1, 6)),
            mask=self._draw(st.sampled_from((3, 31, 0x70, -4, -32))),
            wide_mask=self._draw(st.sampled_from((31, -32, 0xFFFFFFE0, 0xFFFFFFFFF0))),
            divisor=self._draw(st.sampled_from((3, 4, 32))),
        )

    def _store(self) -> str:
        of = self._draw(st.sampled_from(("%i0", "%i1", "%i2", "%i3")))
        return STORE.format(of=of, offset=4 * self._draw(st.integers(0, 3)))

    def _condition(self) -> str:
        left = self._draw(st.sampled_from(("%i0", "%i1", "%i2", "%i3")))
        right = self._draw(st.sampled_from(("%n", "%i0", "0", "7", "40")))
        if self._draw(st.integers(0, 4)) == 0:
            other = self._draw(st.sampled_from(("%i0", "%i1")))
            compare = self._draw(st.sampled_from(("eq.s32", "le.s32", "ne.u32")))
            return f"or.b32 %s, {left}, {other}; setp.{compare} %b, %s, 0;"
        return f"setp.{self._draw(st.sampled_from(COMPARISONS))} %b, {left}, {right};"

    def _branch(self, depth: int) -> str:
        self._labels += 1
        label = self._labels
        other = self.several(depth + 1) if self._draw(st.booleans()) else ""
        return (
            f"  {self._condition()}\n  @%b bra other{label};\n{self.several(depth + 1)}"
            f"  bra after{label};\nother{label}:\n{other}after{label}:\n"
        )

    def _loop(self, depth: int) -> str:
        """Draws a loop that ends after a number of iterations, or where a comparison says so, but
        no later than that. Some are entered in the middle of their text."""
        self._labels += 1
        label, counter = self._labels, f"%c{self._counters % 8}"
        self._counters += 1
        start, step = self._draw(st.integers(-2, 5)), self._draw(st.sampled_from((1, 2, -1)))
        last = start + step * self._draw(st.integers(1, 5))
        leave = f"  {self._condition()}\n  @%b bra left{label};\n"
        compared = ("lt.s32" if step > 0 else "gt.s32", "ne.s32")
        compare = self._draw(st.sampled_from(compared))
        if self._draw(st.integers(0, 2)) == 0:
            return (
                f"  mov.u32 {counter}, {start};\n  bra.uni middle{label};\nagain{label}:\n"
                f"{self.several(depth + 1)}  add.s32 {counter}, {counter}, {step};\n"
                f"middle{label}:\n{self.several(depth + 1)}"
                f"{leave if self._draw(st.booleans()) else ''}"
                f"  setp.{compare} %b, {counter}, {last};\n"
                f"  @%b bra again{label};\nleft{label}:\n"
            )
        return (
            f"  mov.u32 {counter}, {start};\nagain{label}:\n{self.several(depth + 1)}"
            f"{leave if self._draw(st.booleans()) else ''}"
            f"  add.s32 {counter}, {counter}, {step};\n"
            f"  setp.{compare} %b, {counter}, {last};\n  @%b bra again{label};\nleft{label}:\n"
        )
