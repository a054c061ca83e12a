"""Traces of machine code in the format of Accel-Sim: written of launches here, and read to be
timed."""
