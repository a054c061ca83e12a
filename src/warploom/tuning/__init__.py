"""Tuning: spaces of configurations, their costs, the best of them.

Measuring a configuration is for `warploom.host.tuning.tune`.

In: spaces, costs and measured times. Out: configurations by rank, with the Pareto set.
"""
