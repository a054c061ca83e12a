"""Defines the prefixes of helpers' symbols in object code."""

PREFIX = "warploom."
"""The prefix of the helpers' symbols."""

SHARED = f"{PREFIX}lanes."
"""The prefix of functions that several helpers of an object share, so that each is linked once."""
