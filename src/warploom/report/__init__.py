"""Creates reports of a run. A report consists of sections with named values, and is written as text
or JSON.

In: counters, times and tunings. Out: sections of named values, and their text, JSON, CSV, SVG or
Perfetto trace. It computes no counters of its own.
"""
