"""Emits what observes execution: logs, observers, sanitizers, watchpoints. Kernels compiled without
them have none of this code.
"""
