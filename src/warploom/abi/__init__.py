"""Defines what compiled code and its host share: the environment's slots, counters, the layout of a
warp's context, access types, range caches, and the log of recording code.

Whoever reads or writes these arrays takes the layout from here; none is stated twice.
"""
