"""Samplers."""

from __future__ import annotations

from warploom.clients.opencl.contexts import ClContext
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import Answers, answer, properties_at, property_words, uint, word
from warploom.clients.opencl.objects import ClObject, get, register_counting
from warploom.clients.opencl.table import entry
from warploom.texture.descriptors import BORDERED, CLAMP, LINEAR, MIRROR, WRAP, sampler_word
from warploom.texture.descriptors import NORMALIZED as NORMALIZED_COORDINATES

NORMALIZED, ADDRESSING, FILTER = 0x1152, 0x1153, 0x1154
DEFAULTS = {NORMALIZED: 1, ADDRESSING: 0x1132, FILTER: 0x1140}

ADDRESSES = {0x1130: CLAMP, 0x1131: CLAMP, 0x1132: BORDERED, 0x1133: WRAP, 0x1134: MIRROR}
FILTERS = {0x1140: 0, 0x1141: LINEAR}
"""The modes of the texture unit. Outside an image without a mode anything may be read."""


class Sampler(ClObject):
    """A sampler: how coordinates are meant, and what lies between pixels and outside."""

    what = "sampler"
    invalid = Status.INVALID_SAMPLER

    def __init__(
        self, context: ClContext, given: dict[int, int], properties: dict[int, int] | None
    ) -> None:
        super().__init__()
        self.context, self.given, self.properties = context, given, properties
        context.hold()

    @property
    def word(self) -> int:
        """Returns what a kernel gets: the sampler as the texture unit takes it."""
        mode, normalized = ADDRESSES[self.given[ADDRESSING]], bool(self.given[NORMALIZED])
        flags = FILTERS[self.given[FILTER]] | NORMALIZED_COORDINATES * normalized
        return sampler_word((mode, mode, mode), flags=flags)

    def end(self) -> None:
        self.context.drop()


register_counting(entry, "Sampler", Sampler)


@entry("clCreateSampler")
def create(context: int, normalized: int, addressing: int, filter: int) -> int:
    given = {NORMALIZED: normalized, ADDRESSING: addressing, FILTER: filter}
    return _create(context, given, None)


@entry("clCreateSamplerWithProperties")
def create_with(context: int, properties: int) -> int:
    given = properties_at(properties, Status.INVALID_VALUE)
    for name in given:
        known = name in DEFAULTS
        demand(known, Status.INVALID_VALUE, f"{name:#x} is not a sampler property")
    return _create(context, DEFAULTS | given, given if properties else None)


def _create(context: int, given: dict[int, int], properties: dict[int, int] | None) -> int:
    at = get(context, ClContext)
    known = given[ADDRESSING] in ADDRESSES and given[FILTER] in FILTERS
    known = known and given[NORMALIZED] in (0, 1)
    demand(
        known,
        Status.INVALID_VALUE,
        "the sampler's addressing mode, filter mode or normalized-coordinates flag is invalid",
    )
    repeats = given[ADDRESSING] in (0x1133, 0x1134) and not given[NORMALIZED]
    demand(
        not repeats,
        Status.INVALID_VALUE,
        "CL_ADDRESS_REPEAT and CL_ADDRESS_MIRRORED_REPEAT require normalized coordinates",
    )
    return Sampler(at, given, properties).handle


ANSWERS: Answers[Sampler] = {
    0x1150: lambda s: uint(s.references),
    0x1151: lambda s: word(s.context.handle),
    0x1152: lambda s: uint(s.given[NORMALIZED]),
    0x1153: lambda s: uint(s.given[ADDRESSING]),
    0x1154: lambda s: uint(s.given[FILTER]),
    0x1158: lambda s: b"" if s.properties is None else property_words(s.properties),
}


@entry("clGetSamplerInfo")
def sampler_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    answer(ANSWERS, get(handle, Sampler), question, capacity, target, size)
