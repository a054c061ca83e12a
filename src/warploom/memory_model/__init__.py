"""Enumerates the outcomes that an axiomatic memory model allows for small programs.

The layers, lowest first: `relations` (relations over events), `values` (values that depend on what
loads find), `events`, `paths` (the ways one thread can go), `cat` and `evaluation` (models as text,
and in one execution), `executions` (candidate executions of all threads), `search` (the outcomes
that a model allows). Programs come from `language` (the litmus notation) or `kernels` (PTX).

In: a program of a few threads and a model. Out: the outcomes that the model allows, each with its
graph. Launches of kernels under many orders are left to `host.exploration`.
"""
