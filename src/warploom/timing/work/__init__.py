"""Maps PTX instructions to the machine operations that a device issues for them. Each operation has
a unit, issue slots, a latency and dependences.

In: a `Program` and a `TimingSpec`. Out: for each instruction the operations that issue. Which
instructions a warp executes is left to `timing.record`, when they issue to `timing.engine`.
"""
