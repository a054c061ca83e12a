"""Checks operands, whole instructions and declarations against the rules of PTX.

In: parsed declarations and instructions, with the names in scope. Out: nothing, or an error at the
position in the text that breaks a rule of the manual. Parsing is for the package around.
"""
