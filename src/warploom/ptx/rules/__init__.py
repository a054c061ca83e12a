"""Checks the rules of PTX for the operands of each instruction, for whole instructions, and for
declarations.

In: parsed declarations and instructions, with the names in scope. Out: nothing, or an error at the
position in the text that breaks a rule of the manual. Parsing is for the package around.
"""
