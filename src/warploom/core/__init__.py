"""Types, errors and options that every other package may use: PTX scalar types, errors with source
positions, checked options.
"""
