"""Tunes a launch: one kernel in many configurations, each counted and timed."""
