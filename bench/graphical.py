"""The graphical stand-in on adult: a belief pass, all three-way marginals, the fit, and synthetic rows.

A belief pass stands beside the same pass in numpy (broadcasting) and beside the memory it must touch: each
clique's table is written once on the way up, read and written once on the way down. So does a fit, for each of
its passes; answers stand beside the memory of the answers, rows beside numpy's draws of every attribute by itself.
CPU seconds of this process, best of a few repetitions; BLAS and numba on one thread. Measurements are simulated
for the figures only: true counts and Gaussian noise.

Run: python -m bench.graphical [--epsilons 0.1 1 10] [--cells 150000]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from bench.clock import best, clocked, rate
from bench.tables import NotAtHand, Table, counted, load
from bench.verdict import Verdict, at_most, claim, ended, not_run, shown, verdict
from understudy.domain.domain import Clique, Domain
from understudy.standin.graphical.belief import Propagator
from understudy.standin.graphical.model import (
    CandidateSizes,
    FitSettings,
    GraphicalStandIn,
    LogFactor,
    fit,
    model_cells,
)
from understudy.standin.graphical.tree import Attributes, JunctionTree, Layout, junction_tree
from understudy.standin.measurement import Measurement

CELLS = 150_000
WORKLOAD_CELLS = 10_000
RHO = {0.1: 0.00012, 1.0: 0.0115, 10.0: 0.74}
"""What epsilon comes to in zCDP at delta = 1e-9, roughly; all of it is spent on the measurements."""

SEED = 20240229
SAMPLED = 100_000
BAR_PASS_MS, BAR_MARGINALS_S, BAR_SAMPLE_S = 5.0, 0.15, 0.5

Numbers = NDArray[np.float64]


def information(table: NDArray) -> float:
    rates = table / table.sum()
    product = rates.sum(1, keepdims=True) * rates.sum(0, keepdims=True)
    held = rates > 0
    return float((rates[held] * np.log(rates[held] / product[held])).sum())


def chosen(table: Table, cells: int) -> list[Clique]:
    """All one-way cliques, some triples and then pairs by mutual information, as far as the model may grow."""
    domain = table.domain
    score = {c: information(table.count(c)) for c in itertools.combinations(domain.names, 2)}
    triples = sorted(workload(domain), key=lambda t: -sum(score[c] for c in itertools.combinations(t, 2)))
    picked: list[Clique] = [(name,) for name in domain.names]
    for clique in [*triples[:40:5], *sorted(score, key=lambda c: -score[c])]:
        if len(picked) < 46 and model_cells(domain, [*picked, clique]) <= cells:
            picked.append(clique)
    return picked


def workload(domain: Domain) -> list[Clique]:
    return [c for c in itertools.combinations(domain.names, 3) if domain.size(c) <= WORKLOAD_CELLS]


class NumpyPass:
    """The same two-way pass by broadcasting, one numpy call for each product and sum."""

    def __init__(self, layout: Layout, tree: JunctionTree, factors: Sequence[Attributes]) -> None:
        self.layout, self.tree, self.factors = layout, tree, factors
        self.hosts = [tree.host(f, layout) or 0 for f in factors]

    def shaped(self, table: Numbers, inner: Attributes, outer: Attributes) -> Numbers:
        return table.reshape([self.layout.sizes[a] if a in inner else 1 for a in outer])

    def onto(self, table: Numbers, outer: Attributes, inner: Attributes) -> Numbers:
        return table.sum(axis=tuple(i for i, a in enumerate(outer) if a not in inner))

    def run(self, logs: Sequence[Numbers]) -> list[Numbers]:
        tree, tables, ups = self.tree, [], {}
        for clique in tree.cliques:
            tables.append(np.ones(self.layout.shape(clique)))
        for host, factor, table in zip(self.hosts, self.factors, logs, strict=True):
            tables[host] = tables[host] * self.shaped(np.exp(table - table.max()), factor, tree.cliques[host])
        for j in reversed(range(len(tables))):
            for child in tree.children[j]:
                tables[j] = tables[j] * self.shaped(ups[child], tree.separators[child], tree.cliques[j])
            ups[j] = self.onto(tables[j], tree.cliques[j], tree.separators[j])
        for j in range(len(tables)):
            parent, separator = tree.parents[j], tree.separators[j]
            new = self.onto(tables[parent], tree.cliques[parent], separator) if parent >= 0 else np.ones(())
            tables[j] = tables[j] * self.shaped(new / ups[j], separator, tree.cliques[j])
        for host, factor in zip(self.hosts, self.factors, strict=True):
            self.onto(tables[host], tree.cliques[host], factor)
        return tables


def touch_limit(cells: int) -> float:
    """Seconds to write a table, and to read and write it again."""
    table = np.ones(cells)

    def job() -> None:
        table.fill(1.0)
        np.multiply(table, 1.5, out=table)

    return best(job, 50)


def compare_pass(domain: Domain, cliques: list[Clique]) -> list[Verdict]:
    layout = Layout(domain)
    wanted = [layout.attributes(c) for c in cliques]
    factors = tuple(a for a in wanted if not any(set(a) < set(b) for b in wanted))
    tree = junction_tree(layout, wanted)
    draw = np.random.default_rng(SEED)
    logs = [draw.normal(size=layout.cells(f)) for f in factors]
    ours, peer = Propagator(layout, tree, factors), NumpyPass(layout, tree, factors)
    same = np.allclose(ours.propagate(logs).clique(0), peer.run(logs)[0].ravel())
    cells = tree.cells(layout)
    mine = best(lambda: ours.propagate(logs), 50)
    theirs = best(lambda: peer.run(logs), 10)
    limit = touch_limit(cells)
    print(
        f"belief pass, {cells:,} cells, {len(factors)} potentials of {sum(map(layout.cells, factors)):,} cells"
    )
    print(f"  understudy {mine * 1e3:8.2f} ms   {1 / mine:8.0f} passes a CPU second")
    print(f"  numpy      {theirs * 1e3:8.2f} ms   {theirs / mine:8.1f} x ours")
    print(f"  memory     {limit * 1e3:8.2f} ms   ours is {mine / limit:.1f} x what touching the tables takes")
    candidates = [*itertools.combinations(domain.names, 2), *workload(domain)]
    sizes = CandidateSizes(domain, candidates)
    all_at_once = best(lambda: sizes.cells(cliques), 5)
    alone = len(candidates) / rate(lambda c: model_cells(domain, [*cliques, c]), candidates[::20])
    print(
        f"  sizes of {len(candidates)} candidate models {all_at_once * 1e3:.2f} ms   "
        f"a tree for each takes {alone / all_at_once:.0f} x as long"
    )
    return [
        claim("graphical, the pass equals numpy's", holds=bool(same)),
        verdict("graphical, belief pass", mine * 1e3, at_most(BAR_PASS_MS, "{:.2f} CPU ms")),
    ]


def mean_tvd(model: GraphicalStandIn, table: Table) -> float:
    asked = workload(table.domain)
    told = zip(asked, model.project_many(asked), strict=True)
    return float(np.mean([0.5 * np.abs(a - table.count(c) / table.rows).sum() for c, a in told]))


def fits(table: Table, cliques: list[Clique], epsilons: Sequence[float]) -> GraphicalStandIn:
    """Print what fits take; the last model."""
    domain, rows = table.domain, table.rows
    limit = touch_limit(model_cells(domain, cliques))
    print(f"fit to {len(cliques)} measured cliques (cold: from nothing; warm: two thirds were fitted before;")
    print("x memory: what touching the model's tables in each pass takes)")
    print(
        f"{'epsilon':>9}{'cold s':>9}{'passes':>8}{'x memory':>10}{'warm s':>9}{'passes':>8}{'x memory':>10}"
        f"{'mean TVD':>10}{'at optimum':>12}"
    )
    models = []
    for epsilon in epsilons:
        draw, std = np.random.default_rng(SEED), (len(cliques) / (2 * RHO[epsilon])) ** 0.5
        truth = {c: table.count(c) for c in cliques}
        measured = [Measurement(c, t + draw.normal(size=t.shape) * std, std**2) for c, t in truth.items()]
        before = fit(domain, measured[: 2 * len(measured) // 3], total=rows)
        cold, warm = fit(domain, measured, total=rows), fit(domain, measured, total=rows, start=before)
        close = FitSettings(accuracy=1e-6, noise_share=0, most_passes=2000)
        optimum = fit(domain, measured, total=rows, settings=close, start=cold)
        told = f"{epsilon:9g}"
        for start, model in ((None, cold), (before, warm)):
            seconds = best(lambda m=measured, s=start: fit(domain, m, total=rows, start=s), 2)
            passes = model.report.passes if model.report else 0
            told += f"{seconds:9.2f}{passes:8d}{seconds / (max(passes, 1) * limit):10.1f}"
        print(f"{told}{mean_tvd(cold, table):10.4f}{mean_tvd(optimum, table):12.4f}", flush=True)
        models.append(cold)
    return models[-1]


def fresh(model: GraphicalStandIn) -> GraphicalStandIn:
    """The same model with its beliefs at hand and no answer kept."""
    again = GraphicalStandIn(model.domain, model.total, model.factors)
    again.project((model.domain.names[0],))
    return again


def by_itself(model: GraphicalStandIn, rows: int) -> dict[str, NDArray[np.int64]]:
    """Every attribute drawn by itself in numpy: rows with the right columns, and nothing between them."""
    draw = np.random.default_rng(SEED)
    ends = {name: np.cumsum(model.project((name,))) for name in model.domain.names}
    return {name: np.searchsorted(end, draw.random(rows) * end[-1]) for name, end in ends.items()}


def answers(model: GraphicalStandIn) -> tuple[list[Numbers], Verdict]:
    questions = workload(model.domain)
    found: list[Numbers] = []
    times = []
    for _ in range(3):
        again = fresh(model)
        found, seconds = clocked(lambda m=again: m.project_many(questions))
        times.append(seconds)
    cells = sum(map(model.domain.size, questions))
    beside = f"{min(times) / touch_limit(cells):.0f} x what touching them takes"
    print(
        f"all {len(questions)} three-way marginals ({cells:,} cells), nothing kept: {min(times):.3f} s, {beside}"
    )
    return found, verdict("graphical, marginals", min(times), at_most(BAR_MARGINALS_S, "{:.3f} CPU s"))


def sampling(model: GraphicalStandIn, told: list[Numbers], rows: int) -> Verdict:
    domain, questions = model.domain, workload(model.domain)
    sampled = best(lambda: model.sample_codes(SAMPLED, rng=np.random.default_rng(SEED)), 3)
    alone = best(lambda: by_itself(model, SAMPLED), 3)
    print(
        f"{SAMPLED:,} synthetic rows of {len(domain)} attributes: {sampled:.3f} s, "
        f"{sampled / alone:.1f} x numpy's draws of every attribute by itself"
    )
    draw = np.random.default_rng(SEED)
    codes = {k: v.astype(np.int64) for k, v in model.sample_codes(rows, rng=draw).items()}
    ours = [
        0.5 * np.abs(counted(domain, q, codes) / rows - a).sum() for q, a in zip(questions, told, strict=True)
    ]
    chance = [
        0.5 * np.abs(draw.multinomial(rows, a.ravel() / a.sum()) / rows - a.ravel()).sum() for a in told
    ]
    print(
        f"{rows:,} rows against the model, mean TVD: {np.mean(ours):.4f}; independent rows {np.mean(chance):.4f} "
        f"({np.mean(chance) / np.mean(ours):.2f} x)"
    )
    return verdict(f"graphical, {SAMPLED:,} rows", sampled, at_most(BAR_SAMPLE_S, "{:.3f} CPU s"))


def steps(domain: Domain) -> None:
    """Multiplicative weights: one step and the next answer, on a tree that stays as it is."""
    draw = np.random.default_rng(SEED)
    cliques = [domain.clique(c) for c in (("education", "occupation"), ("age", "occupation"), ("age", "sex"))]
    factors = tuple(LogFactor(c, np.zeros(domain.shape(c))) for c in cliques)
    model = GraphicalStandIn(domain, 1.0, factors)
    change = draw.normal(size=domain.shape(cliques[1]))
    seconds = best(lambda: model.reweight(cliques[1], change).project(cliques[1]), 20)
    layout = Layout(domain)
    held = [layout.attributes(c) for c in cliques]
    tree = junction_tree(layout, held)
    peer = NumpyPass(layout, tree, held)
    logs = [np.zeros(domain.shape(c)) for c in cliques]
    theirs = best(lambda: peer.run([logs[0], logs[1] + change, logs[2]]), 20)
    print(
        f"one multiplicative-weights step and an answer, {domain.size():.1e} cells in {tree.cells(layout):,}: "
        f"{seconds * 1e3:.2f} ms, {theirs / seconds:.1f} x as long in numpy, "
        f"{seconds / touch_limit(tree.cells(layout)):.0f} x what touching the tables takes"
    )


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilons", nargs="+", type=float, choices=list(RHO), default=list(RHO))
    parser.add_argument("--cells", type=int, default=CELLS, help="the most cells of the model's tables")
    asked = parser.parse_args(arguments)
    try:
        table = load("adult")
    except NotAtHand as missing:
        return shown(not_run("graphical", str(missing)))
    cliques = chosen(table, asked.cells)
    found = compare_pass(table.domain, cliques)
    model = fits(table, cliques, asked.epsilons)
    told, prompt = answers(model)
    found += [prompt, sampling(model, told, table.rows)]
    steps(table.domain)
    return shown(*(one.of_full_size("cells", asked.cells, CELLS) for one in found))


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
