"""A small table and a small method of release, for tests of everything around a method.

`python -m tiny_release ARGUMENTS` is the program with the method `tiny` among its methods; it halts before the
step that the environment variable TINY_HALT_AT names, once it has written the file TINY_HALTED.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from understudy.declaration.file import parse
from understudy.domain.domain import Domain
from understudy.noise.samplers import SeededNoise
from understudy.project import Project
from understudy.query.marginal import Marginal
from understudy.releases import demand, forecast_errors, methods
from understudy.releases.method_names import MethodName
from understudy.releases.run import MarginalAnswer, Outcome, Progress, Run

DECLARATION = """\
understudy: 1
name: people
source: people.parquet
budget: {epsilon: 2}
attributes:
  age: {type: integer, edges: [0, 18, 65, 120]}
  sex: {type: category, values: [F, M], null: true}
  born: {type: date, edges: [1900-01-01, 1950-01-01, 2000-01-01, 2020-12-31]}
  income: {type: real, edges: [0, 1000, 5000, 20000], outside: other, null: true}
  smoker: {type: boolean, null: true}
"""
ROWS = 600


def people(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(5)
    missing = rng.random(rows) < 0.1
    days = rng.integers(-25_000, 18_000, rows).astype("datetime64[D]")
    return pa.table(
        {
            "age": pa.array(rng.integers(0, 100, rows), pa.int32()),
            "sex": pa.array(rng.choice(["F", "M", "X"], rows, p=[0.5, 0.4, 0.1]), mask=missing),
            "born": pa.array(days),
            "income": pa.array(rng.gamma(2, 2500, rows), mask=rng.random(rows) < 0.1),
            "smoker": pa.array(rng.random(rows) < 0.3, mask=missing),
        }
    )


def project(text: str = DECLARATION, *, seed: int = 3, rows: int = ROWS) -> Project:
    return Project.frame(people(rows), parse(text), noise=SeededNoise(seed))


class Product:
    """Independent attributes."""

    def __init__(self, domain: Domain, parts: dict[str, np.ndarray]) -> None:
        self.domain, self.parts = domain, parts

    def project(self, clique: tuple[str, ...]) -> np.ndarray:
        table = np.ones(())
        for name in clique:
            table = np.multiply.outer(table, self.parts[name])
        return table


def tiny(run: Run, *, alpha: float | None = None, speed: int = 1) -> Outcome:
    """Every attribute's own counts, in one step each; what follows from them about the workload."""
    del alpha
    if speed < 1:
        raise ValueError("speed")
    names = run.domain.names
    each = (run.price(1) / len(names)).whole_units
    parts, answers = {}, []
    for i, name in enumerate(names):
        run.report(Progress(f"counting {name}", i, len(names)))
        _halt(name)
        (found,) = run.measure(
            f"count {name}", [Marginal(run.domain, (name,))], each, beta=run.beta / len(names)
        )
        positive = np.maximum(found.noisy, 0.5)
        parts[name] = positive / positive.sum()
        answers.append(MarginalAnswer.around((name,), found.value, found.error, "measured"))
    standin = Product(run.domain, parts)
    rows = float(sum(parts[names[0]] * answers[0].counts.sum()))
    rows = float(run.curator.rows) if run.curator.declaration.neighbours == "replace" else rows
    for clique in run.workload:
        if len(clique) > 1:
            counts = standin.project(clique) * rows
            answers.append(
                MarginalAnswer.around(clique, counts, np.full(counts.shape, np.inf), "uncertified")
            )
    proof = {"mechanism": "noise on every attribute", "theorem": "", "parameters": {"attributes": len(names)}}
    return Outcome("tiny", standin, rows, tuple(answers), proof)


def _halt(step: str) -> None:
    if os.environ.get("TINY_HALT_AT") == step:
        Path(os.environ["TINY_HALTED"]).write_text(step)
        while True:
            time.sleep(0.05)


def with_tiny() -> dict[str, methods.Method]:
    """The methods, and the small one."""
    mine = methods.Method(
        MethodName("tiny", "for tests", lambda parameters: ""),
        "tiny_release:tiny",
        lambda run, options: "",
        lambda run: 0.0,
        held=lambda run, options: 0,
        looked_at=demand.the_workload,
        foreseen=forecast_errors.unknown,
    )
    return {"tiny": mine, **methods.METHODS}


if __name__ == "__main__":
    from understudy.cli.app import main

    methods.METHODS = with_tiny()
    main()
