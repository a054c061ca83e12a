"""Implements the commands for getting started: copies the examples, lists the kernels in a file,
and compares buffers with expected results."""
