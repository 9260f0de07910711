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


_DAY = "write the day itself, date '2024-12-31'"
_MOVED = "write d + interval '1 day', or d - interval '1 day'"
_ROWS = "values of single rows are private: GROUP BY counts the people of each declared value"
_PERIOD = "write extract(year FROM d), or date_trunc('month', d)"
_CASE = "write CASE WHEN x = 'a' THEN 'b' ELSE x END"
_FINDS = "write contains(x, 'a'), or x LIKE '%a%'"
_DAYS = "write a difference of dates, date '2024-12-31' - d, which is in days"

INSTEAD: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("mean", "average"), ("write avg(x)", ("avg",))),
    "std": ("write stddev(x)", ("stddev",)),
    "var": ("write variance(x)", ("variance",)),
    "corr": ("write covar_pop(x, y) / (stddev_pop(x) * stddev_pop(y))", ("covar_pop", "stddev_pop")),
    "mode": ("write SELECT x, count(*) … GROUP BY x ORDER BY count(*) DESC LIMIT 1", ("count",)),
    **dict.fromkeys(
        ("percentile", "percentile_approx", "perc"), ("write quantile_cont(x, 0.5)", ("quantile_cont",))
    ),
    "approx_percentile": ("write approx_quantile(x, 0.5)", ("approx_quantile",)),
    **dict.fromkeys(
        ("approx_distinct", "approx_count_distinct", "count_distinct", "nunique", "uniq"),
        (
            "how many different values occur is not a count of people: GROUP BY counts those of each value",
            ("count",),
        ),
    ),
    **dict.fromkeys(
        (
            "first",
            "last",
            "any_value",
            "array_agg",
            "list",
            "group_concat",
            "string_agg",
            "listagg",
            "arg_max",
            "arg_min",
            "max_by",
            "min_by",
            "first_value",
            "last_value",
            "nth_value",
        ),
        (_ROWS, ("count",)),
    ),
    **dict.fromkeys(
        ("logical_and", "logical_or", "bool_and", "bool_or", "every"),
        ("write count(*) FILTER (WHERE …), which counts the rows of a condition", ("count",)),
    ),
    **dict.fromkeys(
        ("now", "getdate", "sysdate", "curdate", "current_timestamp", "localtimestamp", "current_time"),
        (_DAY, ("date",)),
    ),
    **dict.fromkeys(
        ("date_add", "date_sub", "dateadd", "datesub", "adddate", "subdate", "add_months"), (_MOVED, ())
    ),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff", "months_between"), (_DAYS, ())),
    "age": (_DAYS, ()),
    **dict.fromkeys(
        ("date_format", "strftime", "time_to_str", "to_char", "monthname", "dayname"),
        (_PERIOD, ("extract", "date_trunc")),
    ),
    "decade": ("write extract(decade FROM d)", ("extract",)),
    "weekday": ("write extract(isodow FROM d), which is 1 on Mondays", ("extract",)),
    **dict.fromkeys(
        ("str_position", "strpos", "instr", "charindex", "position", "locate"), (_FINDS, ("contains",))
    ),
    **dict.fromkeys(
        ("replace", "translate", "split_part", "initcap", "decode", "regexp_replace"), (_CASE, ())
    ),
    "glob": ("write x LIKE 'a%'", ()),
    **dict.fromkeys(
        ("isnull", "isnan", "is_nan", "nvl2"), ("write x IS NULL, or coalesce(x, 0)", ("coalesce",))
    ),
}
"""What to write instead of functions of other databases, by their names in lower case, and what of it to suggest.

In `x`, `y` and `d`, a date, the reader's own columns are meant.
"""

NEAR = 0.7
"""How alike a name must be to one of the language for that to be what was meant."""

_NOT_MEANT = ("acos", "asin", "atan", "cos", "cot", "pi", "rand", "random", "sin", "tan")
"""Functions that are known elsewhere, and whose names are like others of the language by chance."""


def unknown(node: exp.Expr, words: str) -> QueryError:
    """Why a node is refused, and what to write instead; `words` is how it reads."""
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):  # which the parser puts around some functions
        return unknown(node.this, words)
    if isinstance(node, exp.AggFunc) and _name(node) not in INSTEAD:
        in_where = isinstance(node.find_ancestor(exp.Where, exp.AggFunc, exp.Group, exp.Having), exp.Where)
        return QueryError(
            f"{words}: an aggregate cannot stand inside another one, in WHERE or in GROUP BY",
            remedy="a condition on it stands after HAVING" if in_where else "",
        )
    for kind, (problem, remedy) in REMEDIES.items():
        if isinstance(node, kind):
            return QueryError(f"{words}: {problem}", remedy=remedy)
    name = _name(node)
    problem = (
        f"the function {name[:60]} is not in the language"
        if isinstance(node, exp.Anonymous | exp.DateAdd | exp.DateSub | exp.ToChar)
        else f"{words} is not in the language"
    )
    if name in INSTEAD:
        remedy, suggested = INSTEAD[name]
        return QueryError(problem, remedy=remedy, suggestions=suggested)
    known = [*AGGREGATES.split(", "), *SCALARS.split(", ")]
    alike = [*known, *(other for other, (_, suggested) in INSTEAD.items() if suggested)]
    near = [] if name in _NOT_MEANT else difflib.get_close_matches(name[:60], alike, n=3, cutoff=NEAR)
    close = list(dict.fromkeys(meant for one in near for meant in INSTEAD.get(one, ("", (one,)))[1]))
    listed = f"{AGGREGATES}, {SCALARS}" if isinstance(node, exp.Anonymous) else SCALARS
    remedy = f"did you mean {close[0]}?" if close else f"its functions are {listed}"
    return QueryError(problem, remedy=remedy, suggestions=close)


def _name(node: exp.Expr) -> str:
    """The name of a function, in lower case, as it was written or as the parser calls it."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key.lower()


def refused_aggregate(node: exp.Expr, words: str, of: str) -> QueryError:
    """Why an aggregate is refused, and what comes close; `words` is how it reads, and `of` what it is taken of."""
    if isinstance(node, exp.Min | exp.Max):
        level = "0.01" if isinstance(node, exp.Min) else "0.99"
        return QueryError(
            f"{words} hangs on single rows, which are private",
            remedy=f"quantile_disc(x, {level}) comes close",
            suggestions=(f"quantile_disc({of}, {level})",),
        )
    for kinds, by_bins in _SPREADS_OF_BINS.items():
        if isinstance(node, kinds):
            return QueryError(
                f"{words} is not answered here",
                remedy=f"it needs attributes with a declared resolution; {by_bins} by the bins",
            )
    if _name(node) in INSTEAD:
        return unknown(node, words)
    return QueryError(
        f"{words} is not answered", remedy=f"there are {AGGREGATES}", suggestions=AGGREGATES.split(", ")
    )


_SPREADS_OF_BINS: dict[tuple[type[exp.Expr], ...], str] = {
    (exp.CovarPop, exp.CovarSamp): "avg(x * y) - avg(x) * avg(y) is the covariance",
    (exp.Stddev, exp.StddevPop, exp.StddevSamp): (
        "sqrt(avg(x * x) - avg(x) * avg(x)) is the standard deviation"
    ),
    (exp.Variance, exp.VariancePop): "avg(x * x) - avg(x) * avg(x) is the variance",
}
