"""What the tools take and give, as JSON Schema. `arguments` checks what is given against it, and knows the few
words of JSON Schema that the inputs here use, and no others.
"""

from __future__ import annotations

from typing import Any

from understudy.privacy.noise_name import NOISES
from understudy.server.inquiry import MOST_CHARACTERS, MOST_QUESTIONS, MOST_REASON

Schema = dict[str, Any]

MOST_PAGE = 500
"""Rows of a release, or questions of a history, in one reply."""


def _object(properties: Schema, *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _told(properties: Schema, *required: str) -> Schema:
    """A result: what is listed is there, and more may be."""
    return {"type": "object", "properties": properties, "required": list(required)}


_TABLE: Schema = {
    "type": "string",
    "maxLength": 200,
    "description": "The table's name, as list_tables tells it; it may be left out where there is one table.",
}
_QUESTION: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": MOST_CHARACTERS,
    "description": "For instance `count age < 30 by district`, `share smoker = true`, `rate smoker = true "
    "within district`, or a SELECT with aggregates on one table.",
    "examples": ["count by sex"],
}
_PRICES: Schema = {
    "error": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Measure the question by itself, outside the session unless in_session is true, within "
        "this error: in people for counts, else in the unit of the released numbers (a part of 1 for shares).",
    },
    "in_session": {
        "type": "boolean",
        "description": "With error: keep it in the session, where what is known there counts, for averages of "
        "groups too; not by a measurement by itself.",
    },
    "epsilon": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Measure the question by itself at this epsilon.",
    },
    "rho": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Measure the question by itself at this rho.",
    },
    "noise": {
        "type": "string",
        "enum": list(NOISES),
        "description": "With error or rho: which noise. `bounded` has an error that is certain, where the budget "
        "pays for it; `auto`, the usual word, takes the best.",
    },
}
_RELEASE: Schema = {"type": "string", "maxLength": 100, "description": "Its name, as list_releases tells it."}

NOTHING = _object({})

DESCRIBE = _object(
    {
        "table": _TABLE,
        "attribute": {
            "type": "string",
            "maxLength": 1000,
            "description": "One attribute, with all of its values; without it every attribute, with the first "
            "few.",
        },
    }
)

PRICE = _object(
    {
        "table": _TABLE,
        "question": _QUESTION,
        "questions": {
            "type": "array",
            "items": _QUESTION,
            "minItems": 1,
            "maxItems": MOST_QUESTIONS,
            "description": "Several questions, each priced as the next one; `together` is the most that it and "
            "those before it cost.",
        },
        **_PRICES,
    }
)

ASK = _object(
    {
        "table": _TABLE,
        "question": _QUESTION,
        "request": {
            "type": "string",
            "maxLength": 128,
            "description": "A name for this question, such as a UUID. Sent again with the same question it gets "
            "the same answer and pays once: use it when a call broke off.",
        },
        "why": {
            "type": "string",
            "maxLength": MOST_REASON,
            "description": "What the answer is for; a custodian reads it if the question needs an approval.",
        },
        "uncertified": {
            "type": "boolean",
            "description": "Whether a number that nobody vouches for is welcome where the budget cannot pay "
            "(default true).",
        },
        "most": {
            "type": "number",
            "minimum": 0,
            "description": "The most that may be charged, in the table's currency; what costs more is refused.",
        },
        **_PRICES,
    },
    "question",
)

STATUS = _object({"table": _TABLE})

HISTORY = _object(
    {
        "id": {
            "type": "string",
            "maxLength": 64,
            "description": "One question, with its answer, its refusal or what it waits for.",
        },
        "table": _TABLE | {"description": "Only questions to this table."},
        "state": {"type": "string", "enum": ["answered", "waiting", "refused", "asking"]},
        "after": {"type": "string", "maxLength": 200, "description": "`next` of the page before."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_PAGE, "description": "Default 20."},
    }
)

READ_RELEASE = _object(
    {
        "release": _RELEASE,
        "part": {
            "type": "string",
            "enum": ["certificate", "answers", "synthetic"],
            "description": "What is proved about it; its published numbers with errors; or rows of its "
            "synthetic table, which are nobody's (default certificate).",
        },
        "marginal": {
            "type": "string",
            "maxLength": 1000,
            "description": "Only the answers of this marginal, such as `age` or `age, sex`.",
        },
        "after": {"type": "integer", "minimum": 0, "maximum": 10**12, "description": "Rows to skip."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_PAGE,
            "description": "Rows (default 100).",
        },
    },
    "release",
)

ASK_RELEASE = _object({"release": _RELEASE, "question": _QUESTION}, "release", "question")

# ---- results

_TEXT: Schema = {"type": "string"}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_NUMBER: Schema = {"type": "number"}
_MAYBE: Schema = {"type": ["number", "null"]}
_FLAG: Schema = {"type": "boolean"}
_LIST: Schema = {"type": "array"}
_THING: Schema = {"type": "object"}
_MAYBE_THING: Schema = {"type": ["object", "null"]}
_SHARE: Schema = {**_MAYBE, "description": "A part of the table's whole budget."}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


ANSWER: Schema = _told(
    {
        "value": {**_MAYBE, "description": "Of a question without groups."},
        "error": {**_MAYBE, "description": "Its half-width; null where nobody vouches for the value."},
        "rows": {
            "type": "array",
            "description": "Of a question with groups: {cell, value, error}. Of SQL: a list for each row, in "
            "which released numbers are {value, low, high, discretisation}.",
        },
        "columns": {**_LIST, "description": "Of SQL: name, kind and type of each column."},
        "left_out": {
            "type": "integer",
            "description": "Rows that are not listed, of an answer with very many.",
        },
        "by": {**_list(_TEXT), "description": "The attributes of each `cell`."},
        "unit": {**_TEXT, "description": "people, or a part."},
        "source": {
            **_TEXT,
            "description": "measured: bought now. repeat, implied, pinned: free. uncertified: nobody vouches.",
        },
        "noise": {
            **_MAYBE_TEXT,
            "description": "laplace, gaussian, bounded, exponential or mixed; null where none was added for it.",
        },
        "beta": {**_MAYBE, "description": "The probability that some error of the session does not hold."},
        "cost": {**_THING, "description": "What was charged, by its currency."},
        "share": {**_NUMBER, "description": "What was charged, as a part of the table's whole budget."},
    },
    "source",
    "cost",
    "share",
)

ASKED = _told(
    {
        "state": {"type": "string", "enum": ["answered", "waiting"]},
        "table": _TEXT,
        "question": _TEXT,
        "request": _TEXT,
        "id": {**_TEXT, "description": "Under which `history` finds it."},
        "reading": {**_TEXT, "description": "How the numbers are to be read, or what to do next."},
        "answer": ANSWER,
        "approval": {**_THING, "description": "What waits: its price, and until when."},
    },
    "state",
    "table",
    "question",
    "request",
    "id",
    "reading",
)

TABLES = _told(
    {
        "tables": _list(
            _told(
                {
                    "name": _TEXT,
                    "available": _FLAG,
                    "paused": _MAYBE_TEXT,
                    "left": _SHARE,
                    "attributes": {"type": ["integer", "null"]},
                },
                "name",
                "available",
                "left",
            )
        )
    },
    "tables",
)

DESCRIBED = _told(
    {
        "name": _TEXT,
        "rows": {**_MAYBE, "description": "How many rows there are, where that is public."},
        "attributes": _list(
            _told(
                {
                    "name": _TEXT,
                    "type": _TEXT,
                    "cells": {"type": "integer"},
                    "labels": {**_LIST, "description": "The names of its cells, in order."},
                    "values": {**_LIST, "description": "The declared values."},
                    "edges": {**_LIST, "description": "Where conditions may cut."},
                    "resolution": {
                        "type": "number",
                        "description": "Of a measure, which has averages, variances and quantiles: its step.",
                    },
                    "left_out": {
                        "type": "integer",
                        "description": "Cells that are not listed; name the attribute to see all.",
                    },
                },
                "name",
                "type",
                "cells",
            )
        ),
        "examples": _list(_TEXT),
    },
    "name",
    "attributes",
    "examples",
)

PRICED = _told(
    {
        "prices": _list(
            _told(
                {
                    "question": _TEXT,
                    "cost": {**_THING, "description": "The most that it costs, by its currency."},
                    "share": _SHARE,
                    "free": _FLAG,
                    "error": {**_MAYBE, "description": "How far off the answer can be, in `unit`."},
                    "unit": {**_TEXT, "description": "`people`, or the released column whose unit it is."},
                    "beta": {
                        **_MAYBE,
                        "description": "The probability that some error does not hold: 0 if certain.",
                    },
                    "noise": {
                        **_MAYBE_TEXT,
                        "description": "Of a question measured by itself: which noise it gets; null if public.",
                    },
                    "affordable": _FLAG,
                    "hint": {
                        **_TEXT,
                        "description": "What to ask where it would be refused as unaffordable.",
                    },
                    "needs_approval": _FLAG,
                    "more_like_this": {"type": ["integer", "null"]},
                    "problem": {**_THING, "description": "Why it would be refused, in place of a price."},
                },
                "question",
            )
        )
    },
    "prices",
)

SESSION = _told(
    {
        "table": _TEXT,
        "sessions": _list(
            _told({"alpha": _NUMBER, "beta": _NUMBER, "queries": {"type": "integer"}, "width": _NUMBER})
        ),
        "budget": _told({"left": _THING, "yours": _THING, "about": _MAYBE_THING}, "left", "yours"),
        "caller": _told(
            {"analyst": _TEXT, "agent": _FLAG, "read_only": _FLAG, "approval_above": _SHARE}, "analyst"
        ),
    },
    "table",
    "sessions",
    "budget",
    "caller",
)

ASKED_BEFORE = _told(
    {
        "questions": _list(
            _told(
                {
                    "id": _TEXT,
                    "table": _TEXT,
                    "question": _TEXT,
                    "request": _TEXT,
                    "state": _TEXT,
                    "source": _TEXT,
                    "share": _SHARE,
                    "answer": {**_MAYBE_THING, "description": "Only of one question, by its id."},
                    "approval": _MAYBE_THING,
                    "problem": _MAYBE_THING,
                },
                "id",
                "table",
                "question",
                "state",
            )
        ),
        "next": {**_MAYBE_TEXT, "description": "`after` of the next page; empty on the last."},
    },
    "questions",
)

RELEASES = _told(
    {
        "releases": _list(
            _told({"name": _TEXT, "files": _list(_TEXT), "method": _MAYBE_TEXT}, "name", "files")
        )
    },
    "releases",
)

RELEASE = _told(
    {
        "release": _TEXT,
        "part": _TEXT,
        "certificate": _THING,
        "left_out": {
            **_list(_TEXT),
            "description": "Parts of the certificate that are too long for a reply.",
        },
        "rows": _list(_THING),
        "total": {"type": ["integer", "null"]},
        "next": {"type": ["integer", "null"], "description": "`after` of the next page; null on the last."},
    },
    "release",
    "part",
)


RELEASE_ANSWER = _told(
    {
        "release": _TEXT,
        "table": _TEXT,
        "question": _TEXT,
        "beta": {**_NUMBER, "description": "The probability that some error of the release does not hold."},
        "reading": {**_TEXT, "description": "How the numbers are to be read."},
        "answer": ANSWER,
    },
    "release",
    "question",
    "reading",
    "answer",
)
