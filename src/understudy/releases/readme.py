"""The page in a release's folder for whoever receives it: what is in it, what the bars mean, how to cite it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from textwrap import wrap
from typing import Any

from understudy.releases.files import (
    ANSWERS,
    CERTIFICATE,
    README,
    REPORT,
    STANDIN,
    SUMS,
    SYNTHETIC,
    SYNTHETIC_CSV,
)
from understudy.releases.report_words import small_marginal_words

MARK = "<!-- Written by understudy with the release; replaced with it. -->"
"""The first line: a page of this name without it is somebody else's, and is never replaced."""

ABOUT: Mapping[str, str] = {
    README: "this page",
    REPORT: "how good the release is, for people: open it in a browser; it fetches nothing and runs no script",
    SYNTHETIC: "synthetic rows in the columns and types of the table. No row is a person",
    SYNTHETIC_CSV: "the same rows as text. Where a text began like a formula, an apostrophe stands before it",
    ANSWERS: "counts of people with their bars: `marginal`, `labels`, `value`, `error`, `low`, `high`, `basis`",
    CERTIFICATE: "what is proved, by which theorem, at what price; the declared columns and their cells",
    STANDIN: "the model that the rows were drawn from, which answers further questions",
    SUMS: "measured sums, which answer questions about ranges",
}


def readme(certificate: Mapping[str, Any], certificate_text: str, names: Sequence[str]) -> str:
    """The page for a release with this certificate, whose folder has files of these names; in Markdown."""
    table, privacy, beta = _plain(certificate["table"]), certificate["privacy"], float(certificate["beta"])
    listed = "\n".join(f"| `{name}` | {said} |" for name, said in ABOUT.items() if name in names)
    first = certificate["domain"]["attributes"][0]["name"]
    by = first if re.fullmatch(r"[^\W\d]\w*", first) else '"' + first.replace('"', '""') + '"'
    question = _code(f"count by {by}")
    price = f"epsilon {privacy['epsilon']:g}" + (f", delta {privacy['delta']:g}" if privacy["delta"] else "")
    people = f"{certificate['rows']:,.0f}"
    if privacy["neighbours"] == "replace":
        person = "exchanging one row of the table for another"
    elif privacy["rows_of_a_person"] > 1:
        person = f"adding or removing the rows of one person (at most {privacy['rows_of_a_person']:,} count)"
    else:
        person = "adding or removing one row"
    chance = f"{1 - beta:g}"
    small = _small(certificate)
    digest = sha256(certificate_text.encode()).hexdigest()
    return f"""{MARK}
# A release of {table}

This folder stands in for a table of about {people} rows that may not be shown. Everything in it was made from
noisy measurements of that table under differential privacy. It may be copied, asked and published without any
further cost.

## What is in it

| file | |
|---|---|
{listed}

## How to use it

Any program that reads Parquet reads the rows and the answers. To ask for a number together with its error bar,
install Understudy (`pip install understudy`); neither the table nor its declaration is needed:

```sh
understudy ask --release THIS-FOLDER {question}
```

```python
import understudy as us

release = us.Release.load("THIS-FOLDER")
answer = release.answer({_code(f"count by {by}", python=True)})
answer.value                        # people
answer.low, answer.high             # the ends of the bar; answer.error reaches to the farther one
release.sample(1000)                # synthetic rows, as a pandas frame
```

## What the bars mean

- The count in the table lies between `low` and `high`, which need not be equally far from `value`; `error` is the
  distance to the farther one, in people. All error bars of the release hold together with probability {chance}.
- An answer whose source is `uncertified` comes from the model alone. It may be good, and nobody has proved it.
- Where a bar is as long as the number itself, the number is mostly noise. `{REPORT}` says of which columns
  that is true.
- Numbers that are counted in the synthetic rows have no bars. Prefer the answers; use the rows to develop a
  program, to train a model, or to look at the shape of the data, and check findings by a question.
{small}- The bars are about this table. That the table is itself a sample of a population adds the usual sampling
  error.

## What is promised to the people in the table

The release is differentially private with {price}: {person}
changes the chance of any outcome by little, and no later use of this folder can change that. The method is
{_plain(certificate["method"])}; `{CERTIFICATE}` names its theorem and its price.

## How to cite it

> {table}: a differentially private release ({price}), run {_plain(certificate["run"])}.
> Made with {_plain(certificate["program"])}. SHA-256 of {CERTIFICATE}: {digest}

Name its publisher, and the day on which you received it, as for any data set.
"""


def _small(certificate: Mapping[str, Any]) -> str:
    """A point about single columns and pairs, where their bars are not as short as they could be; else nothing."""
    words = small_marginal_words(certificate)
    return "\n  ".join(wrap(f"- {words}", 112)) + "\n" if words else ""


def _plain(text: Any) -> str:
    """A text as Markdown shows it, on one line: marks of Markdown and HTML mean nothing in it."""
    return re.sub(r"([\\`*_{}\[\]<>()#!|&~])", r"\\\1", " ".join(str(text).split()))


def _code(text: str, *, python: bool = False) -> str:
    """A question as a shell or Python takes it, on one line."""
    text = " ".join(text.replace("`", "").split())
    return repr(text) if python else "'" + text.replace("'", "'\\''") + "'"
