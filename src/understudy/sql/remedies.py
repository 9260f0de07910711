"""What to write instead of what is not in the language."""

from __future__ import annotations

import difflib

from sqlglot import exp

from understudy.errors import QueryError

SCALARS = (
    "abs, bin_start, bin_stop, ceil, coalesce, concat, contains, date, date_part, date_trunc, day, ends_with, "
    "exp, extract, floor, greatest, high, hour, if, ifnull, least, left, length, ln, log, log2, log10, low, "
    "lower, make_date, minute, mod, month, nullif, power, quarter, reverse, right, round, second, sign, sqrt, "
    "starts_with, substr, to_date, trim, trunc, upper, width_bucket, year"
)
AGGREGATES = (
    "count, sum, avg, count_if, stddev, stddev_pop, variance, var_pop, covar_samp, covar_pop, median, quantile, "
    "quantile_cont, quantile_disc, approx_quantile, percentile_cont, percentile_disc"
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
    exp.Interval: ("an interval of time is added to a date", "write date '2024-12-31' + interval '1 month'"),
    exp.CurrentDate: ("today is not in the language", "write the day itself, date '2024-12-31'"),
    exp.CurrentTimestamp: ("this moment is not in the language", "write the day itself, date '2024-12-31'"),
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
    known = [*AGGREGATES.split(", "), *SCALARS.split(", ")]
    if not isinstance(node, exp.Anonymous):
        close = difflib.get_close_matches(node.key.lower(), known, n=3, cutoff=0.6)
        return QueryError(
            f"{words} is not in the language", remedy=f"its functions are {SCALARS}", suggestions=close
        )
    name = node.name[:60]
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.6)
    remedy = f"did you mean {close[0]}?" if close else f"its functions are {AGGREGATES}, {SCALARS}"
    return QueryError(f"the function {name} is not in the language", remedy=remedy, suggestions=close)
