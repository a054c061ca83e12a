"""Lowers the terms that define instructions (`isa.terms`) to vector operations."""
