"""The catalog that Postgres programs read before they ask: `pg_catalog` and `information_schema`, emulated."""
