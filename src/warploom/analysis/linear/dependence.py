"""Tests whether two accesses can overlap in memory, and whether they overlap only within one
thread, or one thread block.

These are the dependence tests of loop compilers, with threads instead of iterations: the range test
(Banerjee), the remainder test by a stride (GCD), and positional digits: a stride that exceeds the
extent of all variables with smaller strides separates the values of its variable.

    4 * tid, 4 bytes   and  4 * tid, 4 bytes        overlap only for equal tid: of one thread
    8 * tid, 4 bytes   and  8 * tid + 4, 4 bytes    never overlap: remainders by 8 are disjoint

The tests are conservative: True is always right, False may be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from warploom.analysis.linear.forms import Form, IndexVariable, form
from warploom.analysis.linear.ranges import Range, Ranges


@dataclass(frozen=True)
class AddressRange:
    """The addresses of an access: `size` bytes from each value of a form on, with the ranges of the
    form's variables."""

    address: Form
    size: int
    ranges: Ranges

    def span(self) -> Range:
        """Returns the least address, and the end of the bytes at the greatest; infinite if
        unbounded."""
        low, high = self.ranges.of(self.address)
        return low, high + self.size

    def range_of(self, address: Form) -> AddressRange:
        """Returns the range of another form `address` of the same variables, with the same size."""
        return AddressRange(address, self.size, self.ranges)


def never_overlap(left: AddressRange, right: AddressRange) -> bool:
    """Returns whether it is certain that no byte is touched by both accesses, for any two threads:
    their whole ranges, or remainders modulo a stride, are disjoint."""
    return any(
        _never_overlap_by(left, right, unit) for unit in (0, *_units(left.address, right.address))
    )


def overlap_only_if_equal(
    left: AddressRange, right: AddressRange, variables: Iterable[IndexVariable]
) -> bool:
    """Returns whether all of `variables` have equal values in both accesses wherever these overlap.
    With the variables that identify a thread, each byte that both accesses touch is then touched
    by one thread only; with the block indices, by one thread block only. Variables that the ranges
    of both fix to one equal value are ignored. False, perhaps wrongly, if another has no stride in
    the addresses, or different strides in the two."""
    identity = set[IndexVariable]()
    for variable in variables:
        values = [left.ranges.of(form(0, {variable: 1})), right.ranges.of(form(0, {variable: 1}))]
        # A variable that facts fix to one value does not distinguish threads.
        if values[0] == values[1] and values[0][0] == values[0][1]:
            left, right = (_fixed(side, variable, int(values[0][0])) for side in (left, right))
        else:
            identity.add(variable)
    strides, right_strides = dict(left.address.strides), dict(right.address.strides)
    if any(strides.get(variable, 0) != right_strides.get(variable, 0) for variable in identity):
        return False
    return identity <= strides.keys() and _equal_on_overlap(left, right, identity)


def _fixed(addresses: AddressRange, variable: IndexVariable, value: int) -> AddressRange:
    """Returns addresses with a variable replaced by a constant, the one value that it can have."""
    stride = dict(addresses.address.strides).get(variable, 0)
    return addresses.range_of(addresses.address.without(variable).plus(form(value * stride)))


def _never_overlap_by(left: AddressRange, right: AddressRange, unit: int) -> bool:
    """Returns whether two accesses are disjoint modulo `unit` (the GCD test), judged by the terms
    of their addresses whose strides are no multiples of it; False if these are unbounded. `unit` 0:
    whether their whole ranges are disjoint."""
    # For 8 * tid and 8 * tid + 4, of 4 bytes each, the remainders by 8 are 0 and 4: they overlap if
    # the second moves by more than -8 and less than 0 bytes, and no multiple of 8 does that.
    below, above = _overlap_distances(_remainder(left, unit), _remainder(right, unit))
    if unit == 0:
        return not below < 0 < above
    # Bounds are floats only for infinities: arithmetic on finite ones stays exact, in integers.
    bounded = below > -_INFINITE and above < _INFINITE
    # The other terms move an access by multiples of `unit`: no multiple lies between the bounds.
    return bounded and (int(below) // unit + 1) * unit >= above


_INFINITE = float("inf")


def _overlap_distances(left: AddressRange, right: AddressRange) -> Range:
    """Returns the bounds (exclusive) of the distances by which the second access would have to move
    to overlap the first; the accesses may overlap as they are if 0 lies between."""
    (left_start, left_end), (right_start, right_end) = left.span(), right.span()
    return left_start - right_end, left_end - right_start


def _equal_on_overlap(
    left: AddressRange, right: AddressRange, identity: Set[IndexVariable]
) -> bool:
    """Returns whether each of `identity` has equal values in both accesses wherever these
    overlap: it is the only variable of the addresses, and one stride covers both accesses, or it
    follows for the quotients and the remainders of the addresses by some stride of theirs. True if
    there are none to compare."""
    if not identity:
        return True
    variables = {v for access in (left, right) for v, _ in access.address.strides}
    if variables == identity and len(identity) == 1 and _fits_stride(left, right):
        return True
    return any(
        _equal_by_parts(left, right, identity, unit) for unit in _units(left.address, right.address)
    )


def _fits_stride(left: AddressRange, right: AddressRange) -> bool:
    """Returns whether two accesses, whose addresses are a constant plus the same stride times one
    variable, overlap only where its values are equal: both, at their distance from each other, fit
    within one stride."""
    ((_, stride),) = left.address.strides
    moved = right.address.constant - left.address.constant
    return max(left.size - moved, right.size + moved) <= abs(stride)


def _equal_by_parts(
    left: AddressRange, right: AddressRange, identity: Set[IndexVariable], unit: int
) -> bool:
    """Returns whether `identity` are equal on overlap, judged separately by quotients (terms whose
    strides are multiples of `unit`) and remainders (all other terms). The distance of the constants
    is split among both in either way that leaves less than a unit. False if remainders can differ
    by a unit or more and so compensate for different quotients, or if the remainders have no
    variable and `unit` is 1."""
    distance = right.address.constant - left.address.constant
    return any(
        _equal_in_both(
            (_quotient(left, unit, 0), _quotient(right, unit, (distance - rest) // unit)),
            (_rest(left, unit, 0), _rest(right, unit, rest)),
            identity,
            unit,
        )
        for rest in {distance % unit, distance % unit - unit}
    )


def _equal_in_both(
    whole: tuple[AddressRange, AddressRange],
    rests: tuple[AddressRange, AddressRange],
    identity: Set[IndexVariable],
    unit: int,
) -> bool:
    """Returns whether `identity` are equal where two accesses overlap, whose addresses are `unit`
    times `whole` plus `rests`."""
    # For 1024 * ctaid + 4 * tid (256 threads, 4 bytes) and unit 1024, the rests 4 * tid span 0 to
    # 1024, and overlap only if they move by less than 1024 bytes: by less than one unit of the
    # quotients `ctaid`, which therefore have to be equal by themselves. With 8 * tid that fails.
    below, above = _overlap_distances(*rests)
    of_whole = {v for v, _ in whole[0].address.strides} & identity
    of_rests = identity - of_whole
    if not (-unit <= below and above <= unit):
        return False
    # Else the quotients are the same problem again, and the recursion would not end.
    is_reduced = bool(of_rests) or bool(rests[0].address.strides) or unit > 1
    return (
        is_reduced and _equal_on_overlap(*whole, of_whole) and _equal_on_overlap(*rests, of_rests)
    )


def _units(*forms: Form) -> Iterator[int]:
    """Yields the strides of forms without signs, each once, the greatest first."""
    yield from sorted(
        {abs(stride) for address in forms for _, stride in address.strides}, reverse=True
    )


def _remainder(addresses: AddressRange, unit: int) -> AddressRange:
    """Returns addresses without the terms whose strides are multiples of a unit; unchanged for unit
    0."""
    strides = {v: stride for v, stride in addresses.address.strides if unit == 0 or stride % unit}
    return addresses.range_of(form(addresses.address.constant, strides))


def _rest(addresses: AddressRange, unit: int, constant: int) -> AddressRange:
    """Returns addresses without the terms whose strides are multiples of a unit, with another
    constant."""
    strides = {v: stride for v, stride in addresses.address.strides if stride % unit}
    return addresses.range_of(form(constant, strides))


def _quotient(addresses: AddressRange, unit: int, constant: int) -> AddressRange:
    """Returns the terms whose strides are multiples of a unit that is not 0, divided by it, and a
    constant, as an access of size 1."""
    strides = {v: stride // unit for v, stride in addresses.address.strides if stride % unit == 0}
    return AddressRange(form(constant, strides), 1, addresses.ranges)
