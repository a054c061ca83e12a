"""Warploom: a SIMT GPU in software."""
