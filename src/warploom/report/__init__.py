"""Reports of a run: sections of named values, as text and as JSON.

In: counters, times and tunings. Out: sections of named values, and their text, JSON, CSV, SVG or
Perfetto trace. It computes no counters of its own.
"""
