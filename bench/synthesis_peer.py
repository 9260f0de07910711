"""One run of a peer, in the peer's own environment; never imported by the program or by its tests.

    python synthesis_peer.py PEER TABLE.csv DOMAIN.json EPSILON DELTA RHO OUT.csv

writes synthetic rows as codes, and prints CPU seconds and peak memory as JSON. The seconds begin when the peer is
imported and the table is in memory; its settings are its own.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TRIES = 6
"""OpenDP's mechanisms refuse, by the rounding of floats, about every other budget that they split themselves."""


@dataclass(frozen=True)
class Job:
    """A table in a file, the sizes of its attributes, and the price."""

    table: str
    sizes: dict[str, int]
    epsilon: float
    delta: float
    rho: float


Fit = Callable[[], Any]
"""What is timed; it returns a data frame."""


def _dpmm(name: str) -> Callable[[Job], Fit]:
    def prepare(job: Job) -> Fit:
        import dpmm.pipelines as pipelines
        import pandas as pd

        frame = pd.read_csv(job.table)[list(job.sizes)]

        def fit() -> Any:
            pipeline = getattr(pipelines, name)(
                epsilon=job.epsilon, delta=job.delta, disable_processing=True, n_jobs=1
            )
            pipeline.fit(frame, domain=dict(job.sizes))
            return pipeline.generate(n_records=len(frame))

        return fit

    return prepare


def _opendp(name: str) -> Callable[[Job], Fit]:
    def prepare(job: Job) -> Fit:
        import mbi  # noqa: F401  # imported late by the peer: not part of its work
        import opendp.prelude as dp
        import polars as pl
        from opendp.mod import OpenDPException

        dp.enable_features("contrib")
        frame = pl.read_csv(job.table).select(list(job.sizes)).lazy()
        keys = {column: list(range(size)) for column, size in job.sizes.items()}
        algorithm = getattr(dp.mbi, name)()

        def fit(rho: float) -> Any:
            context = dp.Context.compositor(
                data=frame,
                privacy_unit=dp.unit_of(contributions=1),
                privacy_loss=dp.loss_of(rho=rho * 1.000001),
            )
            query = context.query(rho=rho).select(*job.sizes)
            return query.contingency_table(keys=keys, algorithm=algorithm).release().synthesize().fill_null(0)

        def tried() -> Any:
            for attempt in range(TRIES):
                try:
                    return fit(job.rho * (1 - 1e-4 * attempt))
                except OpenDPException as error:
                    if "insufficient budget" not in str(error) or attempt == TRIES - 1:
                        raise
                    _start_again()
            raise AssertionError

        return tried

    return prepare


def _smartnoise(name: str) -> Callable[[Job], Fit]:
    def prepare(job: Job) -> Fit:
        import pandas as pd
        from snsynth import Synthesizer

        frame = pd.read_csv(job.table)[list(job.sizes)]

        def fit() -> Any:
            maker = Synthesizer.create(name, epsilon=job.epsilon, delta=job.delta, verbose=False)
            maker.fit(frame, categorical_columns=list(job.sizes), preprocessor_eps=0.0)
            return maker.sample(len(frame))

        return fit

    return prepare


PEERS = {
    "opendp-aim": _opendp("AIM"),
    "dpmm-aim": _dpmm("AIMPipeline"),
    "smartnoise-aim": _smartnoise("aim"),
    "opendp-mst": _opendp("MST"),
    "dpmm-mst": _dpmm("MSTPipeline"),
    "smartnoise-mst": _smartnoise("mst"),
}

_begun = [0.0]


def _start_again() -> None:
    """What came before is not counted: an attempt that the peer itself threw away."""
    _begun[0] = _cpu()


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main(peer: str, table: str, domain: str, epsilon: str, delta: str, rho: str, out: str) -> None:
    with open(domain, encoding="utf-8") as file:
        sizes = json.load(file)
    fit = PEERS[peer](Job(table, sizes, float(epsilon), float(delta), float(rho)))
    _start_again()
    rows = fit()
    seconds = _cpu() - _begun[0]
    if hasattr(rows, "write_csv"):
        rows.select(list(sizes)).write_csv(out)
    else:
        rows[list(sizes)].to_csv(out, index=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": seconds, "megabytes": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
