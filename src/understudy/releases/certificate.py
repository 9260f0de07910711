"""The certificate of a release: what is proved, by which theorem, at what price, in plain values."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from understudy import __version__
from understudy.domain.plain import domain_as_plain, domain_digest
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.cost import UNITS
from understudy.project import Project
from understudy.query.constraint import described
from understudy.releases.folder import FORMAT
from understudy.releases.run import Outcome, Run


def certificate_of(project: Project, run: Run, outcome: Outcome) -> dict[str, Any]:
    """What is proved and what was paid, in plain values; the same for a run and for its resumption."""
    declared, spent, proof = project.declaration, run.spent, _plain(outcome.proof)
    return {
        "format": FORMAT,
        "program": f"understudy {__version__}",
        "table": declared.name,
        "method": outcome.method,
        "mechanism": proof.pop("mechanism", outcome.method),
        "theorem": proof.pop("theorem", ""),
        "parameters": proof.pop("parameters", proof),
        **({"proof": proof} if "parameters" in outcome.proof and proof else {}),
        "privacy": {
            "epsilon": float(run.budget.epsilon),
            "delta": float(run.budget.delta),
            "neighbours": str(declared.neighbours),
            "rows_of_a_person": declared.relation.max_rows,
        },
        "cost": {"currency": spent.currency, "amount": spent.amount, "units": spent.units},
        **({"ledger": "in memory"} if isinstance(project.ledger, MemoryLedger) else {}),
        "run": run.name,
        "requests": list(dict.fromkeys(f"{run.name} {step.name}" for step in run.steps)),
        "steps": [
            {"step": step.name, "what": step.what, "cost": step.cost.units / UNITS} for step in run.steps
        ],
        "beta": float(run.beta),
        "rows": float(outcome.rows),
        "workload": {"marginals": len(run.workload), "queries": run.workload.queries},
        **({} if run.target is None else {"target": run.target}),
        "answers": [
            {
                "by": list(a.clique),
                "basis": a.basis,
                "error": _plain(float(np.max(a.error, initial=0.0))),
                "half_width": _plain(float(np.max(a.half_width, initial=0.0))),
            }
            | ({"beside": True} if a in outcome.also else {})
            for a in (*outcome.answers, *outcome.also)
        ],
        "domain": {
            "digest": domain_digest(project.domain),
            "attributes": domain_as_plain(project.domain),
        },
        "columns": _declared_only(project, project.curator.column_types),
        "storage": _declared_only(project, project.curator.column_storage),
        **({"constraints": described(declared.constraints)} if declared.constraints else {}),
    }


def _declared_only(project: Project, known: Mapping[str, str]) -> dict[str, str]:
    """What a schema tells of the declared columns: it is taken for public."""
    return {
        attribute.column: known[attribute.column] for attribute in project.domain if attribute.column in known
    }


def _plain(value: Any) -> Any:
    """Plain values for JSON: rationals and numpy's numbers as floats and integers, what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating | Fraction):
        number = float(value)
        return number if isfinite(number) else None
    return value if value is None or isinstance(value, str) else str(value)
