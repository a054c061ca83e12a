"""The errors that users see: one type for each kind of trouble.

Every message says what happened, where in the user's own source, and what to do about it.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.core.source import Span

Dim3 = tuple[int, int, int]


class WarploomError(Exception):
    """Base of every error that Warploom raises on purpose."""


class OptionError(WarploomError):
    """An option of a call was refused; it is also a TypeError or a ValueError."""


class OptionTypeError(OptionError, TypeError):
    """A call has no such option, or the option takes values of another type."""


class OptionValueError(OptionError, ValueError):
    """An option has a value of the right type that does not fit."""


class CompileError(WarploomError):
    """A source cannot be compiled; `log` is what NVIDIA's compiler printed, if that refused it."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class PtxError(WarploomError):
    """A PTX text cannot be used; says where in it, and shows the line."""

    def __init__(self, message: str, span: Span) -> None:
        self.span, self.reason = span, message
        shown = ""
        if span.shown:
            text = span.shown.expandtabs(1).rstrip()
            shown = f"\n    {text}\n    {' ' * (span.column - 1)}{'^' * max(1, span.length)}"
        super().__init__(f"{span}:{span.column}: {message}{shown}")


class PtxSyntaxError(PtxError):
    """The text is not PTX, or it breaks a rule of the language."""


class UnsupportedInstruction(PtxError):
    """An opcode or a modifier that is not in the instruction tables."""


class LinkError(PtxError):
    """Modules that do not fit together: a name is defined twice, or by none of them."""


class LaunchError(WarploomError, ValueError):
    """A launch was refused: a value does not fit, or a resource ran out (`resource`), of which
    `requested` is more than `limit`."""

    def __init__(
        self,
        message: str,
        resource: str | None = None,
        requested: int | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(message)
        self.resource, self.requested, self.limit = resource, requested, limit


@dataclass(frozen=True, slots=True)
class Allocation:
    """A live stretch of device memory: first address, size in bytes, and what it was called."""

    address: int
    size: int
    name: str


class KernelFault(WarploomError):
    """Something a kernel did that stopped it. `line` is `file:line` of the user's source."""

    def __init__(self, message: str, *, kernel: str, line: str, block: Dim3, thread: Dim3) -> None:
        super().__init__(message)
        self.kernel, self.line, self.block, self.thread = kernel, line, block, thread


class MemoryFault(KernelFault):
    """Raised where a kernel accesses memory that it may not access.

    `kind` is "out of bounds", "misaligned" or "read only"; for textures "bad handle", "wrong
    geometry" or "outside surface"; for what the PTX ISA demands of copies and mbarriers "bad size",
    "invalid mbarrier" or "bad count". `size` is in bytes (for a bad count, that count); `nearest`
    is the live allocation closest to `address`, None where there is none.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        address: int,
        size: int,
        nearest: Allocation | None,
        kernel: str,
        line: str,
        block: Dim3,
        thread: Dim3,
    ) -> None:
        super().__init__(message, kernel=kernel, line=line, block=block, thread=thread)
        self.kind, self.address, self.size, self.nearest = kind, address, size, nearest


class DeviceTrap(KernelFault):
    """The kernel executed `trap` ("trap", its `kind`), or what has no meaning: "not a member", "bad
    barrier", "bad index" and the like."""

    def __init__(
        self,
        message: str,
        *,
        kernel: str,
        line: str,
        block: Dim3,
        thread: Dim3,
        kind: str = "trap",
    ) -> None:
        super().__init__(message, kernel=kernel, line=line, block=block, thread=thread)
        self.kind = kind


class DeviceAssert(KernelFault):
    """An `assert` of the kernel did not hold. `line` is where it stands, as `file:line`."""


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Lanes of one warp that wait together: where, and for what."""

    block: Dim3
    warp: int
    lanes: tuple[int, ...]
    line: str
    waits_for: str


class DeadlockError(WarploomError):
    """No thread that is left can ever run again."""

    def __init__(self, message: str, groups: tuple[WaitingGroup, ...]) -> None:
        super().__init__(message)
        self.groups = groups


class InstructionLimit(WarploomError):
    """A launch used up the warp instructions that `max_instructions` gave it."""


class LaunchCancelled(WarploomError):
    """A launch was stopped by `cancel()`, by Ctrl-C in a thread that waited for it, or because the
    process ended. What it had written until then stays."""
