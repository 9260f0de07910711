"""What a peer says of averages: run by the peer's own Python, on a CSV file; prints JSON. No part of the program.

Usage: python measures_peer.py PEER FILE COLUMN LOW HIGH RHO REPETITIONS GROUP…
"""

from __future__ import annotations

import json
import sys


def opendp(path, column, low, high, rho, repetitions, groups, *, centred):
    """Sums and counts of OpenDP's own frames, at the whole price together; an average is their ratio."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    middle = (low + high) / 2 if centred else 0.0
    frame = pl.scan_csv(path).select(*groups, (pl.col(column).cast(pl.Float64) - middle).alias("value"))
    keys = frame.select(groups).collect()
    sizes = {name: int(keys[name].max()) + 1 for name in groups}
    rows = keys.height
    told = []
    for _ in range(repetitions):
        context = dp.Context.compositor(
            data=frame,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(rho=rho),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=groups, max_length=rows, max_groups=10_000, invariant="keys")],
        )
        asked = (
            context.query()
            .group_by(*groups)
            .agg(
                dp.len().alias("n"),
                pl.col("value").fill_nan(0.0).fill_null(0.0).dp.sum((low - middle, high - middle)).alias("s"),
            )
        )
        found = asked.release().collect()
        told.append(
            [
                [[int(row[name]) for name in groups], middle + row["s"] / row["n"] if row["n"] else None]
                for row in found.iter_rows(named=True)
            ]
        )
    return {"told": told, "sizes": sizes}


def tumult(path, column, low, high, rho, repetitions, groups):
    """Tumult's own average, in groups of declared keys."""
    import os
    import tempfile

    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers' Python is the driver's
    os.chdir(tempfile.mkdtemp())  # where Spark leaves a warehouse

    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, QueryBuilder, RhoZCDPBudget, Session

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    frame = pd.read_csv(path)[[*groups, column]]
    keys = {name: sorted(int(v) for v in frame[name].unique()) for name in groups}
    session = Session.from_dataframe(
        RhoZCDPBudget(float("inf")), "people", spark.createDataFrame(frame), protected_change=AddOneRow()
    )
    query = (
        QueryBuilder("people").groupby(KeySet.from_dict(keys)).average(column, low=low, high=high, name="a")
    )
    told = []
    for _ in range(repetitions):
        found = session.evaluate(query, RhoZCDPBudget(rho)).toPandas()
        told.append([[[int(row[name]) for name in groups], float(row["a"])] for _, row in found.iterrows()])
    return {"told": told}


def main() -> None:
    peer, path, column, low, high, rho, repetitions, *groups = sys.argv[1:]
    given = (path, column, int(low), int(high), float(rho), int(repetitions), groups)
    found = tumult(*given) if peer == "tumult" else opendp(*given, centred=peer == "opendp-centred")
    print("JSON" + json.dumps(found))


if __name__ == "__main__":
    main()
