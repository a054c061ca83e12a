"""Contains types, errors and options that all other packages may use: PTX scalar types, errors with
source positions, and checked options.

It imports no other package of Warploom, and knows no kernel, device or launch.
"""
