"""Defines vector shapes, which describe how the 32 values of a register differ from lane to lane:
the same value in all lanes (uniform), a constant stride between lanes (affine), or any other values
(varying). Computes the shapes of an instruction's results from the shapes of its operands.

`analysis.uniformity` applies these transfer functions to whole kernels, and `lower` reads the
shapes of operands by them.

In: instructions, and shapes of their operands. Out: shapes of their results.
"""
