"""Observes the events that a machine publishes: counts, and what follows from them."""
