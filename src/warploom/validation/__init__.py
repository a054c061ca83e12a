"""Compares modelled figures with published figures (`warploom validate`). The comparison is
reproducible.

In: published figures with their sources, and launches on modelled devices. Out: a table of both,
with the error of each. The model of time is `timing`'s.
"""
