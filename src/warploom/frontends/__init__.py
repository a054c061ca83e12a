"""Wraps third-party compilers as functions that compile source text to PTX text.

In: source text and options. Out: PTX text, or the compiler's log as an error. Reading the PTX is
left to `ptx`, caching it to `host.programs`.
"""
