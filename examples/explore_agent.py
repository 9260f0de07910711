"""A scripted agent that explores a private town over the Model Context Protocol, and reports what it is sure of.

No model is needed: the agent follows surprise. It counts people by pairs of attributes and compares every cell
with what independence predicts. Where the two differ by more than their error bars together, it has found
something: it claims it, and asks on about the people in that cell, by every other attribute, the most surprising
cell first. It prices each question before it asks, keeps to an allowance, and asks for its largest claims once
more at the end, which is free.

Run: python examples/explore_agent.py [STEPS]     (500 questions if nothing is said)
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as parquet
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from understudy_demo import town

STEPS = 500
ALLOWANCE = 0.5  # of the whole budget
SHOWN = 20  # claims that are reported
MOST_CELLS = 20  # of an attribute by which people are grouped
DEEPEST = 4  # conditions in a row
FREE = ("repeat", "implied", "pinned", "public")  # sources of answers that cost nothing


@dataclass(frozen=True)
class Group:
    """People who meet some conditions: there are between `low` and `high` of them."""

    conditions: tuple[str, ...]
    attributes: frozenset[str]
    low: float
    high: float

    @property
    def text(self) -> str:
        return " and ".join(self.conditions)


@dataclass(frozen=True)
class Claim:
    """`value ± error` people of a group are in some cells, where independence predicts `low` to `high`."""

    group: tuple[str, ...]
    cells: tuple[str, ...]
    value: float
    error: float
    low: float
    high: float

    @property
    def condition(self) -> str:
        return " and ".join(self.group + self.cells)

    @property
    def gap(self) -> float:
        """How far the bars of the number and of the prediction are apart, in people."""
        return max(self.value - self.error - self.high, self.low - self.value - self.error)

    def __str__(self) -> str:
        number = f"{self.value:,.0f} ± {self.error:,.0f}"
        return f"{number:>16}, not {self.low:,.0f} to {self.high:,.0f}:  {self.condition}"


@dataclass
class Report:
    """What was found and what it cost: `spent` is a part of the whole budget, `outcomes` counts the steps."""

    beta: float = 0.0
    spent: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    claims: list[Claim] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return self.outcomes.total()

    def lines(self) -> Iterator[str]:
        free = sum(self.outcomes[source] for source in FREE)
        left_out = [f", {n} {name}" for name, n in self.outcomes.items() if name not in (*FREE, "measured")]
        bought = f"{self.outcomes['measured']} bought for {self.spent:.1%} of the budget"
        yield f"{self.steps} questions: {bought}, {free} free{''.join(left_out)}"
        yield f"{len(self.claims)} claims, all within their bars at once with probability {1 - self.beta:.0%}"
        yield from map(str, self.claims[:SHOWN])


class Explorer:
    """An agent with the tools of a server and a number of steps; each step is one question."""

    def __init__(self, tools: Client, *, steps: int = STEPS, allowance: float = ALLOWANCE) -> None:
        self.tools = tools
        self.steps = steps
        self.allowance = allowance
        self.report = Report()
        self.rows = 0
        self.cells: dict[str, dict[str, str]] = {}  # of each attribute: label and condition of every cell
        self.known: dict[tuple[str, str], Group] = {}  # the people in one cell of one attribute
        self.claimed: set[frozenset[str]] = set()
        self.frontier: list[tuple[float, int, Group, tuple[str, ...]]] = []

    async def explore(self) -> Report:
        described = await self.call("describe")
        (session,) = (await self.call("session_status"))["sessions"]
        self.rows, self.report.beta = described["rows"], session["beta"]
        everybody = Group((), frozenset(), self.rows, self.rows)
        for attribute in described["attributes"]:
            if attribute["cells"] <= MOST_CELLS and attribute["type"] != "date":
                self.cells[attribute["name"]] = dict(conditions(attribute))

        for name in self.cells:
            await self.look(everybody, (name,))
        for pair in combinations(self.cells, 2):  # less urgent than a cell that is off by two bars
            self.wonder(2 * session["width"], everybody, pair)
        while self.frontier and self.report.steps < self.steps - SHOWN:
            _, _, group, by = heappop(self.frontier)
            await self.look(group, by)

        claims = self.report.claims
        claims.sort(key=lambda claim: claim.gap, reverse=True)
        claims[:SHOWN] = [await self.once_more(claim) for claim in claims[:SHOWN]]
        return self.report

    async def look(self, group: Group, by: tuple[str, ...]) -> None:
        """Count a group by attributes, and follow the cells that independence does not explain."""
        answer = await self.ask(f"count {group.text} by {', '.join(by)}")
        for row in answer["rows"] if answer else ():
            place = list(zip(by, row["cell"], strict=True))
            cells = tuple(self.cells[name][label] for name, label in place if label in self.cells[name])
            if row["error"] is None or len(cells) < len(by):
                continue  # nobody vouches for the number, or it is of values that were not declared
            low, high = max(row["value"] - row["error"], 0), row["value"] + row["error"]
            found = Group(group.conditions + cells, group.attributes.union(by), low, high)
            if not group.conditions and len(by) == 1:
                self.known[place[0]] = found
                continue
            if not all(cell in self.known for cell in place):
                continue  # there was no answer from which to predict
            low, high = (
                group.low * prod(self.known[cell].low / self.rows for cell in place),
                group.high * prod(self.known[cell].high / self.rows for cell in place),
            )
            self.judge(found, Claim(group.conditions, cells, row["value"], row["error"], low, high))

    def judge(self, found: Group, claim: Claim) -> None:
        """Keep a claim whose bars are clear of the prediction, and ask on about the people in it.

        The same people are reached by several ways: they are claimed once.
        """
        if claim.gap <= 0 or (people := frozenset(found.conditions)) in self.claimed:
            return
        self.claimed.add(people)
        self.report.claims.append(claim)
        if len(found.conditions) < DEEPEST and found.low > 0:
            for name in sorted(self.cells.keys() - found.attributes):
                self.wonder(claim.gap, found, (name,))

    def wonder(self, urgency: float, group: Group, by: tuple[str, ...]) -> None:
        """Keep a question for later; the most urgent is asked first, and of two the older."""
        heappush(self.frontier, (-urgency, len(self.frontier) + self.report.steps, group, by))

    async def once_more(self, claim: Claim) -> Claim:
        """A claim with its number as it is known by now: deduced from all that was bought."""
        answer = await self.ask(f"count {claim.condition}")
        if answer is None or answer["error"] is None:
            return claim
        return replace(claim, value=answer["value"], error=answer["error"])

    async def ask(self, question: str) -> dict[str, Any] | None:
        """One step: the answer to a question, or None where there is none or the allowance cannot pay."""
        price = await self.call("price", question=question)
        share = price["prices"][0]["share"] if "prices" in price else 1.0
        if share > self.allowance - self.report.spent:
            self.report.outcomes["too dear"] += 1
            return None
        told = await self.call("ask", question=question, why="what depends on what in this town")
        answer = told.get("answer")
        if answer is None:  # a custodian has to approve it first, or it was refused: there is more to ask
            self.report.outcomes[told.get("state", "refused")] += 1
            return None
        self.report.outcomes[answer["source"]] += 1
        self.report.spent += answer["share"]
        return answer

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool gives, or the problem with which it refuses; where it asks for patience, have some."""
        while True:
            result = await self.tools.call_tool(tool, arguments)
            if not result.is_error:
                return result.structured_content
            problem = (result.meta or {})["understudy/problem"]
            if problem["code"] not in ("rate", "queue"):
                return {"problem": problem}
            await asyncio.sleep(1)


def conditions(attribute: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The label of every declared cell of an attribute, and the condition for being in it."""
    name, labels = attribute["name"], attribute["labels"]
    if "edges" not in attribute:
        for label in attribute.get("values", labels):
            yield str(label), f"{name} = '{label}'"
        return
    inner = attribute["edges"][1:-1]  # the first and the last bin also hold what is beyond them
    for label, low, high in zip(labels, [None, *inner], [*inner, None], strict=False):
        yield (
            label,
            " and ".join(f"{name} {sign} {edge}" for sign, edge in ((">=", low), ("<", high)) if edge),
        )


async def explored(url: str, token: str, *, steps: int = STEPS) -> Report:
    """Connect to the server at a URL, as any agent does, and explore the one table that it has."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as tools,
    ):
        return await Explorer(tools, steps=steps).explore()


SERVER = """\
tables: [understudy.yml]
listen: {http: 127.0.0.1:8762, admin: 127.0.0.1:8763}
session: {alpha: 0.01, beta: 0.05, queries: 100000}
rates: {requests: 200/s, at_once: 4, waiting: 64}
response_grid_ms: 5
"""


def main(folder: Path, steps: int) -> None:
    """What a custodian does: a town of 100,000 people, a declaration, a server, and a token for the agent."""
    parquet.write_table(town.people(100_000, seed=7), folder / "town.parquet")
    declared = town.declaration("town.parquet").replace("{epsilon: 2}", "{epsilon: 2, delta: 1e-9}")
    (folder / "understudy.yml").write_text(declared, encoding="utf-8")
    (folder / "server.yml").write_text(SERVER, encoding="utf-8")
    program = [sys.executable, "-m", "understudy"]
    token = subprocess.run(
        [
            *program,
            "token",
            "new",
            "explorer",
            "--agent",
            "--doors",
            "mcp",
            "--server",
            str(folder),
            "--json",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    with subprocess.Popen(
        [*program, "serve", str(folder / "server.yml")], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            address = next(filter(None, (re.search(r"http://[\d.:]+", line) for line in server.stdout)))[0]
            report = asyncio.run(explored(address, json.loads(token.stdout)["token"], steps=steps))
        finally:
            server.terminate()
    print(*report.lines(), sep="\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made), int(sys.argv[1]) if sys.argv[1:] else STEPS)
