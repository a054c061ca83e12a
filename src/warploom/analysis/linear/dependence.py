"""Tests whether two accesses can reach the same byte, and whether only one thread's can.

The tests are those of compilers for loops, with threads in place of iterations: the range test
(Banerjee), the test of rests by a stride (GCD), and digits: a stride beyond all that the variables
with smaller strides add up to keeps its variable's values apart. They err on one side: what is said
to be apart is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from warploom.analysis.linear.forms import Form, IndexVariable, form
from warploom.analysis.linear.ranges import Range, Ranges


@dataclass(frozen=True)
class AddressRange:
    """The addresses that an instruction reaches: `size` bytes from each of a form on, with the
    ranges of what it is made of."""

    address: Form
    size: int
    ranges: Ranges

    def span(self) -> Range:
        """Return the first byte, and the end behind the last."""
        low, high = self.ranges.of(self.address)
        return low, high + self.size

    def made_of(self, address: Form) -> AddressRange:
        """Return the same of another form of the same variables."""
        return AddressRange(address, self.size, self.ranges)


def never_overlap(one: AddressRange, two: AddressRange) -> bool:
    """Return whether no byte is reached by both, whichever threads do it."""
    return any(_never_overlap_by(one, two, unit) for unit in (0, *_units(one.address, two.address)))


def are_of_one_thread(
    one: AddressRange, two: AddressRange, threads: Iterable[IndexVariable]
) -> bool:
    """Return whether a byte that both reach is reached by one thread; `threads` are the variables
    by which threads differ."""
    thread_variables = set[IndexVariable]()
    for variable in threads:
        values = [one.ranges.of(form(0, {variable: 1})), two.ranges.of(form(0, {variable: 1}))]
        if values[0] == values[1] and values[0][0] == values[0][1]:
            one, two = (_fixed(each, variable, int(values[0][0])) for each in (one, two))
        else:
            thread_variables.add(variable)
    strides, others = dict(one.address.strides), dict(two.address.strides)
    if any(strides.get(each, 0) != others.get(each, 0) for each in thread_variables):
        return False
    return thread_variables <= strides.keys() and _equal_on_overlap(one, two, thread_variables)


def _fixed(addresses: AddressRange, variable: IndexVariable, value: int) -> AddressRange:
    stride = dict(addresses.address.strides).get(variable, 0)
    return addresses.made_of(addresses.address.without(variable).plus(form(value * stride)))


def _never_overlap_by(one: AddressRange, two: AddressRange, unit: int) -> bool:
    """Return whether two accesses are apart for what their addresses leave as rests where whole
    multiples of a unit are left out; 0: of themselves."""
    below, above = _overlap_distances(_remainder(one, unit), _remainder(two, unit))
    if unit == 0:
        return not below < 0 < above
    # A float would round such addresses.
    bounded = below > -_INFINITE and above < _INFINITE
    return bounded and (int(below) // unit + 1) * unit >= above


_INFINITE = float("inf")


def _overlap_distances(one: AddressRange, two: AddressRange) -> Range:
    """Return the open range of distances by which the second would have to be moved for the two to
    meet."""
    (first, end), (other_first, other_end) = one.span(), two.span()
    return first - other_end, end - other_first


def _equal_on_overlap(
    one: AddressRange, two: AddressRange, thread_variables: Set[IndexVariable]
) -> bool:
    """Return whether variables of both are equal where the two meet."""
    if not thread_variables:
        return True
    variables = {v for each in (one, two) for v, _ in each.address.strides}
    if variables == thread_variables and len(thread_variables) == 1 and _fits_stride(one, two):
        return True
    return any(
        _equal_by_parts(one, two, thread_variables, unit)
        for unit in _units(one.address, two.address)
    )


def _fits_stride(one: AddressRange, two: AddressRange) -> bool:
    """Return whether accesses by the same single variable only meet where it is equal."""
    ((_, stride),) = one.address.strides
    moved = two.address.constant - one.address.constant
    return max(one.size - moved, two.size + moved) <= abs(stride)


def _equal_by_parts(
    one: AddressRange, two: AddressRange, thread_variables: Set[IndexVariable], unit: int
) -> bool:
    """Return whether they are for two parts of each address, multiples of a unit and rests, which
    both have to agree: rests do not make up for a unit."""
    rests = _remainder(one, unit), _remainder(two, unit)
    below, above = _overlap_distances(*rests)
    whole = _quotient(one, unit), _quotient(two, unit)
    of_whole = {v for v, _ in whole[0].address.strides} & thread_variables
    of_rests = thread_variables - of_whole
    if not (-unit <= below and above <= unit):
        return False
    made_smaller = bool(of_rests) or bool(rests[0].address.strides) or unit > 1
    return (
        made_smaller and _equal_on_overlap(*whole, of_whole) and _equal_on_overlap(*rests, of_rests)
    )


def _units(*forms: Form) -> Iterator[int]:
    """Yield the strides of forms, the greatest first."""
    yield from sorted({abs(stride) for one in forms for _, stride in one.strides}, reverse=True)


def _remainder(addresses: AddressRange, unit: int) -> AddressRange:
    """Return what is left of addresses without variables whose strides are multiples of a unit."""
    strides = {v: s for v, s in addresses.address.strides if unit == 0 or s % unit}
    return addresses.made_of(form(addresses.address.constant, strides))


def _quotient(addresses: AddressRange, unit: int) -> AddressRange:
    """Return those variables, with strides in units, as accesses of one unit."""
    strides = {v: s // unit for v, s in addresses.address.strides if s % unit == 0}
    return AddressRange(form(0, strides), 1, addresses.ranges)
