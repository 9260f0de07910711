"""What is public about a table, as plain values: its domain, its budget, and the sessions in which it is asked."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from understudy.domain.attribute import Attribute, Categories
from understudy.domain.bins import Bins
from understudy.privacy.cost import UNITS, Cost
from understudy.project import Project
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.server.served_tables import OpenTable
from understudy.sessions.session import Session

MOST_CELLS_LISTED = 1000
"""Labels of one attribute that are listed; of an attribute with more, so many. `values` and `edges` are whole."""


def table_as_plain(project: Project) -> dict[str, Any]:
    """Everything that the custodian declared and analysts may know, with a few questions to begin with."""
    declared = project.declaration
    return {
        "name": declared.name,
        "protect": str(declared.protect),
        "neighbours": str(declared.neighbours),
        "rows": project.curator.rows if declared.relation.rows_are_public else None,
        "rows_at_least": declared.rows_at_least,
        "rows_at_most": declared.rows_at_most,
        "budget": {
            "epsilon": float(declared.budget.epsilon),
            "delta": float(declared.budget.delta),
            "currency": declared.budget.currency,
            **declared.budget.described(),
        },
        "attributes": [_attribute(attribute) for attribute in project.domain],
        "examples": _examples(project),
    }


def _attribute(attribute: Attribute) -> dict[str, Any]:
    labels = attribute.labels
    told: dict[str, Any] = {
        "name": attribute.name,
        "type": attribute.kind,
        "cells": attribute.size,
        "labels": list(labels[:MOST_CELLS_LISTED]),
        "outside": str(attribute.outside),
        "null": attribute.null,
    }
    if isinstance(attribute, Categories):
        told["values"] = list(attribute.values)
    if isinstance(attribute, Bins):
        edges = [*attribute.starts, attribute.upper]
        told["edges"] = [edge.isoformat() if isinstance(edge, dt.date) else edge for edge in edges]
        if attribute.resolution is not None:  # a measure, which has averages and quantiles beside its bins
            whole = attribute.resolution.denominator == 1
            told["resolution"] = int(attribute.resolution) if whole else float(attribute.resolution)
    return told


def _examples(project: Project) -> list[str]:
    names = [attribute.name for attribute in project.domain if attribute.size <= 100]
    questions = [f"count by {name}" for name in names[:2]]
    if names:
        questions.append(
            f'SELECT "{names[0]}", count(*) FROM "{project.declaration.name}" GROUP BY "{names[0]}"'
        )
    return questions


def budget_as_plain(opened: OpenTable, analyst: str) -> dict[str, Any]:
    """The budget of a table as one analyst sees it. Amounts are in `currency`, shares are parts of the whole."""
    project = opened.project
    ledger, declared = project.ledger, project.declaration
    cap, left, mine = ledger.budget.cap, ledger.remaining, ledger.available(analyst)
    own = ledger.spent_by().get(analyst)
    own_units = 0 if own is None else own.units

    def told(cost: Cost) -> dict[str, float]:
        return {"amount": cost.amount, "share": ledger.budget.share(cost)}

    kind = type(cap)
    limits = declared.limits
    own_limit = limits.of_analyst(analyst)
    return {
        "table": declared.name,
        "currency": cap.currency,
        "epsilon": float(ledger.budget.epsilon),
        "delta": float(ledger.budget.delta),
        **ledger.budget.described(),
        "spent_epsilon": ledger.budget.spent_epsilon(ledger.spent),
        **(
            {"key_delta": float(ledger.budget.key_delta), "key_delta_spent": float(ledger.delta_spent)}
            if ledger.budget.key_delta
            else {}
        ),
        "cap": told(cap),
        "left": told(left),
        "yours": {
            "spent": told(kind(own_units)),
            "left": told(mine),
            "limit": None if own_limit is None else told(kind(int(own_limit * UNITS))),
        },
        "others_spent": told(kind(max(cap.units - left.units - own_units, 0))),
        "day_limit": None if limits.day is None else told(kind(int(limits.day * UNITS))),
        "month_limit": None if limits.month is None else told(kind(int(limits.month * UNITS))),
        "about": about_more(opened, analyst, mine),
    }


def about_more(opened: OpenTable, analyst: str, left: Cost) -> dict[str, Any] | None:
    """How many more new counts, each by itself within the session's error, what is left would pay for."""
    session = opened.session(analyst)
    cost = _count_price(opened.project, session.width)
    if cost is None or not cost.units:
        return None
    return {"counts": left.units // cost.units, "within": session.width, "each": cost.amount}


def _count_price(project: Project, width: int) -> Cost | None:
    """What one count of a single cell costs by itself at an error; None where the domain has no such count."""
    attribute = next((attribute for attribute in project.domain if attribute.size > 1), None)
    if attribute is None:
        return None
    cell = np.arange(attribute.size) == 0
    asked = Marginal.of(LinearQuery.conjunction(project.domain, {attribute.name: cell}))
    return project.quote(asked, error=width).cost


def limits_as_plain(project: Project) -> dict[str, Any]:
    """The limits of a table and what each analyst has spent of its budget, in its currency."""
    limits, ledger = project.declaration.limits, project.ledger
    return {
        "table": project.declaration.name,
        "currency": ledger.budget.currency,
        "cap": ledger.budget.cap.amount,
        "spent": ledger.spent.amount,
        "limits": {
            "analyst": None if limits.analyst is None else float(limits.analyst),
            "analysts": {name: float(size) for name, size in limits.analysts.items()},
            "day": None if limits.day is None else float(limits.day),
            "month": None if limits.month is None else float(limits.month),
        },
        "spent_by": {name: cost.amount for name, cost in ledger.spent_by().items()},
    }


def session_as_plain(session: Session, *, is_shared: bool) -> dict[str, Any]:
    """The promise of a session and how far it has come."""
    return {
        "name": session.name,
        "shared": is_shared,
        "alpha": float(session.terms.alpha),
        "beta": float(session.terms.beta),
        "queries": session.terms.queries,
        "noise": session.terms.noise,
        "width": session.width,
        "purchases": session.purchases,
        "contradicted": session.contradicted,
    }
