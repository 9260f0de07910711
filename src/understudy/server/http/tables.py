"""Tables over HTTP: what is declared, what is left of the budget, and prices."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from understudy.server.http.bodies import PriceBody, body_of, priced
from understudy.server.http.replying import json_reply, refusals
from understudy.server.http.who import ANALYST, ANYBODY
from understudy.server.problems import Problem
from understudy.server.tokens import Caller

router = APIRouter(tags=["tables"])


@router.get("/v1/tables", responses=refusals())
async def tables(request: Request, caller: Annotated[Caller, Depends(ANYBODY)]) -> Response:
    """The tables that are served: name, whether it is paused, and the part of its budget that is left."""
    return json_reply({"tables": await request.app.state.gate.tables(caller)})


@router.get("/v1/tables/{table}", responses=refusals(404))
async def table(table: str, request: Request, caller: Annotated[Caller, Depends(ANYBODY)]) -> Response:
    """What is declared about a table: its attributes and their cells, and whether its number of rows is public."""
    return json_reply(await request.app.state.gate.describe(caller, table))


@router.get("/v1/tables/{table}/budget", responses=refusals(404))
async def budget(table: str, request: Request, caller: Annotated[Caller, Depends(ANYBODY)]) -> Response:
    """The budget of a table: the whole, what is left, the caller's own part, and about how many more counts."""
    return json_reply(await request.app.state.gate.budget(caller, table))


def _price_schema() -> dict[str, Any]:
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": PriceBody.model_json_schema()}},
        }
    }


@router.post(
    "/v1/tables/{table}/price", responses=refusals(400, 404, 413, 415, 422), openapi_extra=_price_schema()
)
async def price(table: str, request: Request, caller: Annotated[Caller, Depends(ANALYST)]) -> Response:
    """What questions would cost at most and how far off their answers could be. Costs nothing, and never looks.

    With `question` the reply is one price or a problem, with `questions` a list in which a question that would be
    refused has a `problem` in place of its price.
    """
    plain = await body_of(request)
    told = await request.app.state.gate.price(caller, priced(table, plain))
    if "questions" in plain:
        return json_reply({"prices": told})
    refused = told[0].get("problem")
    if refused is not None:
        raise Problem(
            refused["status"], refused["code"], refused["detail"], hint=refused["hint"],
            suggestions=refused["suggestions"],
        )  # fmt: skip
    return json_reply(told[0])
