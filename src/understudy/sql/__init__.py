"""SQL in: a SELECT statement compiled to linear queries and public post-processing.

A statement is read (`sql.read`), its expressions are evaluated on the public grid of cells and never on rows
(`sql.evaluate`, `sql.interval`), its aggregates become linear queries with a recipe that makes the result of
their noisy answers (`sql.aggregate`, `sql.program`, `sql.compiled`). What cannot be made of linear queries is
refused with a remedy.

A compiled statement is public: the room imports `domain`, `query` and `errors`, and whoever has counts (a
Curator, a session, a release) can answer it. Start with `sql.compiler.SqlCompiler`.
"""

from understudy.sql.compiled import CompiledAround, CompiledSql
from understudy.sql.compiler import SqlCompiler, compile_sql
from understudy.sql.estimate import Estimate

__all__ = ["CompiledAround", "CompiledSql", "Estimate", "SqlCompiler", "compile_sql"]
