"""Passes over the Warp IR, in the order of `pipeline.PIPELINE`. Each takes a frozen IR and returns
a copy with one more field filled in; none changes instructions or emits code."""
