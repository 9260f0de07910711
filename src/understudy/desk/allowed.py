"""What a statement may contain: kinds of tables and functions, by lists of those that are allowed.

The lists are checked on the tree that DuckDB's own parser made of the statement, so that no second reading of the
text can differ from it. What is on no list is refused: functions that read files, the environment, settings or the
engine itself, statements inside text, and whatever a later version of DuckDB may add.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Collection, Iterator
from typing import Any

_OPERATORS = """
+ - * / % ^ ** // || ~~ !~~ ~~* !~~* ~~~ & | << >> @ ! -> ->> ^@ && @> <@
"""
OPERATORS = frozenset(_OPERATORS.split())

_SCALARS = """
abs acos add age array_append array_cat array_concat array_contains array_distinct array_extract array_has
array_has_all array_has_any array_indexof array_length array_position array_prepend array_slice array_sort
array_to_string array_unique array_value ascii asin atan atan2 bit_count bit_length cardinality cbrt ceil
ceiling century chr coalesce concat concat_ws constant_or_null contains cos cosh cot current_date current_time
current_timestamp date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day
dayname dayofmonth dayofweek dayofyear decade degrees divide editdist3 ends_with epoch epoch_ms even exp
factorial floor fmod format gamma generate_series generate_subscripts greatest greatest_common_divisor hash
hour if ifnull ilike_escape initcap instr isfinite isinf isnan isodow isoyear jaccard julian last_day lcase
least least_common_multiple left length len levenshtein lgamma like_escape list_aggregate list_any_value
list_append list_avg list_cat list_concat list_contains list_count list_distinct list_element list_extract
list_filter list_first list_has list_has_all list_has_any list_indexof list_intersect list_last list_max
list_min list_position list_prepend list_reverse list_reverse_sort list_select list_slice list_sort list_sum
list_transform list_unique list_value list_zip ln localtime localtimestamp log log10 log2 lower lpad ltrim
make_date make_time make_timestamp map md5 microsecond millennium millisecond minute mod month monthname
multiply nextafter not_ilike_escape not_like_escape now nullif octet_length parse_ident pi position pow power
prefix printf quarter radians range regexp_escape regexp_extract regexp_extract_all regexp_full_match
regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right round round_even roundbankers
row rpad rtrim second sign signbit sin sinh split split_part sqrt starts_with str_split str_split_regex
strftime string_split string_split_regex string_to_array strip_accents strlen strpos strptime struct_extract
struct_pack substr substring subtract suffix tan tanh time_bucket timezone to_base to_char to_days to_hours
to_microseconds to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years
today transaction_timestamp translate trim trunc try_strptime typeof ucase unicode unnest upper week weekday
weekofyear xor year yearweek json_array_length json_extract json_extract_string json_object json_array
json_build_object json_build_array json_type json_valid to_json row_to_json array_to_json json_quote
"""
SCALARS = frozenset(_SCALARS.split())
"""Functions of values: arithmetic, text, dates, lists and JSON that is made in the statement."""

_AGGREGATES = """
any_value approx_count_distinct approx_quantile arg_max arg_max_null arg_min arg_min_null array_agg avg
bit_and bit_or bit_xor bool_and bool_or corr count count_if count_star countif covar_pop covar_samp entropy
every favg first fsum geomean geometric_mean group_concat grouping grouping_id histogram json_group_array
json_group_object kahan_sum kurtosis kurtosis_pop last list listagg mad max max_by mean median min min_by mode
product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop stddev_samp string_agg sum sum_no_overflow sumkahan
var_pop var_samp variance
"""
AGGREGATES = frozenset(_AGGREGATES.split())

_WINDOWS = """
cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense
row_number
"""
WINDOWS = frozenset(_WINDOWS.split())

FUNCTIONS = OPERATORS | SCALARS | AGGREGATES | WINDOWS
"""Every function that a statement may call, besides those that its database defines."""

ROW_FUNCTIONS = frozenset(("generate_series", "range", "unnest"))
"""Functions that may stand after FROM."""

SOURCES = frozenset(
    ("BASE_TABLE", "EMPTY", "EMPTY_FROM", "EXPRESSION_LIST", "JOIN", "SUBQUERY", "TABLE_FUNCTION")
)
"""What may stand after FROM."""

NODES = frozenset(("CTE_NODE", "RECURSIVE_CTE_NODE", "SELECT_NODE", "SET_OPERATION_NODE"))
"""What a statement may be made of."""

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def ascii_lower(name: str) -> str:
    """A name as DuckDB and Postgres compare it: the letters A to Z are small, any other character is as it was.

    `str.lower` makes a k of the Kelvin sign (U+212A), which to DuckDB is another character: a name that a
    statement defines with such a sign would then be taken for one that it does not define.
    """
    return name.translate(_LOWER)


class NotAllowedError(Exception):
    """A part of a statement that is on no list: what `kind` of part, and its `name`."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name)
        self.kind = kind
        self.name = name


def check(tree: dict[str, Any], *, tables: Collection[tuple[str, str]], functions: Collection[str]) -> None:
    """Refuse a statement, as DuckDB's parser serialises it, that names what is on no list.

    tables     pairs of a schema and a name that may stand after FROM; an empty schema is none
    functions  what the database of the statement defines, besides those that are always allowed

    Raises `NotAllowedError`. Each part of the tree is visited once, without recursion, however deep it is nested.
    """
    stack: list[tuple[Any, frozenset[str]]] = [(tree, frozenset())]
    while stack:
        part, ctes = stack.pop()
        if isinstance(part, list):
            stack.extend((child, ctes) for child in part)
        elif isinstance(part, dict):
            _check_part(part, ctes, tables, functions)
            stack.extend(_children(part, ctes))


def _check_part(
    part: dict[str, Any],
    ctes: frozenset[str],
    tables: Collection[tuple[str, str]],
    functions: Collection[str],
) -> None:
    kind = part.get("type")
    if "function_name" in part:
        name = ascii_lower(str(part["function_name"]))
        if part.get("catalog") or part.get("schema", "") not in ("", "main"):
            raise NotAllowedError("function", name)
        if name not in FUNCTIONS and name not in functions:
            raise NotAllowedError("function", name)
    if "modifiers" in part and "cte_map" in part and kind not in NODES:
        raise NotAllowedError("statement", str(kind))
    if "sample" in part and "query_location" in part and "alias" in part:  # what stands after FROM
        if kind not in SOURCES:
            raise NotAllowedError("source", str(kind))
        if kind == "TABLE_FUNCTION":
            name = ascii_lower(str((part.get("function") or {}).get("function_name", "")))
            if name not in ROW_FUNCTIONS:
                raise NotAllowedError("function", name)
        if kind == "BASE_TABLE":
            _check_table(part, ctes, tables)
    if part.get("class") == "PARAMETER":
        raise NotAllowedError("parameter", "")


def _check_table(part: dict[str, Any], ctes: frozenset[str], tables: Collection[tuple[str, str]]) -> None:
    schema, name = ascii_lower(str(part["schema_name"])), str(part["table_name"])
    if part.get("catalog_name") or part.get("at_clause"):
        raise NotAllowedError("table", name)
    if not schema and ascii_lower(name) in ctes:
        return
    if (schema, ascii_lower(name)) not in tables:
        raise NotAllowedError("table", name)


def _children(part: dict[str, Any], ctes: frozenset[str]) -> Iterator[tuple[Any, frozenset[str]]]:
    """The parts below one, each with the names of the common table expressions that are in scope there.

    An expression of WITH sees those before it, and itself only in its recursive half: a name that is defined
    elsewhere in the statement must not open a system table of that name here.
    """
    kind = part.get("type")
    inside = ctes
    for name, definition in _definitions(part):
        yield definition, inside
        inside = inside | {name}
    own = ascii_lower(str(part.get("cte_name", "")))
    for key, child in part.items():
        if key == "cte_map" or not isinstance(child, dict | list):
            continue
        if kind == "CTE_NODE" and key == "query":  # the definition, once more
            yield child, ctes | _before(own, part)
        elif (kind == "CTE_NODE" and key == "child") or (kind == "RECURSIVE_CTE_NODE" and key == "right"):
            yield child, inside | {own}
        else:
            yield child, inside


def _definitions(part: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    cte_map = part.get("cte_map")
    if isinstance(cte_map, dict):
        for entry in cte_map.get("map", ()):
            yield ascii_lower(str(entry["key"])), entry["value"]


def _before(own: str, part: dict[str, Any]) -> frozenset[str]:
    """The names that stand before a definition in its WITH."""
    return frozenset(itertools.takewhile(lambda name: name != own, (name for name, _ in _definitions(part))))
