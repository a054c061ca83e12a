"""Emits the two functions of a kernel: the one that runs a warp, and the one that runs a launch."""
