"""Commands for a first launch: the examples, the kernels of a file, and expected results."""
