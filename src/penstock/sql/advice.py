"""What to write instead of functions that Spark has and queries here have not."""

from __future__ import annotations

from difflib import get_close_matches

from sqlglot import exp

from penstock.plan.scalars import BY_NAME

_CLOCK = "a query has no clock: use the stream's time"
_CHANCE = "a query gives the same answer whenever it runs: give the rows a column for it"
_ARRAYS = "take one match with regexp_extract, or parts with split(text, pattern)"
_LAMBDAS = "functions of functions are not supported: explode the array, or register a Python function"
_NESTED = "explode the array, or register a Python function with flow.function(…)"
_CASE = "write CASE x WHEN … THEN … END"

_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("now", "current_timestamp", "current_date", "curdate", "localtimestamp", "today"), _CLOCK),
    **dict.fromkeys(("rand", "random", "randn", "uuid", "shuffle", "monotonically_increasing_id"), _CHANCE),
    **dict.fromkeys(("regexp_extract_all", "sentences"), _ARRAYS),
    **dict.fromkeys(
        ("transform", "filter", "exists", "forall", "aggregate", "reduce", "zip_with", "map_filter", "map_zip_with",
         "transform_keys", "transform_values"),
        _LAMBDAS,
    ),
    **dict.fromkeys(
        ("explode", "explode_outer", "posexplode", "posexplode_outer"),
        "it stands by itself in the select list, or in LATERAL VIEW explode(…) t AS x",
    ),
    **dict.fromkeys(
        ("inline", "inline_outer", "stack", "sequence", "str_to_map", "arrays_zip", "map_concat", "map_from_arrays",
         "array_insert", "array_append", "array_prepend"),
        _NESTED,
    ),
    **dict.fromkeys(("from_json", "json_tuple", "schema_of_json", "get_json"), "write get_json_object(text, '$.name')"),
    **dict.fromkeys(("decode", "iff", "choose"), _CASE),
    "charindex": "write locate(part, text)",
    "strpos": "write instr(text, part)",
    "substring_index": "write split_part(text, separator, n), or regexp_extract",
    "regexp_substr": "write regexp_extract(text, pattern, 0)",
    "regexp_count": "write regexp_extract or regexp_replace",
    "regexp_instr": "write regexp_extract or instr",
    "dayname": "write date_format(time, 'EEE')",
    "monthname": "write date_format(time, 'MMM')",
    "week": "write weekofyear(time)",
    "timestampadd": "write time + INTERVAL 5 MINUTES",
    "timestampdiff": "write unix_seconds(a) - unix_seconds(b), or datediff(a, b)",
    "next_day": "write date_add(date, …) with weekday(date)",
    "convert_timezone": "times are in UTC: add an INTERVAL",
    "from_utc_timestamp": "times are in UTC: add an INTERVAL",
    "to_utc_timestamp": "times are in UTC: add an INTERVAL",
    "bit_count": "write shiftright and &",
    "getbit": "write shiftright(x, n) & 1",
    "format_number": "write round(x, n) and CAST(… AS STRING)",
    "truncate": "write CAST(x AS BIGINT), or floor(x, digits)",
    "nanvl": "write CASE WHEN isnan(x) THEN … ELSE x END",
    "zeroifnull": "write coalesce(x, 0)",
    "nullifzero": "write nullif(x, 0)",
    "typeof": "the types of columns are in q.schema",
    "try_divide": "write x / nullif(y, 0)",
    "try_cast": "use CAST, and CASE for values that do not fit",
}  # fmt: skip


_KINDS: dict[type[exp.Expr], str] = {
    exp.CurrentTimestamp: _CLOCK,
    exp.CurrentDate: _CLOCK,
    exp.BitwiseLeftShift: "write shiftleft(x, n)",
    exp.BitwiseRightShift: "write shiftright(x, n)",
    exp.Overlay: "write concat of left and substring",
    exp.Transform: _LAMBDAS,
    exp.Lambda: _LAMBDAS,
    exp.Escape: "a backslash escapes % and _ in LIKE",
    exp.SimilarTo: "write text RLIKE 'pattern'",
    exp.Any: "write x IN (SELECT …), or EXISTS (SELECT 1 FROM … WHERE …)",
    exp.All: "write NOT EXISTS (SELECT 1 FROM … WHERE NOT (…))",
    exp.Tuple: "compare column by column: a = 1 AND b = 2; with a sub-query, EXISTS (SELECT 1 FROM … WHERE …)",
}


def advice_on(node: exp.Expr) -> str:
    """What to do about a kind of expression that there is not."""
    return _KINDS.get(type(node), "register a Python function with flow.function(…)")


def advice(name: str) -> str:
    """What to do about a function that there is not."""
    known = _INSTEAD.get(name.lower())
    if known is not None:
        return known
    near = get_close_matches(name.lower(), BY_NAME, n=1, cutoff=0.8)
    yours = "register it with flow.function(…) or flow.aggregate(…)"
    return f"did you mean {near[0]}? A function of your own: {yours}" if near else yours
