"""Runs launches in compiled code: their arrays, threads, tiers of code, and the counts they
leave."""
