"""The parts of Warploom that are fuzzed."""

from __future__ import annotations

from fuzzing.cases import Target
from fuzzing.targets import cores, files, forms, launches, programs

TARGETS: dict[str, Target] = {
    target.name: target
    for group in (programs, forms, launches, files, cores)
    for target in group.TARGETS
}
