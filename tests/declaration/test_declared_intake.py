"""What a declaration says about how text is written: read key by key, and refused where it means nothing."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import pytest

from understudy.declaration.file import parse
from understudy.domain.attribute import Attribute
from understudy.domain.domain import Domain
from understudy.domain.plain import domain_as_plain, domain_digest, domain_from_plain
from understudy.errors import DeclarationError


def declared(line: str) -> Attribute:
    text = f"understudy: 1\nname: t\nsource: t.csv\nbudget: {{epsilon: 1}}\nattributes:\n  x: {line}\n"
    return parse(text).domain["x"]


DATE = "type: date, edges: [2000-01-01, 2010-01-01, 2020-01-01]"
REAL = "type: real, bounds: [0, 100], bins: 10"
WHOLE = "type: integer, bounds: [0, 9]"


def test_each_key_is_understood():
    assert declared(f'{{{DATE}, format: "%d/%m/%Y"}}').proper_code(dt.date(2012, 1, 1)) == 1
    assert declared(f'{{{DATE}, format: "%d/%m/%Y"}}').code("31/12/2012") == 1
    several = declared(f'{{{DATE}, format: ["%d/%m/%Y", "%Y%m%d"], missing: 0000-00-00, null: true}}')
    assert [several.code(text) for text in ("31/12/2005", "20120101", "0000-00-00", "2012-01-01")] == [
        0,
        1,
        2,
        2,
    ]
    euros = declared(
        f'{{{REAL}, strip: ["€", " "], decimal: ",", thousands: ".", missing: [n/a], null: true, decimals: 2}}'
    )
    assert [euros.code(text) for text in ("€ 12,50", "1.000,00", "n/a", "1.5")] == [1, 9, 10, 10]
    assert euros.decimals == 2  # type: ignore[attr-defined]
    assert declared(f"{{{REAL}, percent: true}}").code("13.5%") == 1
    assert declared(f'{{{WHOLE}, missing: ["N/A", "-"], null: true}}').code("N/A") == 10
    assert declared("{type: category, values: [a], missing: ['-'], null: true}").code("-") == 2
    assert declared("{type: boolean, missing: ['?'], null: true}").code("?") == 2
    assert declared(f"{{{WHOLE}, unreadable: 0.2}}").unreadable == Fraction(1, 5)


def test_words_of_a_boolean_are_for_writing_and_change_no_cell():
    plain, spoken = declared("{type: boolean}"), declared("{type: boolean, words: [Yes, No]}")
    assert (plain.words, spoken.words) == (("true", "false"), ("Yes", "No"))  # type: ignore[attr-defined]
    assert plain.identity == spoken.identity
    assert [spoken.code(text) for text in ("yes", "no", "t", "0", "maybe")] == [1, 0, 1, 0, 0]
    assert domain_from_plain(domain_as_plain(Domain((spoken,)))).attributes == (spoken,)
    assert "words" not in domain_as_plain(Domain((plain,)))[0]
    digest = "866dece8d1ab18995aec48306f6d8281fef5f180e73b303e771ba7cbd33d1428"
    assert domain_digest(Domain((plain,))) == digest  # what folders of version 0.1 hold
    assert domain_digest(Domain((spoken,))) == digest


def test_codes_with_leading_zeros_stay_text():
    zips = declared('{type: category, values: ["01234", "1234"]}')
    assert [zips.code(text) for text in ("01234", "1234", "001234")] == [0, 1, 2]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f'{{{DATE}, format: "%d/%m"}}', "each once"),
        (f"{{{DATE}, format: []}}", "no format in the list"),
        (f'{{{DATE}, format: "%Q"}}', "not understood"),
        (f'{{{WHOLE}, format: "%d/%m/%Y"}}', "means nothing for a integer"),
        (f'{{{DATE}, decimal: ","}}', "means nothing for a date"),
        ("{type: boolean, words: [no, yes]}", "'no' is not read as true"),
        ("{type: boolean, words: [ja, nein]}", "'ja' is not read as true"),
        ("{type: boolean, words: [yes, '0'], missing: ['0'], null: true}", "'0' is not read as false"),
        ("{type: boolean, words: [yes]}", "two words"),
        ("{type: category, values: [a], words: [yes, no]}", "means nothing for a category"),
        ("{type: category, values: [a], strip: x}", "means nothing for a category"),
        (f"{{{WHOLE}, decimals: 2}}", "means nothing for a integer"),
        (f"{{{REAL}, decimals: 40}}", "between 0 and 12"),
        (f'{{{REAL}, decimal: "."}}', ""),
        (f'{{{REAL}, decimal: ",", thousands: ","}}', "cannot be the mark"),
        (f"{{{REAL}, percent: yes}}", "not one of the choices"),
        (f"{{{REAL}, unreadable: 2}}", "between 0 and 1"),
        (f'{{{REAL}, strip: "1"}}', "cannot be stripped"),
    ],
)
def test_a_slip_is_told_with_its_line(line, said):
    if not said:
        assert declared(line).kind == "real"
        return
    with pytest.raises(DeclarationError, match=said) as refused:
        declared(line)
    assert refused.value.line == 6
