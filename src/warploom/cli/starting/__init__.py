"""Implements the commands for a first launch: copies the examples, lists the kernels in a file, and
compares buffers with expected results."""
