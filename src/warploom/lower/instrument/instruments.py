"""Creates the instruments that a kernel variant has, and passes accesses to them."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.ir.variant import KernelVariant
from warploom.lower.control.clusters import ClusterCode
from warploom.lower.frame.operands import Operands
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instrument.access_event import AccessEvent, AccessInstrument
from warploom.lower.instrument.observing import ObservingCode
from warploom.lower.instrument.recording import RecordingCode
from warploom.lower.instrument.recording_copies import CopyRecordingCode
from warploom.lower.instrument.sanitizing import SanitizingCode
from warploom.lower.instrument.tracking import TrackingCode
from warploom.lower.instrument.watchpoints import WatchingCode


@dataclass(frozen=True, slots=True)
class Instruments:
    """Holds a warp function's emitters of instrumentation; None for what its kernel variant does
    not have.

    The log, watchpoints, the log of copies and the tracker of access sets receive each access
    before it is performed, an observer after it. The race detector decides which lanes may perform
    it, so its caller calls it.
    """

    log: RecordingCode | None
    copies: CopyRecordingCode | None
    watchpoints: WatchingCode | None
    detector: SanitizingCode | None
    observer: ObservingCode | None
    tracker: TrackingCode | None

    @classmethod
    def of(
        cls, variant: KernelVariant, operands: Operands, spills: SpillCode, clusters: ClusterCode
    ) -> Instruments:
        """Creates the instruments of a variant: both logs if it records, watchpoints if it is
        debugged with some, the race detector's emitter if it is sanitized, the observer's if it is
        observed, that of a worker's access set if it tracks accesses."""
        frame, debugging = operands.frame, variant.debugging
        watches = debugging is not None and debugging.watches
        sanitizes, observes = variant.sanitizes, variant.observes
        return cls(
            RecordingCode(frame, spills) if variant.records else None,
            CopyRecordingCode(frame, clusters) if variant.records else None,
            WatchingCode(frame) if watches else None,
            None if sanitizes is None else SanitizingCode(operands, sanitizes),
            None if observes is None else ObservingCode(frame, observes),
            None if variant.tracks is None else TrackingCode(frame, variant.tracks),
        )

    def before(self, event: AccessEvent) -> None:
        """Emits, before an access is performed, its record in the log, its count by the
        watchpoints, its record in the log of copies, and its record in the worker's access set,
        each if the kernel variant has that instrument."""
        _emit((self.log, self.watchpoints, self.copies, self.tracker), event)

    def after(self, event: AccessEvent) -> None:
        """Emits the observer's event of an access that has been performed without a fault; nothing
        without an observer."""
        _emit((self.observer,), event)


def _emit(instruments: tuple[AccessInstrument | None, ...], event: AccessEvent) -> None:
    """Has each of some instruments emit what it does with an access, in order; skips None."""
    for instrument in instruments:
        if instrument is not None:
            instrument.access(event)
