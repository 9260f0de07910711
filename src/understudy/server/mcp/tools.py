"""What an agent can do: nine tools, each a call of the gate. No tool looks at a table by itself.

A tool takes who calls and arguments that were checked, and returns plain data or raises a `Problem`, as the gate
does. `ask` is the only one that may spend. It is idempotent under a request id, and never waits for a custodian:
a question that needs an approval returns its id at once.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from understudy.percent import percent_of
from understudy.server.gate import Gate
from understudy.server.inquiry import Inquiry
from understudy.server.mcp import schemas
from understudy.server.mcp.arguments import checked
from understudy.server.mcp.published import read_part
from understudy.server.mcp.schemas import Schema
from understudy.server.problems import Problem
from understudy.server.served_releases import ServedReleases
from understudy.server.tokens import Caller

MOST_LISTED_CELLS = 40
"""Cells of an attribute that are listed where it is not asked for by its name."""

MOST_ROWS = 1000
"""Rows of an answer that are listed: a reader with a context of its own has no use for more."""

PAGE = 20
ROWS = 100
"""Questions of a history, and rows of a release, in a reply, unless told otherwise."""

Arguments = Mapping[str, Any]
Given = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool as agents see it, and what it does. `spends` is whether a call can change anything."""

    name: str
    title: str
    description: str
    takes: Schema
    gives: Schema
    run: Callable[[Caller, Arguments], Awaitable[Given]]
    spends: bool = False


class Toolbox:
    """The tools of one server, by their names."""

    def __init__(self, gate: Gate, releases: ServedReleases) -> None:
        self._gate = gate
        self._releases = releases
        self.tools: dict[str, AgentTool] = {tool.name: tool for tool in self._made()}

    async def call(self, caller: Caller, name: str, arguments: Arguments) -> Given:
        """What a tool gives; a `Problem` where it refuses, and 404 where there is no such tool."""
        tool = self.tools[name]
        return await tool.run(caller, checked(name, tool.takes, arguments))

    def _made(self) -> list[AgentTool]:
        return [
            AgentTool(
                "list_tables",
                "List tables",
                "The tables that can be asked about, and which part of each one's budget is left.",
                schemas.NOTHING,
                schemas.TABLES,
                self._list_tables,
            ),
            AgentTool(
                "describe",
                "Describe a table",
                "What is public about a table: its attributes, the values or edges at which conditions may cut, "
                "and questions to begin with.",
                schemas.DESCRIBE,
                schemas.DESCRIBED,
                self._describe,
            ),
            AgentTool(
                "price",
                "Price questions",
                "The most that a question would cost, as a part of the budget, and how far off its answer could "
                "be. Spends nothing and never looks at the table. Price before you ask.",
                schemas.PRICE,
                schemas.PRICED,
                self._price,
            ),
            AgentTool(
                "ask",
                "Ask a question",
                "Answer a question. Each number comes with its error; `source` tells whether it was bought, was "
                "free, or is uncertified; `share` tells what it cost, as a part of the table's budget, which "
                "everybody shares. A dear question returns the state `waiting` and an id: a custodian has to "
                "approve it.",
                schemas.ASK,
                schemas.ASKED,
                self._ask,
                spends=True,
            ),
            AgentTool(
                "session_status",
                "Session and budget",
                "What answers promise, what is left of the budget (of all, and for you), about how many more "
                "counts that pays for, and above which part of it a question of yours needs an approval.",
                schemas.STATUS,
                schemas.SESSION,
                self._session_status,
            ),
            AgentTool(
                "history",
                "Earlier questions",
                "Your questions, the newest first; with `id` one of them, with its answer or what became of its "
                "approval.",
                schemas.HISTORY,
                schemas.ASKED_BEFORE,
                self._history,
            ),
            AgentTool(
                "list_releases",
                "List releases",
                "What was published already: reading it costs nothing.",
                schemas.NOTHING,
                schemas.RELEASES,
                self._list_releases,
            ),
            AgentTool(
                "read_release",
                "Read a release",
                "A published release: its certificate, its numbers with their errors, or rows of its synthetic "
                "table.",
                schemas.READ_RELEASE,
                schemas.RELEASE,
                self._read_release,
            ),
            AgentTool(
                "ask_release",
                "Ask a release",
                "Answer a question from a published release: it costs nothing, and looks at no table. `source` "
                "tells whether the release certifies the error; where it says uncertified, the number is the "
                "model's alone.",
                schemas.ASK_RELEASE,
                schemas.RELEASE_ANSWER,
                self._ask_release,
            ),
        ]

    # ---- the tools

    async def _list_tables(self, caller: Caller, _: Arguments) -> Given:
        return {"tables": await self._gate.tables(caller)}

    async def _describe(self, caller: Caller, given: Arguments) -> Given:
        told = await self._gate.describe(caller, self._table(given))
        wanted = given.get("attribute")
        if wanted is None:
            return told | {"attributes": [_shortened(one) for one in told["attributes"]]}
        found = [one for one in told["attributes"] if one["name"] == wanted]
        if not found:
            names = [one["name"] for one in told["attributes"]]
            close = get_close_matches(wanted, names, n=3, cutoff=0.5) or names[:20]
            raise Problem(
                404,
                "no-attribute",
                "The table has no such attribute.",
                hint=f"Attributes are: {', '.join(close)}.",
                suggestions=close,
            )
        return told | {"attributes": found}

    async def _price(self, caller: Caller, given: Arguments) -> Given:
        if ("question" in given) == ("questions" in given):
            raise Problem(
                422,
                "arguments",
                "price takes either `question` or `questions`.",
                hint='Send {"question": "count"}.',
            )
        table, is_one = self._table(given), "question" in given
        questions = [given["question"]] if is_one else given["questions"]
        prices = await self._gate.price(
            caller, [Inquiry(table=table, question=text, **_terms(given)) for text in questions]
        )
        refused = prices[0].get("problem") if is_one else None
        if refused is not None:
            raise Problem(
                refused["status"],
                refused["code"],
                refused["detail"],
                hint=refused["hint"],
                suggestions=refused["suggestions"],
            )
        return {"prices": prices}

    async def _ask(self, caller: Caller, given: Arguments) -> Given:
        inquiry = Inquiry(
            table=self._table(given),
            question=given["question"],
            request=given.get("request", ""),
            uncertified=given.get("uncertified", True),
            why=given.get("why", ""),
            **_terms(given),
        )
        reply = await self._gate.ask(caller, inquiry)
        told = json.loads(reply.body)
        if reply.is_waiting:
            return told | {"reading": _waits(told)}
        return told | {"answer": _cut(told["answer"]), "reading": _reads(told["answer"])}

    async def _session_status(self, caller: Caller, given: Arguments) -> Given:
        table = self._table(given)
        return {
            "table": table,
            "sessions": await self._gate.sessions(caller, table),
            "budget": await self._gate.budget(caller, table),
            "caller": {
                "analyst": caller.analyst,
                "agent": caller.agent,
                "read_only": caller.read_only,
                "approval_above": self._gate.threshold(caller),
            },
        }

    async def _history(self, caller: Caller, given: Arguments) -> Given:
        if "id" in given:
            one = await self._gate.one_asked(caller, given["id"])
            answer = None if one["answer"] is None else _cut(one["answer"])
            return {"questions": [one | {"answer": answer}], "next": ""}
        return await self._gate.history(
            caller,
            table=given.get("table", ""),
            state=given.get("state", ""),
            after=given.get("after", ""),
            limit=given.get("limit", PAGE),
        )

    async def _list_releases(self, caller: Caller, _: Arguments) -> Given:
        return {"releases": await self._gate.on_free(caller, self._releases.listed)}

    async def _read_release(self, caller: Caller, given: Arguments) -> Given:
        def told() -> Given:
            return read_part(
                self._releases,
                given["release"],
                part=given.get("part", "certificate"),
                marginal=given.get("marginal"),
                after=given.get("after", 0),
                limit=given.get("limit", ROWS),
            )

        return await self._gate.on_free(caller, told)

    async def _ask_release(self, caller: Caller, given: Arguments) -> Given:
        release, question = given["release"], given["question"]
        told = await self._gate.on_free(
            caller, lambda: self._releases.answers.answer(release, question), alone=f"release {release}"
        )
        answer = told["answer"] | {"share": 0.0}
        return told | {"answer": _cut(answer), "reading": _reads(answer)}

    def _table(self, given: Arguments) -> str:
        """The table that is meant: the named one, which the gate looks for, or the only one."""
        names = sorted(self._gate.served.tables)
        if "table" in given:
            return given["table"]
        if len(names) == 1:
            return names[0]
        raise Problem(
            422,
            "arguments",
            "There are several tables, and none is named.",
            hint=f"Tables are: {', '.join(names[:20])}.",
            suggestions=names[:20],
        )


def _terms(given: Arguments) -> dict[str, Any]:
    price = {name: float(given[name]) for name in ("error", "epsilon", "rho") if name in given}
    said = {name: given[name] for name in ("in_session", "noise", "most") if name in given}
    return {**price, **said}


def _shortened(attribute: Mapping[str, Any]) -> Given:
    """An attribute with the first of its cells; `left_out` says how many are not listed."""
    left_out = attribute["cells"] - MOST_LISTED_CELLS
    if left_out <= 0:
        return dict(attribute)
    cut = {
        name: attribute[name][:MOST_LISTED_CELLS]
        for name in ("labels", "values", "edges")
        if name in attribute
    }
    return {**attribute, **cut, "left_out": left_out}


def _cut(answer: Given) -> Given:
    """An answer with the first of its rows; `left_out` says how many are not listed."""
    left_out = len(answer.get("rows", ())) - MOST_ROWS
    if left_out <= 0:
        return answer
    first = {name: answer[name][:MOST_ROWS] for name in ("rows", "noisy") if name in answer}
    return {**answer, **first, "population_error": None, "left_out": left_out}


def _reads(answer: Mapping[str, Any]) -> str:
    """How the numbers of an answer are to be read, in a few sentences."""
    rows = len(answer.get("rows", ()))
    if rows > MOST_ROWS:
        whole = dict(answer, rows=())
        return (
            f"{_reads(whole)} Only {MOST_ROWS:,} of {rows:,} rows are listed: ask about fewer groups, which costs "
            "nothing where it follows from this answer."
        )
    cost = "It was free." if not answer["share"] else f"It cost {percent_of(answer['share'])} of the budget."
    if answer["source"] == "uncertified":
        return f"Nobody vouches for these numbers: no error was paid for. {cost}"
    beta = answer["beta"]
    sure = (
        ""
        if beta is None
        else f", all at once with probability {100 * (1 - beta):.4g}%"
        if beta
        else ", for sure"
    )
    bounds = "between its low and its high" if "columns" in answer else "within its error of the value"
    return f"Each number of the table is {bounds}{sure}. {cost}"


def _waits(told: Mapping[str, Any]) -> str:
    approval = told["approval"]
    return (
        f"A custodian has to approve this question, which costs {percent_of(approval['share'])} of the budget. "
        f"Nothing was spent. Go on with other questions, and call history with id {told['id']!r} later; until "
        f"{approval['expires'][:10]} somebody may decide."
    )
