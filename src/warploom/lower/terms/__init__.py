"""Lowers the terms that define the results of instructions (`isa.terms`) to LLVM vector operations.

In: a term, and LLVM values of its inputs. Out: LLVM values of its results. It knows neither
registers nor masks, and no instruction by name.
"""
