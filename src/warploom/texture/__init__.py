"""Executes texture and surface instructions: addressing, filtering, format conversion, and the
count of the sectors that they touch.
"""
