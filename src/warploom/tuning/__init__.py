"""Tuning: spaces of configurations, their costs, the best of them.

Measuring a configuration is for `warploom.host.tuning.tune`.
"""
