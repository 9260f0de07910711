"""SQL in: a SELECT statement compiled to linear queries and public post-processing."""

from understudy.sql.compiled import Column, CompiledSql, Estimate
from understudy.sql.compiler import SqlCompiler, compile_sql

__all__ = ["Column", "CompiledSql", "Estimate", "SqlCompiler", "compile_sql"]
