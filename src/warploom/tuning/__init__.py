"""Defines search spaces for tuning, and selects the best configurations by cost.

Measuring a configuration is for `warploom.host.tuning.tune`.

In: spaces, costs and measured times. Out: configurations by rank, with the Pareto set.
"""
