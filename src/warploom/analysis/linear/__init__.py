"""Analyses addresses as linear forms of thread and block indices, for one launch: which accesses
can overlap, whether thread blocks are independent, and which accesses cannot race."""
