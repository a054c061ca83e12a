"""Maps PTX instructions to machine work on a device: units, issue slots, latencies and
dependences."""
