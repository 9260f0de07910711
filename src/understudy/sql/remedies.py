"""What to write instead of what is not in the language."""

from __future__ import annotations

import difflib

from sqlglot import exp

from understudy.errors import QueryError

SCALARS = (
    "abs, ceil, coalesce, concat, contains, day, ends_with, exp, extract, floor, greatest, if, ifnull, least, "
    "left, length, ln, log, log2, log10, lower, mod, month, nullif, power, quarter, reverse, right, round, sign, "
    "sqrt, starts_with, substr, trim, trunc, upper, year"
)

REMEDIES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Subquery: ("sub-queries are not answered", "ask two questions and combine the answers"),
    exp.Select: ("sub-queries are not answered", "ask two questions and combine the answers"),
    exp.Exists: ("sub-queries are not answered", "ask two questions and combine the answers"),
    exp.Window: ("window functions are not answered", "use GROUP BY, and ORDER BY … LIMIT on its rows"),
    exp.Placeholder: ("parameters are not filled in", "write the value itself"),
    exp.Parameter: ("parameters are not filled in", "write the value itself"),
    exp.Star: ("* stands for rows, which are private", "ask for count(*) or another aggregate"),
    exp.Distinct: ("DISTINCT is not answered", "GROUP BY lists every declared value"),
    exp.Tuple: ("lists of columns are not compared", "compare each column, joined by AND"),
    exp.Escape: ("LIKE has no ESCAPE here", "use starts_with(x, 'a') or contains(x, 'a')"),
    exp.RegexpLike: ("regular expressions are not answered", "use LIKE"),
    exp.RegexpFullMatch: ("regular expressions are not answered", "use LIKE"),
    exp.SimilarTo: ("regular expressions are not answered", "use LIKE"),
    exp.Interval: ("intervals of time are not added", "compare with the date itself, date '2024-12-31'"),
    exp.Filter: ("FILTER belongs to an aggregate", "count(*) FILTER (WHERE …)"),
    exp.WithinGroup: ("WITHIN GROUP belongs to percentile_cont and percentile_disc", ""),
    exp.Alias: ("a name (AS) can be given to a column of the SELECT list only", ""),
    exp.Dot: ("columns have one name", "quote it with double quotes where it holds a dot"),
}


def unknown(node: exp.Expr, words: str) -> QueryError:
    """Why a node is refused, and what to write instead; `words` is how it reads."""
    if isinstance(node, exp.AggFunc):
        return QueryError(f"{words}: an aggregate cannot stand inside another one, in WHERE or in GROUP BY")
    for kind, (problem, remedy) in REMEDIES.items():
        if isinstance(node, kind):
            return QueryError(f"{words}: {problem}", remedy=remedy)
    called = node.name if isinstance(node, exp.Anonymous) else node.key
    close = difflib.get_close_matches(called.lower(), SCALARS.split(", "), n=3, cutoff=0.6)
    remedy = f"its functions are {SCALARS}"
    return QueryError(f"{words} is not in the language", remedy=remedy, suggestions=close)
