"""Reads files of suppressions: findings that are accepted, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from warploom.core.errors import WarploomError
from warploom.core.input_files import read_text
from warploom.sanitize.findings import Finding

FORM = "KIND FILE:LINE REASON, such as `race sum.cu:12 a stale counter is harmless`"


@dataclass(frozen=True, slots=True)
class Suppression:
    """Describes accepted findings of a kind (or a tool) at a line, and the reason."""

    kind: str
    file: str
    line: int
    reason: str

    def covers(self, finding: Finding) -> bool:
        """Returns whether it accepts a finding: one of the finding's lines has to be its line."""
        if self.kind not in (finding.kind.replace(" ", "-"), finding.tool):
            return False
        return any(self._is_at(place) for place in (finding.line, finding.other_line))

    def _is_at(self, place: str) -> bool:
        file, _, line = place.rpartition(":")
        return line == str(self.line) and PurePath(file).match(self.file)


def read_suppressions(path: Path) -> tuple[Suppression, ...]:
    """Returns the suppressions of a file: one a line; `#` begins a comment. Raises WarploomError
    for a line of another form, and for a file that cannot be read."""
    lines = read_text(path).splitlines()
    found = ((number, line.strip()) for number, line in enumerate(lines, 1))
    return tuple(
        _suppression(f"{path}:{number}", line)
        for number, line in found
        if line and not line.startswith("#")
    )


def _suppression(where: str, text: str) -> Suppression:
    """Returns the suppression of a line of text."""
    kind, _, rest = text.partition(" ")
    place, _, reason = rest.strip().partition(" ")
    file, _, line = place.rpartition(":")
    if not file or not line.isdigit():
        raise WarploomError(f"{where}: {text!r} is not a valid suppression; write {FORM}")
    if not reason.strip():
        raise WarploomError(f"{where}: a suppression needs a reason; write {FORM}")
    return Suppression(kind, file, int(line), reason.strip())


def without_suppressed(
    findings: Iterable[Finding], suppressions: Iterable[Suppression]
) -> tuple[list[Finding], int]:
    """Returns the findings that no suppression accepts, and the number of the others."""
    accepted, all_findings = tuple(suppressions), list(findings)
    kept = [one for one in all_findings if not any(each.covers(one) for each in accepted)]
    return kept, len(all_findings) - len(kept)
