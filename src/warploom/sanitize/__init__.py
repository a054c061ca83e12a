"""Finds what hardware hides in a launch: accesses out of bounds, data races, barriers that not all
threads reach alike, memory that nobody wrote.

`detector` detects; this package describes a launch to it and reads what it found.
"""
