"""Types, errors and options that every other package may use: PTX scalar types, errors with source
positions, checked options.

It imports no other package of Warploom, and knows no kernel, device or launch.
"""
