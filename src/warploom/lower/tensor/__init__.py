"""Lowers matrix, tensor-copy, tensor-memory and texture instructions."""
