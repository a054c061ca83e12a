"""Explores what the architecture leaves undefined: one launch under many legal orders."""
