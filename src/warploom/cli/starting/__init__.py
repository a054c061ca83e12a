"""The commands for a first launch: the examples, and the kernels of a file with their parameters."""
