"""Writes traces of machine code in the format of Accel-Sim, and reads such traces to model their
time."""
