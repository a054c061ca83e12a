"""Maps PTX instructions to the machine work that they cause on a device: units, issue slots,
latencies and dependences.

In: a `Program` and a `TimingSpec`. Out: for each instruction the operations that issue. Which
instructions a warp executes is left to `timing.record`, when they issue to `timing.engine`.
"""
