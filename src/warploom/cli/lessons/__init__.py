"""Implements the commands that open, play and grade lessons."""
