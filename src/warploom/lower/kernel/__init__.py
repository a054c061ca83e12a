"""Emits the two functions of a kernel: `warp`, which runs one warp, and `run`, which runs a
launch."""
