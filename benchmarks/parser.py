"""How fast PTX is parsed, in lines a second.

    python benchmarks/parser.py [file.ptx]

Without a file it parses a text it makes: many kernels with the mix of lines that NVRTC writes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from warploom.ptx.parser import parse

HEADER = ".version 9.0\n.target sm_75\n.address_size 64\n\n"

KERNEL = """\
.visible .entry kernel{n}(
	.param .u32 kernel{n}_param_0,
	.param .f32 kernel{n}_param_1,
	.param .u64 kernel{n}_param_2,
	.param .u64 kernel{n}_param_3
)
{{
	.reg .pred 	%p<3>;
	.reg .f32 	%f<7>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<8>;
	.loc	1 2 0

	ld.param.u32 	%r2, [kernel{n}_param_0];
	ld.param.f32 	%f1, [kernel{n}_param_1];
	ld.param.u64 	%rd1, [kernel{n}_param_2];
	ld.param.u64 	%rd2, [kernel{n}_param_3];
	.loc	1 3 3
	mov.u32 	%r3, %ctaid.x;
	mov.u32 	%r4, %ntid.x;
	mov.u32 	%r5, %tid.x;
	mad.lo.s32 	%r1, %r3, %r4, %r5;
	.loc	1 4 3
	setp.ge.s32 	%p1, %r1, %r2;
	@%p1 bra 	$L__BB{n}_2;

	cvta.to.global.u64 	%rd3, %rd2;
	cvta.to.global.u64 	%rd4, %rd1;
	mul.wide.s32 	%rd5, %r1, 4;
	add.s64 	%rd6, %rd4, %rd5;
	add.s64 	%rd7, %rd3, %rd5;
	mov.u32 	%r6, 0;

$L__BB{n}_1:
	.loc	1 5 3
	ld.global.f32 	%f2, [%rd6+16];
	ld.global.f32 	%f3, [%rd7];
	fma.rn.f32 	%f4, %f2, %f1, %f3;
	mul.f32 	%f5, %f4, 0f3F800000;
	st.global.f32 	[%rd7], %f5;
	add.s32 	%r6, %r6, -1;
	setp.lt.s32 	%p2, %r6, 64;
	@%p2 bra 	$L__BB{n}_1;

$L__BB{n}_2:
	.loc	1 6 1
	ret;

}}
"""


def main() -> None:
    if len(sys.argv) > 1:
        text = Path(sys.argv[1]).read_text("utf-8")
    else:
        text = HEADER + "".join(KERNEL.format(n=n) for n in range(400)) + '\t.file\t1 "k.cu"\n'
    lines = text.count("\n")
    times: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        parse(text)
        times.append(time.perf_counter() - start)
    print(f"{lines} lines in {min(times):.3f} s: {lines / min(times):,.0f} lines/s")


if __name__ == "__main__":
    main()
