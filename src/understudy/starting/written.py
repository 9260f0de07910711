"""What a column of text is, by noisy counts of how its values are written: public post-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from understudy.domain.date_format import DateFormat
from understudy.domain.intake import Intake
from understudy.table.column_reader import SIGNS, WRITINGS, NumberReading, ValueKind

ENOUGH = 0.95
"""The share of a column's texts that has to be written in one way, or in ways that go together."""

SEEN = 0.02
"""The share from which a way of writing days, or codes among whole numbers, count as occurring."""

FORMATS = {"day": "%Y-%m-%d", "day/month": "%d/%m/%Y", "month/day": "%m/%d/%Y", "day.month": "%d.%m.%Y"}


def reading_of(counts: Sequence[int]) -> tuple[NumberReading | None, str]:
    """How a column of text is read as numbers or days; None where it is text, or yes and no. And why, in words.

    `counts` are noisy, one for each of the `WRITINGS`, or for the first ones of them, where they were bought when
    no others were known. What is read as text has its `kind` in the words.
    """
    some = dict.fromkeys(WRITINGS, 0.0)
    some |= {name: max(float(count), 0.0) for name, count in zip(WRITINGS, counts, strict=False)}
    total = sum(some.values()) - some["missing"]
    if total <= 0:
        return None, "nothing"
    share = {name: count / total for name, count in some.items() if name != "missing"}

    def part(*names: str) -> float:
        return sum(share[name] for name in names)

    if share["code"] >= SEEN and part("whole", "code") >= ENOUGH:
        return None, "codes of digits, such as 007"
    if share["code"] < SEEN:  # a few, among numbers
        share["whole"] += share["code"]
    if part("whole") >= ENOUGH:
        return NumberReading(ValueKind.WHOLE), "whole numbers"
    if part("whole", "whole point") >= ENOUGH and not share["real"]:
        return NumberReading(ValueKind.WHOLE), "whole numbers, written with a point"
    share["real"] += share["whole point"]
    if part("flag") >= ENOUGH:
        return None, "yes or no"
    if part("whole", "real") >= ENOUGH:
        return NumberReading(ValueKind.REAL), "numbers"
    days = part("day", "day/month", "month/day", "day or month", "day.month")
    if days >= ENOUGH:
        return _days(share)
    if part("moment", "day") >= ENOUGH:
        return NumberReading(ValueKind.MOMENT), "times"
    for names, intake, words in _MARKED:
        if part(*names) >= ENOUGH:
            return NumberReading(ValueKind.REAL, intake), words
    top = max(share, key=lambda name: share[name])
    if part("text", "flag") >= ENOUGH:  # letters that may stand for yes or no, among others: F and M
        return None, "text"
    if top != "text" and share[top] >= 0.5:
        return None, f"mixed: about {share[top]:.0%} of it are {_WORDS.get(top, top)}, and the rest is not"
    return None, "text"


_MARKED = (
    (("thousands", "whole", "real"), Intake(thousands=","), "numbers with commas between thousands"),
    (("comma", "whole"), Intake(decimal=",", thousands="."), "numbers with a decimal comma"),
    (("currency", "thousands", "whole", "real"), Intake(strip=SIGNS, thousands=","), "amounts of money"),
    (
        ("currency comma", "currency", "comma", "whole"),
        Intake(strip=SIGNS, decimal=",", thousands="."),
        "amounts of money with a decimal comma",
    ),
    (("per cent", "per cent point", "whole", "real"), Intake(percent=True), "numbers in per cent"),
    (
        ("per cent", "per cent comma", "whole"),
        Intake(percent=True, decimal=","),
        "numbers in per cent with a decimal comma",
    ),
)
_WORDS: Mapping[str, str] = {
    "whole": "whole numbers",
    "code": "codes of digits",
    "whole point": "whole numbers",
    "real": "numbers",
    "day": "days",
    "moment": "times",
    "thousands": "numbers with marks between thousands",
    "comma": "numbers with a decimal comma",
    "currency": "amounts of money",
    "currency comma": "amounts of money",
    "flag": "yes or no",
    "per cent": "numbers in per cent",
    "per cent point": "numbers in per cent",
    "per cent comma": "numbers in per cent",
}


def _days(share: Mapping[str, float]) -> tuple[NumberReading | None, str]:
    """Days in the formats that occur, unless day and month stand in two orders."""
    if share["day/month"] >= SEEN and share["month/day"] >= SEEN:
        return None, "mixed: days are written with the day first and with the month first"
    occurring = [name for name in FORMATS if share[name] >= SEEN]
    if share["day or month"] >= SEEN and not {"day/month", "month/day"} & set(occurring):
        return None, "mixed: of its days nobody can tell whether the day or the month comes first"
    if occurring == ["day"]:
        return NumberReading(ValueKind.DAY), "days"
    formats = tuple(DateFormat(FORMATS[name]) for name in occurring)
    written = ", ".join(FORMATS[name] for name in occurring)
    return NumberReading(ValueKind.DAY, Intake(formats=formats)), f"days, written {written}"
