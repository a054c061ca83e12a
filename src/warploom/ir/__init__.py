"""Defines the Warp IR: a kernel under one variant, with what the passes have found; its text and
parser; the table of access plans.

In and out: frozen data. `passes` make it, `lower` reads it.
"""
