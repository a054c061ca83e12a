"""Prepares the launches that commands work on: kernels from files, captured launches of programs,
and saved launches."""
