"""Modelled figures against published ones, that anybody can repeat: `warploom validate`."""
