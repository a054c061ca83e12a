"""Derives what users see of a run from the events and counts of a machine: counters, traces,
observers."""
