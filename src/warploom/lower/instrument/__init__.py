"""Emits the instrumentation of kernels: logs, observer callbacks, the race detector's checks, and
watchpoints. Kernels that are compiled without instrumentation contain none of this code.

In: events of accesses, branches and barriers, from the emitters. Out: calls of helpers and
callbacks. What these record is left to `abi.log`, `detector` and the observer.
"""
