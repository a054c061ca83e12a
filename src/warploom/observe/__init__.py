"""Derives user-visible data about a run (counters, traces, and observer callbacks) from the events
and counts that the compiled engine or the reference machine produces.

In: a `Tally`, a log, or the reference machine's events. Out: `Counters`, a `Trace`, calls of a
user's observer. Texts and advice are left to `report`.
"""
