"""Records launches in three forms: traces, input for the timing model, and Accel-Sim traces.

In: launches on a device that records. Out: traces, records for `timing`, and replays of these. The
record's form is that of `timing.record`, the trace's that of `observe`.
"""
