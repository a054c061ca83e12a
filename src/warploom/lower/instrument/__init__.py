"""Emits the instrumentation of kernels: logs, observer callbacks, the race detector's checks,
watchpoints. Kernels compiled without instrumentation have none of this code."""
