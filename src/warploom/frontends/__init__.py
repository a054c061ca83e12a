"""Compilers that are not ours, each turned into a function from source text to PTX text."""
