"""Launches for commands: kernels of files, launches of programs that are captured, saved ones."""
