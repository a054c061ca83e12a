"""Reads PTX text into a typed module, with the source position of every token. Also links modules,
verifies them against the tables of `isa`, and prints them.

In: text. Out: a `Module`, or an error at a place in the text. Inlining, layout and control flow are
left to `program`.
"""
