"""The custodian's pages, on the admin port: approvals, tokens, tables and spending, releases, health."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from understudy.releases.method_names import OFFERED
from understudy.server.pages import words
from understudy.server.pages.rendering import markup
from understudy.server.pages.views.ledger import days_drawn, spending_drawn
from understudy.server.pages.visitor import Visit, see
from understudy.server.problems import Problem
from understudy.server.tokens import DAYS, DOORS, ROLES

DECIDED = 30
"""Decisions that are listed: the newest."""

WORKLOADS = ("all-1-way", "all-2-way", "all-3-way")


# ---- approvals


async def approvals(visit: Visit) -> Response:
    """What waits for a decision, and what was decided."""
    return await _approvals(visit)


async def _approvals(visit: Visit, *, status: int = 200, problem: dict[str, Any] | None = None) -> Response:
    gate = visit.gate
    found = await gate.on_free(visit.caller, lambda: [one.as_dict() for one in gate.approvals.all()])
    left = {one["name"]: one["left"] for one in await gate.tables(visit.caller)}
    waiting = [one | {"of_left": _of_left(one, left)} for one in found if one["state"] == "waiting"]
    decided = [one for one in found if one["state"] != "waiting"][::-1][:DECIDED]
    return visit.page(
        "approvals.html", "approvals", status, waiting=waiting, decided=decided, problem=problem,
        above=gate.config.approve_above,
    )  # fmt: skip


def _of_left(one: dict[str, Any], left: dict[str, float | None]) -> float | None:
    whole = left.get(one["table"])
    return one["share"] / whole if whole else None


async def decided(visit: Visit) -> Response:
    """Approve or deny a question that waits; a denial has a reason, which the analyst reads."""
    gate, id, by = visit.gate, visit.path["id"], visit.caller.analyst
    decision, reason = visit.sent("decision"), visit.sent("reason")[:1000]

    def decide() -> None:
        if decision == "approve":
            gate.approvals.approve(id, by)
        elif decision == "deny":
            gate.approvals.deny(id, by, reason)
        else:
            raise Problem(422, "form", "Approve or deny.", hint="Take one of the two buttons.")

    try:
        await gate.on_free(visit.caller, decide)
    except Problem as problem:
        return await _approvals(visit, status=problem.status, problem=problem.as_plain())
    return see("/")


# ---- tokens


async def tokens(visit: Visit) -> Response:
    """Every token without its secret, and a form for a new one."""
    return await _tokens(visit)


async def _tokens(
    visit: Visit,
    *,
    status: int = 200,
    secret: str = "",
    made: dict[str, Any] | None = None,
    problem: dict[str, Any] | None = None,
) -> Response:
    gate = visit.gate
    now = gate.store.now()
    found = await gate.on_free(visit.caller, lambda: [one.as_dict(now) for one in gate.tokens.all()])
    order = {"valid": 0, "expired": 1, "revoked": 2}
    found.sort(key=lambda one: (order.get(one["state"], 3), one["analyst"]))
    return visit.page(
        "tokens.html", "tokens", status, listed=found, secret=secret, made=made, problem=problem, roles=ROLES,
        doors=DOORS, days=DAYS,
    )  # fmt: skip


async def made(visit: Visit) -> Response:
    """Make a token, and show its secret this once."""
    gate, form = visit.gate, visit.form
    try:
        days = float(visit.sent("days") or DAYS)
    except ValueError:
        days = 0.0

    def make() -> tuple[dict[str, Any], str]:
        token, secret = gate.tokens.make(
            visit.sent("analyst"),
            role=visit.sent("role"),
            doors=[str(door) for door in form.getlist("doors")],
            days=days,
            agent=bool(visit.sent("agent")),
            read_only=bool(visit.sent("read_only")),
            by=visit.caller.analyst,
        )
        return token.as_dict(gate.store.now()), secret

    try:
        told, secret = await gate.on_free(visit.caller, make)
    except Problem as problem:
        return await _tokens(visit, status=problem.status, problem=problem.as_plain())
    return await _tokens(visit, secret=secret, made=told)


async def revoked(visit: Visit) -> Response:
    """Revoke a token and the logins that were opened with it."""
    gate, id = visit.gate, visit.path["id"]

    def revoke() -> None:
        if gate.tokens.get(id) is None:
            raise Problem(404, "no-token", "There is no such token.", hint="The page Tokens lists them all.")
        gate.tokens.revoke(id, by=visit.caller.analyst)

    await gate.on_free(visit.caller, revoke)
    return see("/admin/tokens")


# ---- tables


async def tables(visit: Visit) -> Response:
    """Each table: what was spent, by whom and when, its limits, and whether it is paused."""
    gate = visit.gate
    lines = {one["name"]: one for one in await gate.tables(visit.caller)}
    limits = {one["table"]: one for one in await gate.limits(visit.caller)}
    pauses = {one.table: one for one in await gate.on_free(visit.caller, gate.pauses.all)}
    shown = [
        {
            "name": name,
            "line": line,
            "limits": _limits(limits.get(name)),
            "spending": markup(spending_drawn(limits[name])) if name in limits else "",
            "days": markup(await days_drawn(visit, name, limits[name]["cap"])) if name in limits else "",
            "pause": pauses.get(name),
        }
        for name, line in lines.items()
    ]
    return visit.page("admin_tables.html", "tables", shown=shown)


def _limits(told: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The limits of a table as parts of its budget."""
    if told is None or not told["cap"]:
        return []
    cap, limits = told["cap"], told["limits"]
    said = [("each analyst", limits["analyst"]), ("a day", limits["day"]), ("a month", limits["month"])]
    said += [("everybody else" if name == "*" else name, size) for name, size in limits["analysts"].items()]
    return [(name, words.part(size, cap)) for name, size in said if size is not None]


async def paused(visit: Visit) -> Response:
    """Pause a table with a reason, resume it, or read its declaration again."""
    gate, by = visit.gate, visit.caller.analyst
    table = visit.table(visit.path["table"])
    act = visit.sent("act")
    if act == "pause":
        reason = visit.sent("reason")[:500]
        await gate.on_free(visit.caller, lambda: gate.pauses.pause(table, by=by, reason=reason))
    elif act == "resume":
        await gate.on_free(visit.caller, lambda: gate.pauses.resume(table, by=by))
    elif act == "reload":
        await gate.reload(visit.caller, table)
    else:
        raise Problem(422, "form", "Nothing was chosen.", hint="Take one of the buttons.")
    return see("/admin/tables")


# ---- releases


async def jobs(visit: Visit) -> Response:
    """Releases that are being made or were made since the server started, and a form for another."""
    return await _jobs(visit)


async def _jobs(visit: Visit, *, status: int = 200, problem: dict[str, Any] | None = None) -> Response:
    releases = visit.request.app.state.releases
    runs = [run.as_dict() for run in releases.runs.values()][::-1]
    return visit.page(
        "jobs.html", "jobs", status, runs=runs, problem=problem, methods=OFFERED, workloads=WORKLOADS,
        has_folder=visit.gate.config.releases is not None, sent=dict(visit.form),
    )  # fmt: skip


async def started(visit: Visit) -> Response:
    """Start a release in a process of its own."""
    gate = visit.gate
    try:
        table, name = visit.table(visit.sent("table")), visit.sent("name")
        part = _positive(visit.sent("part"), "The part of the budget")
        method, workload = visit.sent("method"), visit.sent("workload")
        if method not in OFFERED or workload not in WORKLOADS:
            raise Problem(422, "form", "Method and workload are of the lists.", hint="Choose them.")
        if part > 100:
            raise Problem(422, "form", "A part is at most 100%.", hint="Write a number such as 10.")
        whole = (await gate.describe(visit.caller, table))["budget"]["epsilon"]
        epsilon = round(whole * part / 100, 9)
        await visit.request.app.state.releases.start(
            name, table=table, declaration=gate.table(table).path, by=visit.caller.analyst, epsilon=epsilon,
            options={"method": method, "workload": workload}, sure=True,  # the form says what part it takes
        )  # fmt: skip
    except Problem as problem:
        return await _jobs(visit, status=problem.status, problem=problem.as_plain())
    facts = {"release": name, "table": table, "epsilon": epsilon}
    await gate.on_free(visit.caller, lambda: gate.audit.write(visit.caller.analyst, "start release", facts))
    return see("/admin/releases")


def _positive(text: str, what: str) -> float:
    try:
        value = float(text.replace("%", "").strip())
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise Problem(422, "form", f"{what} is no positive number.", hint="Write a number such as 10.")
    return value


# ---- health


async def health(visit: Visit) -> Response:
    """Whether tables and ledgers can be reached, the queues, the store and the audit log."""
    gate = visit.gate
    lines = await gate.tables(visit.caller)
    number, head = await gate.on_free(visit.caller, lambda: gate.audit.head)
    queues = [
        {"name": "paid questions", "active": gate.looks.active, "waiting": gate.looks.length},
        {"name": "free answers and pages", "active": gate.free.active, "waiting": gate.free.length},
    ]
    rates = gate.config.rates
    return visit.page(
        "health.html", "health", lines=lines, queues=queues, number=number, head=head, rates=rates,
        terms=gate.served.terms, config=gate.config,
    )  # fmt: skip
