"""Analyses addresses as linear forms of thread and block indices: which accesses can overlap, which
blocks are independent, where no race is possible.
"""
