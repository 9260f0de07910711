"""Superset's own query path against a server: its models and charts without a browser. Run by Superset's python.

    python superset_path.py URL    prints a line of JSON for each thing that was tried

It needs an environment of its own (`pip install apache-superset psycopg2-binary`), with SUPERSET_CONFIG_PATH and a
home for its own database; `test_superset.py` sets these.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from typing import Any


def main(url: str) -> None:
    from flask import g
    from superset.app import create_app

    app = create_app()
    with app.app_context():
        from flask_appbuilder import Model
        from superset import db, security_manager
        from superset.connectors.sqla.models import SqlaTable
        from superset.extensions import appbuilder
        from superset.models.core import Database
        from superset.sql.parse import Table

        Model.metadata.create_all(db.engine)
        appbuilder.add_permissions(update_perms=True)
        security_manager.sync_role_definitions()
        g.user = security_manager.find_user("admin") or security_manager.add_user(
            "admin", "a", "b", "a@example.org", security_manager.find_role("Admin"), password="x"
        )
        found = Database(database_name="understudy", expose_in_sqllab=True)
        found.set_sqlalchemy_uri(url)
        db.session.add(found)
        db.session.commit()
        town = Table("town", "public")

        def tried(name: str, work: Any) -> None:
            try:
                told = {"name": name, "told": work()}
            except Exception as error:
                where = traceback.format_exc(limit=-2)
                told = {"name": name, "error": f"{type(error).__name__}: {error}", "where": where}
            sys.stdout.write(json.dumps(told, default=str) + "\n")

        tried("schemas", lambda: sorted(found.get_all_schema_names(catalog=None)))
        tried(
            "tables", lambda: sorted(str(t[0]) for t in found.get_all_table_names_in_schema(None, "public"))
        )
        tried("columns", lambda: [column["column_name"] for column in found.get_columns(town)])
        tried(
            "keys",
            lambda: [found.get_pk_constraint(town), found.get_foreign_keys(town), found.get_indexes(town)],
        )
        dataset = SqlaTable(table_name="town", schema="public", database=found)
        db.session.add(dataset)
        db.session.commit()
        dataset.fetch_metadata()
        db.session.commit()

        def chart(**given: Any) -> Any:
            plain: dict[str, Any] = {
                "granularity": None, "from_dttm": None, "to_dttm": None, "is_timeseries": False, "filter": [],
                "extras": {}, "columns": [], "metrics": [], "groupby": [], "row_limit": 1000, "orderby": [],
                "series_columns": [],
            }  # fmt: skip
            result = dataset.query(plain | given)
            if result.error_message:
                raise RuntimeError(f"{result.error_message} IN {result.query}")
            return len(result.df), result.query

        average = {
            "expressionType": "SIMPLE",
            "column": {"column_name": "income"},
            "aggregate": "AVG",
            "label": "income",
        }
        tried("bar", lambda: chart(columns=["sex"], metrics=["count"], orderby=[("count", False)]))
        filters = [
            {"col": "smoker", "op": "IS TRUE"}, {"col": "age", "op": ">=", "val": 20},
            {"col": "district", "op": "IN", "val": ["Inkwharf", "Emberquay"]},
        ]  # fmt: skip
        tried("filtered", lambda: chart(columns=["district"], metrics=["count", average], filter=filters))
        tried("pivot", lambda: chart(columns=["sex", "district"], metrics=["count"]))
        young = {
            "label": "young",
            "sqlExpression": "CASE WHEN age < 30 THEN 'young' ELSE 'old' END",
            "expressionType": "SQL",
        }
        part = {
            "expressionType": "SQL",
            "sqlExpression": "100.0 * COUNT(*) FILTER (WHERE smoker) / COUNT(*)",
            "label": "pct",
        }
        tried("custom sql", lambda: chart(columns=[young], metrics=[part]))
        grain = {
            "label": "moved_in", "sqlExpression": "moved_in", "timeGrain": "P1Y", "columnType": "BASE_AXIS",
            "expressionType": "SQL",
        }  # fmt: skip
        tried("time grain", lambda: chart(columns=[grain], metrics=["count"]))
        tried("filter values", lambda: sorted(dataset.values_for_column("district")))
        lab = "SELECT sex, n, n / sum(n) OVER () AS part FROM (SELECT sex, count(*) AS n FROM town GROUP BY sex) t"
        tried("sql lab", lambda: found.get_df(lab).to_dict("records"))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main(sys.argv[1])
