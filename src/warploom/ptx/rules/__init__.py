"""Checks what PTX may say: the operands of each instruction, instructions as a whole, and
declarations.

In: parsed declarations and instructions, with the names in scope. Out: nothing, or an error at the
position in the text that breaks a rule of the manual. Parsing is for the package around.
"""
