"""Derives what users see of a run from the events and counts of a machine: counters, traces,
observers.

In: a `Tally`, a log, or the reference machine's events. Out: `Counters`, a `Trace`, calls of a
user's observer. Texts and advice are left to `report`.
"""
