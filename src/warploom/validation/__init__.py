"""Compares modelled figures with published figures, reproducibly (`warploom validate`).

In: published figures with their sources, and launches on modelled devices. Out: a table of both,
with the error of each. The model of time is `timing`'s.
"""
