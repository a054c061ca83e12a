"""Defines how the 32 values of a register differ from lane to lane, as vector shapes: the same
value in all lanes (uniform), a constant stride between lanes (affine), or anything (varying); and
computes the shapes of an instruction's results from those of its operands.

Comes in: an instruction, and the shapes of the registers that it reads. Goes out: the shapes of
what it writes. Whole kernels are the subject of `analysis.uniformity`.
"""
