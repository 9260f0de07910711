"""Replies of the HTTP door: JSON that is made once, problems, and what OpenAPI says of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response

from understudy.server.http.security import problem_headers
from understudy.server.problems import Problem
from understudy.server.replies import encoded


class ProblemBody(BaseModel):
    """What `application/problem+json` says: what is wrong, and what to do instead."""

    type: str
    title: str
    status: int
    code: str = Field(description="A word for programs.")
    detail: str = Field(description="What is wrong.")
    hint: str = Field(description="What to do instead.")
    suggestions: list[str] = Field(description="Names or questions that would have worked.")
    requested: float | None = Field(None, description="Of money: what the question costs.")
    remaining: float | None = Field(None, description="Of money: what is left.")
    currency: str | None = Field(None, description="Of money: epsilon or rho.")
    limit: str | None = Field(
        None, description="Of money: whose limit binds; empty where it is the whole budget."
    )


_PROBLEM: dict[str, Any] = {
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for OpenAPI; every route may also refuse a token, a host, a rate and a size."""
    told = {
        400: "The body is not JSON.",
        401: "There is no valid token.",
        402: "The budget cannot pay.",
        403: "The role, or the token, does not permit it.",
        404: "There is no such thing.",
        409: "The request id was used for something else.",
        413: "Too large.",
        415: "The body is not of the right type.",
        421: "The server has another name.",
        422: "The question, or a parameter, is refused.",
        429: "Too many requests; Retry-After says when to come back.",
        503: "Ledger, table or store are away, or the table is paused.",
    }
    wanted = sorted({401, 403, 421, 422, 429, 503, *statuses})
    return {status: {"description": told[status], **_PROBLEM} for status in wanted}


def json_reply(plain: Any, status: int = 200) -> Response:
    """A reply of plain values."""
    return Response(encoded(plain), status, media_type="application/json")


def problem_reply(problem: Problem) -> Response:
    """A reply that tells a problem."""
    reply = Response(problem.encoded(), problem.status)
    for name, value in problem_headers(problem):
        reply.headers[name.decode()] = value.decode()
    return reply
