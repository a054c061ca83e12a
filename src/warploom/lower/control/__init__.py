"""Lowers the control flow of lanes: branches, divergence, reconvergence, barriers, suspension, and
the order in which a thread block's warps run."""
