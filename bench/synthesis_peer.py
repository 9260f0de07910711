"""One run of a peer, in the peer's own environment; never imported by the program or by its tests.

    python synthesis_peer.py PEER TABLE.csv DOMAIN.json EPSILON DELTA RHO OUT.csv

writes synthetic rows as codes, and prints CPU seconds and peak memory as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def _dpmm(name: str) -> Callable[..., Any]:
    def run(table: str, sizes: dict[str, int], epsilon: float, delta: float, rho: float) -> Any:
        del rho
        import dpmm.pipelines as pipelines
        import pandas as pd

        frame = pd.read_csv(table)[list(sizes)]
        pipeline = getattr(pipelines, name)(epsilon=epsilon, delta=delta, disable_processing=True, n_jobs=1)
        pipeline.fit(frame, domain=dict(sizes))
        return pipeline.generate(n_records=len(frame))

    return run


def _opendp(name: str) -> Callable[..., Any]:
    def run(table: str, sizes: dict[str, int], epsilon: float, delta: float, rho: float) -> Any:
        del epsilon, delta
        import opendp.prelude as dp
        import polars as pl

        dp.enable_features("contrib")
        frame = pl.scan_csv(table).select(list(sizes))
        context = dp.Context.compositor(
            data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho * 1.000001)
        )
        asked = context.query(rho=rho).select(*sizes)
        found = asked.contingency_table(
            keys={column: list(range(size)) for column, size in sizes.items()},
            algorithm=getattr(dp.mbi, name)(),
        ).release()
        return found.synthesize().fill_null(0)

    return run


def _smartnoise(name: str) -> Callable[..., Any]:
    def run(table: str, sizes: dict[str, int], epsilon: float, delta: float, rho: float) -> Any:
        del delta, rho
        import pandas as pd
        from snsynth import Synthesizer

        frame = pd.read_csv(table)[list(sizes)]
        maker = Synthesizer.create(name, epsilon=epsilon, verbose=False)
        maker.fit(frame, categorical_columns=list(sizes), preprocessor_eps=0.0)
        return maker.sample(len(frame))

    return run


PEERS = {
    "dpmm-mst": _dpmm("MSTPipeline"),
    "dpmm-aim": _dpmm("AIMPipeline"),
    "opendp-mst": _opendp("MST"),
    "opendp-aim": _opendp("AIM"),
    "smartnoise-mst": _smartnoise("mst"),
    "smartnoise-aim": _smartnoise("aim"),
}


def main(peer: str, table: str, domain: str, epsilon: str, delta: str, rho: str, out: str) -> None:
    with open(domain, encoding="utf-8") as file:
        sizes = json.load(file)
    start = time.process_time()
    rows = PEERS[peer](table, sizes, float(epsilon), float(delta), float(rho))
    seconds = time.process_time() - start
    if hasattr(rows, "write_csv"):
        rows.select(list(sizes)).write_csv(out)
    else:
        rows[list(sizes)].to_csv(out, index=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": seconds, "megabytes": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
