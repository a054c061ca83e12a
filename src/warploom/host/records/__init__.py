"""Records launches for traces, for timing, and in Accel-Sim's format.

In: launches on a device that records. Out: traces, records for `timing`, and replays of these. The
record's form is that of `timing.record`, the trace's that of `observe`.
"""
