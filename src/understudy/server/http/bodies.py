"""The bodies of requests: read as JSON within limits, and as what the gate takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from understudy.privacy.noise_name import Noise
from understudy.server.inquiry import AUTO, MOST_CHARACTERS, MOST_QUESTIONS, MOST_REASON, Inquiry, is_text
from understudy.server.problems import Problem

NoiseName = Annotated[
    Noise,
    Field(
        description="Which noise a question gets that is measured by itself: the best one, or one by name."
    ),
]
InSession = Annotated[
    bool,
    Field(
        description="With error: keep it in the session, by what is known there, in place of a measurement of the "
        "question by itself."
    ),
]
Positive = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PriceBody(_Body):
    """One question or several, and what each may cost or how far off it may be, for a direct one."""

    question: str | None = Field(None, min_length=1, max_length=MOST_CHARACTERS, examples=["count by sex"])
    questions: list[Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]] | None = Field(
        None, min_length=1, max_length=MOST_QUESTIONS
    )
    epsilon: Positive = None
    rho: Positive = None
    error: Positive = None
    in_session: InSession = False
    noise: NoiseName = AUTO


class AskBody(_Body):
    """A question: to the session of the table, with an error of its own there or none, or direct at a price or an
    error of its own.
    """

    question: str = Field(min_length=1, max_length=MOST_CHARACTERS, examples=["count by sex"])
    request: str | None = Field(None, pattern=r"^[A-Za-z0-9._:=+@-]{1,128}$")
    uncertified: bool = True
    epsilon: Positive = None
    rho: Positive = None
    error: Positive = None
    in_session: InSession = False
    most: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="The most that may be charged, in the table's currency: what costs more is refused.",
        ),
    ] = None
    noise: NoiseName = AUTO
    why: str = Field("", max_length=MOST_REASON)


class ReleaseAskBody(_Body):
    """A question to a release, which costs nothing."""

    question: str = Field(min_length=1, max_length=MOST_CHARACTERS, examples=["count by sex"])


_RELEASE_ASK = frozenset(ReleaseAskBody.model_fields)
_ASK = frozenset(AskBody.model_fields)
_PRICE = frozenset(PriceBody.model_fields)


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body; a `Problem` 415 or 400 where there is none."""
    check_json(request.headers.get("content-type", ""))
    return parsed(await request.body())


def check_json(content_type: str) -> None:
    """Refuse a body that is not said to be JSON: a form on another site can send any other type."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise Problem(
            415, "content-type", "The body must be JSON.", hint="Send content-type: application/json."
        )


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object in some bytes. Nesting that no question has, and numbers that JSON has not, are refused."""
    try:
        found = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Problem(400, "json", "The body is not JSON.", hint="Send one JSON object in UTF-8.") from None
    if type(found) is not dict:
        raise Problem(400, "json", "The body is no JSON object.", hint='Send {"question": "count"}.')
    return found


def asked(table: str, plain: Mapping[str, Any]) -> Inquiry:
    """The question in the body of an ask."""
    _check_names(plain, _ASK)
    price: dict[str, Any] = _price(plain) | _noise(plain) | _most(plain)
    return Inquiry(
        table=table,
        question=_text(plain, "question", required=True),
        request=_text(plain, "request"),
        uncertified=_flag(plain, "uncertified", default=True),
        why=_text(plain, "why"),
        **price,
    )


def asked_of_release(plain: Mapping[str, Any]) -> str:
    """The question in the body of an ask to a release."""
    _check_names(plain, _RELEASE_ASK)
    return _text(plain, "question", required=True)


def priced(table: str, plain: Mapping[str, Any]) -> list[Inquiry]:
    """The questions in the body of a request for prices."""
    _check_names(plain, _PRICE)
    one, many = plain.get("question"), plain.get("questions")
    if (one is None) == (many is None):
        raise Problem(
            422, "body", "Send either `question` or `questions`.", hint='Send {"question": "count"}.'
        )
    listed: Any = [one] if many is None else many
    if type(listed) is not list or not all(type(text) is str for text in listed):
        raise Problem(422, "body", "Questions are texts.", hint='Send {"questions": ["count"]}.')
    price: dict[str, Any] = _price(plain) | _noise(plain)
    return [Inquiry(table=table, question=text, **price) for text in listed]


def _most(plain: Mapping[str, Any]) -> dict[str, float]:
    value = plain.get("most")
    if value is None:
        return {}
    if type(value) not in (int, float) or not 0 <= value < 1e300:
        raise Problem(
            422, "parameter", "The field 'most' must be a number of at least 0.", hint="See /openapi.json."
        )
    return {"most": float(value)}


def _noise(plain: Mapping[str, Any]) -> dict[str, str]:
    return {"noise": _text(plain, "noise")} if plain.get("noise") is not None else {}


def _no_number(name: str) -> None:
    raise ValueError(name)


def _check_names(plain: Mapping[str, Any], known: frozenset[str]) -> None:
    for name in plain:
        if name not in known:
            shown = name[:40] if is_text(name) else "?"
            raise Problem(
                422,
                "body",
                f"There is no field {shown!r} in this request.",
                hint=f"Fields are: {', '.join(sorted(known))}.",
                suggestions=sorted(known),
            )


def _text(plain: Mapping[str, Any], name: str, *, required: bool = False) -> str:
    value = plain.get(name)
    if value is None and not required:
        return ""
    if type(value) is not str:
        raise Problem(422, "body", f"The field {name!r} must be a text.", hint="See /openapi.json.")
    return value


def _flag(plain: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = plain.get(name, default)
    if type(value) is not bool:
        raise Problem(422, "body", f"The field {name!r} must be true or false.", hint="See /openapi.json.")
    return value


def _price(plain: Mapping[str, Any]) -> dict[str, float | bool]:
    found: dict[str, float | bool] = {}
    if _flag(plain, "in_session", default=False):
        found["in_session"] = True
    for name in ("epsilon", "rho", "error"):
        value = plain.get(name)
        if value is None:
            continue
        try:
            number = float(value) if type(value) in (int, float) else 0.0
        except OverflowError:
            number = 0.0
        if not (isfinite(number) and number > 0):
            raise Problem(
                422, "parameter", f"The field {name!r} must be a positive number.", hint="See /openapi.json."
            )
        found[name] = number
    return found
