"""The catalog that Postgres programs read before they ask: `pg_catalog` and `information_schema`, emulated.

`Catalog` in `catalog.catalog` answers statements about it in a desk's process. Its rows are the facts of Postgres
15 (`facts`) and what served tables add to them (`relations`); its views and functions are SQL (`views`,
`functions`).
A statement is read (`reading`), rewritten from Postgres' SQL into DuckDB's in one walk of its tree (`rewriting`,
`sources`, `expressions`, `calls`, `casts`), and its columns get Postgres' names (`names`) and types (`kinds`).
"""
