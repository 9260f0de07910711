"""One run of a peer, in the peer's own environment; never imported by the program or by its tests.

    python synthesis_peer.py PEER TABLE.csv DOMAIN.json EPSILON DELTA RHO OUT.csv

writes synthetic rows as codes, and prints CPU seconds and peak memory as JSON. The seconds begin when the peer is
imported and the table is in memory; its settings are its own. A peer that is published as source alone is imported
from the checkout that PEER_SOURCE names.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
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


def _checkout(*below: str) -> None:
    """Have Python import from the checkout of a peer's source."""
    sys.path.insert(0, os.path.join(os.environ["PEER_SOURCE"], *below))


def _workload(job: Job) -> list[tuple[str, ...]]:
    """What rows are judged by: the marginals of three attributes with at most 10,000 cells."""
    sizes = job.sizes
    return [c for c in combinations(sizes, 3) if sizes[c[0]] * sizes[c[1]] * sizes[c[2]] <= 10_000]


def _mbi_dataset(job: Job) -> Any:
    import mbi
    import pandas as pd

    if not hasattr(mbi.Domain, "attrs"):  # what its mechanisms call it, and 2.0 does not
        mbi.Domain.attrs = property(lambda domain: domain.attributes)
    frame = pd.read_csv(job.table)
    return mbi.Dataset(
        {name: frame[name].to_numpy() for name in job.sizes}, mbi.Domain.fromdict(dict(job.sizes))
    )


def _mbi_rows(made: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(made.to_dict())


def _gaussian_rho(epsilon: float, delta: float) -> float:
    """The largest rho of Gaussian noise alone at (epsilon, delta), by its exact trade-off.

    It is what `calibrate` of dpsynth searches for; that search divides by zero with the accountant on the index.
    """
    from math import exp

    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(mu: float) -> float:
        high, low = norm.cdf(mu / 2 - epsilon / mu), norm.cdf(-mu / 2 - epsilon / mu)
        return float(high - exp(epsilon) * low) - delta

    return float(brentq(excess, 1e-6, 100.0, xtol=1e-12)) ** 2 / 2


def _dpsynth(name: str) -> Callable[[Job], Fit]:
    """With its default settings, the judged workload, and the price that its own calibration finds."""

    def prepare(job: Job) -> Fit:
        _checkout()
        import numpy as np
        from dpsynth import discrete_mechanisms as known

        data = _mbi_dataset(job)

        def fit() -> Any:
            inner = getattr(known, name)(workload=_workload(job))
            made = known.DiscreteConfig(mechanism=inner, compress_columns=True)
            calibrated = made.configure(zcdp_rho=_gaussian_rho(job.epsilon, job.delta))
            return _mbi_rows(calibrated(np.random.default_rng(), data).synthetic_data)

        return fit

    return prepare


def _mbi_checkout() -> None:
    """Its mechanisms with the library they were written for: the one on the index lacks arguments of AIM's."""
    _checkout("mechanisms")
    _checkout("src")


def _mbi_mst(job: Job) -> Fit:
    _mbi_checkout()
    from mst import MST  # type: ignore[import-not-found]

    data = _mbi_dataset(job)
    return lambda: _mbi_rows(MST(data, job.epsilon, job.delta))


def _mbi_aim(job: Job) -> Fit:
    _mbi_checkout()
    from aim import AIM  # type: ignore[import-not-found]

    data, workload = _mbi_dataset(job), [(clique, 1.0) for clique in _workload(job)]
    return lambda: _mbi_rows(AIM(job.epsilon, job.delta).run(data, workload)[1])


PEERS = {
    "dpsynth-swift": _dpsynth("SWIFTConfig"),
    "dpsynth-gdp-aim": _dpsynth("AIMGDPConfig"),
    "mbi-aim": _mbi_aim,
    "mbi-mst": _mbi_mst,
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
