"""Runs launches in compiled code: their buffers, threads and code tiers, and the counts that they
leave."""
