"""The parts of Warploom that are fuzzed."""

from __future__ import annotations

from fuzzing.cases import Target
from fuzzing.targets import files, forms, launches, programs

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (*programs.TARGETS, *forms.TARGETS, *launches.TARGETS, *files.TARGETS)
}
