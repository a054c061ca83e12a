"""Lowers the terms that define what instructions compute (`isa.terms`) to LLVM vector
operations."""
