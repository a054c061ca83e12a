"""Records launches: for traces, for timing, and in Accel-Sim's format."""
