"""Tunes a launch: runs one kernel in many configurations, and records the counts and the time of
each run.

In: a kernel, a space of configurations, a metric. Out: trials, and a file that keeps them. Spaces,
ranking and the choice of what to measure are left to `tuning`.
"""
