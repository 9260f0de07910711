"""Moments of measures: polynomials in places, exactly; and what follows from their sums."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.attribute import Categories
from understudy.domain.bins import MEASURE_BITS, Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, QueryError
from understudy.query.box import from_plain, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.moment import POLYNOMIALS, UNITS, Moment
from understudy.sql.measured import FAMILIES

DOMAIN = Domain(
    (
        Bins.measure("x", 0, 7),
        Bins.measure("y", -3, 9, resolution=3),
        Categories(name="sex", values=("F", "M")),
    )
)
PLACES = st.builds(Fraction, st.integers(0, 24), st.just(24))


def value(kind: str, places: tuple[Fraction, ...]) -> Fraction:
    return sum(
        (
            c * prod(p**e for p, e in zip(places, exponents, strict=True))
            for exponents, c in POLYNOMIALS[kind].items()
        ),
        Fraction(0),
    )


def arity(kind: str) -> int:
    return len(next(iter(POLYNOMIALS[kind])))


@given(st.sampled_from(UNITS), PLACES, PLACES)
def test_shares_are_never_negative_and_add_up_to_one(unit, t, s):
    values = [value(kind, (t, s)[: arity(kind)]) for kind in unit]
    assert min(values) >= 0
    assert sum(values) == 1


@given(st.sampled_from(sorted(POLYNOMIALS)), PLACES, PLACES)
def test_what_a_row_adds_lies_between_the_declared_ends(kind, t, s):
    moment = Moment(kind, ("x", "y")[: arity(kind)])
    assert moment.low <= value(kind, (t, s)[: arity(kind)]) <= moment.high


@pytest.mark.parametrize("kind", sorted(POLYNOMIALS))
def test_both_ends_are_attained(kind):
    moment = Moment(kind, ("x", "y")[: arity(kind)])
    grid = [Fraction(i, 2) for i in range(3)]
    found = {value(kind, (t, s)[: arity(kind)]) for t in grid for s in grid}
    assert max(found) == moment.high or kind == "share 1 of 2"  # which reaches 1/2 only
    assert min(found) == moment.low


@given(st.sampled_from(sorted(FAMILIES)), st.lists(st.tuples(PLACES, PLACES), max_size=6))
def test_the_number_of_rows_and_the_sums_of_places_follow_from_every_family(which, rows):
    kinds, forms = FAMILIES[which]
    sums = []
    for kind in kinds:
        of, _, letters = kind.rpartition(" ")
        chosen = [tuple({"x": t, "y": s}[letter] for letter in letters) for t, s in rows]
        sums.append(
            sum((value(of, places) for places in chosen), Fraction(0)) if kind else Fraction(len(rows))
        )
    true = {
        "rows": Fraction(len(rows)),
        "x": sum((t for t, _ in rows), Fraction(0)),
        "y": sum((s for _, s in rows), Fraction(0)),
        "xx": sum((t * t for t, _ in rows), Fraction(0)),
        "xy": sum((t * s for t, s in rows), Fraction(0)),
    }
    for name, form in forms.items():
        assert sum(Fraction(c) * part for c, part in zip(form, sums, strict=True)) == true[name], name


@given(
    st.sampled_from(sorted(POLYNOMIALS)),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), max_size=5),
)
def test_sums_in_steps_are_the_exact_ones_rounded_once(kind, rows):
    moment = Moment(kind, ("x", "y")[: arity(kind)])
    sums = {
        e: [sum(prod(k**p for k, p in zip(row, e, strict=False)) for row in rows)] for e in moment.polynomial
    }
    exact = sum((value(kind, (Fraction(k, 7), Fraction(j, 4))[: arity(kind)]) for k, j in rows), Fraction(0))
    (steps,) = moment.steps(DOMAIN, sums, 64)
    assert abs(Fraction(steps, 64) - exact) <= Fraction(1, 128)


@given(*[st.builds(Fraction, st.integers(-90, 90), st.integers(1, 12))] * 2)
def test_rounding_moves_two_numbers_apart_by_no_more_than_the_next_whole_distance(a, b):
    apart = abs(((2 * a + 1) // 2) - ((2 * b + 1) // 2))
    assert apart <= -(-abs(a - b) // 1)


def test_a_moment_is_part_of_a_questions_name_and_of_what_is_written_down():
    where = LinearQuery.table(DOMAIN, ("sex",), [1, 0, 0])
    plain_count = Marginal(DOMAIN, (), where)
    moment = Marginal(DOMAIN, (), where, Moment("centred", ("x",)))
    other = Marginal(
        Domain((Bins.measure("x", 0, 14, resolution=2), *DOMAIN.attributes[1:])), (), None, moment.moment
    )
    assert len({plain_count.key, moment.key, Marginal(DOMAIN, (), where, Moment("square", ("x",))).key}) == 3
    assert other.key != Marginal(DOMAIN, (), None, moment.moment).key
    assert from_plain(DOMAIN, plain(moment)) == moment
    assert from_plain(DOMAIN, plain(plain_count)) == plain_count
    assert "moment" not in plain(plain_count)  # what version 0.1 wrote down of a count


def test_a_resolution_does_not_rename_the_cells():
    without = Bins(name="x", starts=(0, 5), upper=9)
    with_one = Bins(name="x", starts=(0, 5), upper=9, resolution=Fraction(1))
    assert without.identity == with_one.identity
    assert without != with_one


@pytest.mark.parametrize(
    ("bounds", "resolution"),
    [
        ((0, 10), 3),
        ((0, 10), 0),
        ((0, 10), Fraction(1, 2)),
        ((0, 2**27), 1),
        ((0.0, 1.0), Fraction(1, 2**27)),
    ],
)
def test_a_resolution_that_cannot_be_summed_by_is_refused(bounds, resolution):
    with pytest.raises(DomainError):
        Bins.measure("x", *bounds, resolution=resolution)


def test_two_words_hold_the_square_of_the_largest_step():
    assert (1 << MEASURE_BITS) ** 2 < 1 << (2 * MEASURE_BITS + 1)
    assert Bins.measure("x", 0, 2**26).steps == 1 << MEASURE_BITS


def test_a_moment_of_what_is_no_measure_is_refused():
    with pytest.raises(QueryError, match="not declared as a measure"):
        Marginal(DOMAIN, (), moment=Moment("position", ("sex",)))
    with pytest.raises(QueryError):
        Moment("position", ("x", "y"))
    half = LinearQuery.table(DOMAIN, ("sex",), [0.5, 1, 1])
    with pytest.raises(QueryError, match="weights of 0 and 1"):
        Marginal(DOMAIN, (), half, Moment("position", ("x",)))
