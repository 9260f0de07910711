"""A ledger as a page for people, like a statement of account: who spent what and when, what is left, what was
verified.

Made of an exported document and of the verifier's verdict on it: questions, names, times and prices. Answers,
and the hidden states of handles, are not read for it, and their hashes are not shown. A ledger that does not
verify is shown all the same, with everything that is wrong with it, so no value of an entry is trusted to
have its type.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from understudy.ledger.interface import is_fresh
from understudy.pages.bars import PlotBar, bars
from understudy.pages.markup import (
    CellMarkup,
    banner,
    escaped,
    facts,
    figure,
    glossary,
    many,
    paragraph,
    section,
    table,
)
from understudy.pages.shell import document
from understudy.percent import percent_of
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS

MOST_ENTRIES = 200
"""The newest entries that are listed, unless told otherwise."""
MOST_PROBLEMS = 50
MOST_ANALYSTS = 40
MOST_DAYS = 31

MOST_LETTERS = 240
"""Of a question that is listed."""

_DIGESTS = re.compile(r" [#@][0-9a-f]{16,64}\b")
"""Fingerprints of a query's weights and of the table's version, which a question carries for machines."""

KINDS: Mapping[str, str] = {
    "open": "opened",
    "debit": "spent",
    "answer": "answer kept",
    "step": "further answer kept",
    "snapshot": "books kept",
}

GLOSSARY: Mapping[str, str] = {
    "budget": "The most that may ever be spent on this table. It does not grow back.",
    "spent": (
        "A debit: the price of a question, written down before the table was looked at. Debits are never "
        "refunded."
    ),
    "answer kept": (
        "The released answer to a debit was stored, so that the same request gets it again for nothing."
    ),
    "further answer kept": (
        "An answer under a debit that pays for several, such as that of a session. It costs nothing more."
    ),
    "books kept": (
        "A fingerprint of the running totals, from which the ledger is opened faster. It costs nothing, and the "
        "verifier works it out again."
    ),
    "epsilon, rho": (
        "Currencies of privacy. epsilon is spent where the budget has no delta; rho, the price of normal "
        "noise, where it has one."
    ),
    "joint price": (
        "A debit costs what it adds to the total. Debits together can cost less than each of them alone."
    ),
    "verified": (
        "Every hash, link, price and sum was worked out again by code that shares nothing with what wrote "
        "them."
    ),
    "last hash": (
        "A fingerprint of the whole ledger. Whoever noted it can tell later whether an entry before it was "
        "changed."
    ),
}


def statement(
    table_name: str,
    budget: Budget,
    entries: Sequence[Mapping[str, Any]],
    verdict: Mapping[str, Any] | None,
    *,
    place: str,
    last: int = MOST_ENTRIES,
    made: str = "",
) -> str:
    """The page of a ledger with the declared `budget`; `verdict` is None where nothing was ever charged."""
    cap = budget.cap
    spent = _units(entries[-1]["total"]) if entries else 0
    return document(
        "ledger",
        f"Ledger of {table_name}",
        _verdict(verdict),
        facts(
            {
                "budget": (str(budget), f"{cap.currency} {cap.amount:.6g}"),
                "spent": (percent_of(spent, cap.units), f"{cap.currency} {spent / UNITS:.6g}"),
                "left": (
                    percent_of(cap.units - spent, cap.units),
                    f"{cap.currency} {(cap.units - spent) / UNITS:.6g}",
                ),
                **_of_filter(budget, spent),
                **_of_delta(budget, verdict),
                "entries": (f"{len(entries):,}", many(sum(_is_debit(e) for e in entries), "debit")),
                "newest entry": str(entries[-1]["at"])[:10] if entries else "none",
            }
        ),
        _analysts(entries, cap.units),
        _days(entries, cap.units),
        _listed(entries, cap.units, last),
        _check(verdict, place),
        glossary(GLOSSARY),
        lead=(
            "Who spent what of the table's privacy budget, when and on which question. Every debit was "
            "written here before the table was looked at."
        ),
        made=made,
    )


def _of_filter(budget: Budget, spent: int) -> dict[str, tuple[str, str]]:
    """How rho is counted, and the (ε, δ) of what was spent; nothing of a pure epsilon."""
    if budget.is_pure:
        return {}
    epsilon, delta = budget.spent_epsilon(type(budget.cap)(spent)), float(budget.conversion_delta)
    told = f"epsilon {epsilon:.4g}, delta {delta:.3g}"
    return {
        "spent, converted": (told, budget.floor_told() or "of all charges together"),
        "filter": (budget.filter.name, budget.filter.described()),
    }


def _of_delta(budget: Budget, verdict: Mapping[str, Any] | None) -> dict[str, tuple[str, str]]:
    """What was spent of the part of delta that is for keys, where the budget has one."""
    if not budget.key_delta:
        return {}
    spent = 0.0 if verdict is None else float(verdict.get("key_delta_spent", 0))
    cap = float(budget.key_delta)
    return {"delta for keys": (percent_of(spent, cap), f"{spent:.3g} of {cap:.3g}")}


def _verdict(verdict: Mapping[str, Any] | None) -> str:
    if verdict is None:
        return banner(
            "good", "Nothing was charged yet", "The ledger begins with the first question that is paid for."
        )
    if verdict["sound"]:
        return banner(
            "good",
            "Verified",
            f"Every hash, link, price and sum of {many(verdict['entries'], 'entry', 'entries')} was worked "
            "out again, and all of them are right.",
        )
    problems = [str(problem) for problem in verdict["problems"]]
    items = "".join(f"<li>{escaped(problem)}</li>" for problem in problems[:MOST_PROBLEMS])
    more = f"<li>… and {len(problems) - MOST_PROBLEMS:,} more</li>" if len(problems) > MOST_PROBLEMS else ""
    said = (
        f"{many(len(problems), 'thing')} in this ledger is not as it was written. Restore its newest copy "
        "before anything "
    )
    return banner("bad", "NOT SOUND", said + "is asked.") + f"<ul>{items}{more}</ul>"


def _is_debit(entry: Mapping[str, Any]) -> bool:
    return entry["kind"] in ("debit", "open") and _units(entry["cost"]) > 0


def _units(value: Any) -> int:
    """A number of units; 0 where a damaged entry holds something else."""
    return value if type(value) is int else 0


def _analyst(entry: Mapping[str, Any]) -> str:
    if entry["kind"] == "open":
        return "spent before this ledger"
    return str(entry["analyst"] or "no name given")


def _analysts(entries: Sequence[Mapping[str, Any]], cap: int) -> str:
    spent, debits, latest = Counter[str](), Counter[str](), dict[str, str]()
    for entry in filter(_is_debit, entries):
        name = _analyst(entry)
        spent[name] += _units(entry["cost"])
        debits[name] += 1
        latest[name] = str(entry["at"])[:10]
    if not spent:
        return ""
    ranked = spent.most_common()
    lines = [
        PlotBar(name, units / cap * 100 if cap else 0.0, hint=f"{name}: {percent_of(units, cap)}")
        for name, units in ranked[:MOST_ANALYSTS]
    ]
    rows = [
        [name, f"{debits[name]:,}", percent_of(units, cap), f"{units / UNITS:.6g}", latest[name]]
        for name, units in ranked[:MOST_ANALYSTS]
    ]
    more = len(ranked) - MOST_ANALYSTS
    return section(
        "Who spent it",
        figure(bars(lines, words="Part of the budget that each analyst spent", unit="% of the whole budget"))
        + table(
            ["analyst", "debits", "part of the budget", "amount", "last debit"], rows, numbers=(1, 2, 3),
            words="What each analyst spent", stack=True,
        )
        + (paragraph(f"{many(more, 'more analyst')} spent less.", "note") if more > 0 else ""),
    )  # fmt: skip


def _days(entries: Sequence[Mapping[str, Any]], cap: int) -> str:
    """By day, or by month where there are many days."""
    debits = [entry for entry in entries if _is_debit(entry)]
    if not debits:
        return ""
    length, what = (10, "day") if len({str(e["at"])[:10] for e in debits}) <= MOST_DAYS else (7, "month")
    spent = Counter[str]()
    for entry in debits:
        spent[str(entry["at"])[:length]] += _units(entry["cost"])
    shown = sorted(spent.items())[-2 * MOST_DAYS :]
    lines = [
        PlotBar(when, units / cap * 100 if cap else 0.0, hint=f"{when}: {percent_of(units, cap)}")
        for when, units in shown
    ]
    return section(
        "When it was spent",
        figure(
            bars(
                lines, words=f"Part of the budget that was spent on each {what}", unit="% of the whole budget"
            )
        )
        + (
            paragraph(f"The newest {len(shown)} of {len(spent):,} {what}s.", "note")
            if len(spent) > len(shown)
            else ""
        ),
    )


def _listed(entries: Sequence[Mapping[str, Any]], cap: int, last: int) -> str:
    newest = list(entries[max(0, len(entries) - last) :])[::-1]
    if not newest:
        return ""
    rows = [
        [
            str(entry["number"]),
            CellMarkup(f"<span>{escaped(str(entry['at'])[:19].replace('T', ' '))}</span>"),
            CellMarkup(f"<span>{escaped(KINDS.get(entry['kind'], str(entry['kind'])))}</span>"),
            percent_of(_units(entry["cost"]), cap) if _is_debit(entry) else "",
            percent_of(_units(entry["total"]), cap),
            str(entry["analyst"] or ""),
            question_words(entry),
        ]
        for entry in newest
    ]
    older = len(entries) - len(newest)
    words = (
        f"The newest {many(len(newest), 'entry', 'entries')}, newest first."
        if older
        else "All entries, newest first."
    )
    more = (
        f" {many(older, 'older one')} are in the ledger: `understudy ledger show --html FILE --last N` lists "
        "more."
    )
    return section(
        "Entries",
        paragraph(words + (more if older else ""))
        + table(
            ["entry", "time (UTC)", "what", "price", "spent so far", "analyst", "question"], rows,
            numbers=(0, 3, 4), words="Entries of the ledger", stack=True,
        ),
    )  # fmt: skip


def asked_words(question: str) -> str:
    """A recorded question as it was asked, or, without words, what was measured; fingerprints are left out.

    >>> asked_words("count by sex -> measure everyone by sex #" + 64 * "a" + " @" + 16 * "b")
    'count by sex'
    """
    words, found, _ = question.partition(" -> measure ")
    return words if found else _readable(question)


def _readable(question: str) -> str:
    """A recorded question without fingerprints; one about columns says how many rows were read as people do.

    What is recorded decides whether a request is the same one, in every ledger that there is, and stays as it is.

    >>> _readable("bounds and bins of 1 columns, of 1 of the rows @" + 16 * "a")
    'bounds and bins of 1 column, of all rows'
    >>> _readable("how 3 columns are written, of 0.0625 of the rows")
    'how 3 columns are written, of 6.25% of the rows'
    >>> _readable("how 1 columns are written, of 1 of the rows")
    'how 1 column is written, of all rows'
    """
    plain = _DIGESTS.sub("", question)
    found = _OF_COLUMNS.fullmatch(plain)
    if found is None:
        return plain
    what, share = found["what"], float(found["share"])
    what = re.sub(r"(?<= )1 columns( are)?", lambda one: "1 column is" if one[1] else "1 column", what)
    return f"{what}, of {'all rows' if share >= 1 else f'{share * 100:.3g}% of the rows'}"


_OF_COLUMNS = re.compile(
    r"(?P<what>(how \d|bounds and bins of |keys of ).*), of (?P<share>\d[\d.e-]*) of the rows"
)
"""A purchase about columns as it is recorded (`curator.column_curator`), with the part of the rows read."""


def question_words(entry: Mapping[str, Any]) -> str:
    """What was asked, or which debit an answer belongs to; request names that were drawn at random tell
    nothing.
    """
    question = _readable(str(entry["question"] or ""))
    question = question if len(question) <= MOST_LETTERS else f"{question[:MOST_LETTERS]} …"
    if not question and entry["debit"] is not None:
        question = f"for entry {entry['debit']}"
    name = str(entry["request"] or "")
    return f"{question} [{name}]" if name and not is_fresh(name) and name != question else question


def _check(verdict: Mapping[str, Any] | None, place: str) -> str:
    head = "" if verdict is None else f"<p>Last hash <code>{escaped(verdict['head'])}</code>.</p>"
    return section(
        "How to check it",
        f"<p>The ledger is kept in <code>{escaped(place)}</code>. <code>understudy ledger verify</code> works "
        "everything out again; <code>understudy ledger export</code> writes one Python file that checks "
        "itself anywhere, without this program. This page is a copy of what the ledger said when it was "
        f"made: the ledger decides.</p>{head}",
    )
