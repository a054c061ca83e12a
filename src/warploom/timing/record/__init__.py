"""Turns the log of a launch into the record that timing replays."""
