"""Lowers control flow of lanes: branches, divergence, reconvergence, suspension, barriers, and the
order in which a block's warps run.
"""
