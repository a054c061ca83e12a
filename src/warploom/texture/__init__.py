"""Executes texture and surface instructions: coordinates to texels, filtering, formats, and the
sectors that they touch.
"""
