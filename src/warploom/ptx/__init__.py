"""Reads PTX: from text to a typed module with the source position of every token; links modules,
verifies them against the tables of `isa`, and prints them.
"""
