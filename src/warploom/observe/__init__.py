"""Derives the data about a run that users see (counters, traces, and calls of observers) from the
events and counts of a machine.

In: a `Tally`, a log, or the reference machine's events. Out: `Counters`, a `Trace`, calls of a
user's observer. Texts and advice are left to `report`.
"""
