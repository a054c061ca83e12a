"""Compiles a kernel: from a program to machine code in this process, by way of the cache on
disk."""
