"""Calls of every scalar function, by family, over rows with odd values: none of them fails on any of the rows."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

SCHEMA = {
    "t": "bigint", "k": "string", "w": "string", "i": "int", "n": "bigint", "d": "double", "f": "float",
    "c": "decimal(8,2)", "ts": "timestamp", "day": "date",
}  # fmt: skip

_TEXTS = [
    "", "a", "Ab cD", "  x y ", "a.b.c", "aXbXc", "é ß", "😀a😀", "12-34", "10.0.0.255", "it's", "line\nnext\r\n",
    '{"a": {"b": [1, 2.50, "x"]}, "c": null}', '[{"a": 1}, {"a": "\\u00e9"}]', "{'a': 'q'} rest", "a\tb", "$1\\", None,
]  # fmt: skip
_OTHERS = ["a", "", "X", " ", ".", "é", "😀", "0", "ab", "\n", None]
_DOUBLES = [0.0, -0.0, 1.005, -2.5, 2.5, 1e-9, 123456.789, -1e300, math.nan, math.inf, -math.inf, 0.15, None]
_SINGLES = [0.0, 0.5, -2.5, 1.5, 0.25, 1e5, None]
_WHOLES = [0, 1, -1, 2, -7, 25, 255, -300, 65_536, None]
_LONGS = [0, 1, -1, 2**31, -(2**40), 10**12 + 15, -25, 300, None]
_DECIMALS = [Decimal(x) for x in ("0.00", "1.25", "-1.25", "2.50", "99.99", "-999.95", "12345.67")] + [None]
_START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_TIMES = [
    _START, _START - dt.timedelta(microseconds=1), dt.datetime(1969, 12, 31, 23, 59, 59, 500_000, dt.UTC),
    dt.datetime(2024, 2, 29, 12, 30, 45, 123_456, dt.UTC), dt.datetime(99, 3, 1, tzinfo=dt.UTC),
    dt.datetime(2026, 3, 31, 0, 0, 1, tzinfo=dt.UTC), dt.datetime(2027, 1, 3, 13, 5, tzinfo=dt.UTC), None,
]  # fmt: skip
_DAYS = [dt.date(2026, 1, 31), dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(101, 1, 1), None]


def rows() -> list[dict[str, object]]:
    """Values of every kind beside each other, in as many rows as the longest list and some more."""
    lists = {
        "k": _TEXTS, "w": _OTHERS, "i": _WHOLES, "n": _LONGS, "d": _DOUBLES, "f": _SINGLES, "c": _DECIMALS,
        "ts": _TIMES, "day": _DAYS,
    }  # fmt: skip
    return [{"t": at, **{name: values[at % len(values)] for name, values in lists.items()}} for at in range(60)]


TEXT = [
    "left(k, 3)", "left(k, i)", "right(k, 2)", "right(k, i)", "split_part(k, w, 2)", "split_part(k, '.', -1)",
    "replace(k, w, '<>')", "replace(k, 'a')", "concat_ws('-', k, w, 'z')", "concat_ws(w, k, k)", "lpad(k, 5, w)",
    "rpad(k, 7, 'xy')", "lpad(k, 4)", "lpad(k, i % 30, w)", "repeat(k, 2)", "repeat(w, i % 20)", "reverse(k)",
    "initcap(k)",
    "ltrim(k)", "rtrim(k)", "btrim(k)", "btrim(k, 'a ')", "trim(BOTH w FROM k)", "trim(LEADING 'a1{' FROM k)",
    "trim(TRAILING FROM k)", "translate(k, 'abX', 'xy')", "startswith(k, w)", "endswith(k, w)", "contains(k, w)",
    "instr(k, w)", "locate(w, k)", "locate(w, k, 2)", "locate(w, k, i)", "position(w IN k)", "position(w, k, 3)",
    "ascii(k)", "chr(n)", "char(i)", "md5(k)", "sha1(k)", "sha(w)", "sha2(k, 256)", "sha2(k, 224)", "sha2(k, i)",
    "k ILIKE '%A%'", "k NOT ILIKE w",
]  # fmt: skip
PATTERNS = [
    "k RLIKE 'a.b'", "k NOT RLIKE '[0-9]$'", "k REGEXP r'^\\s*[a-z]'", "regexp_like(k, '(?i)^AB')",
    "regexp(k, '\\\\w+$')",
    "k RLIKE 'a|é|[^\\\\x00-\\\\x7f]'", "k RLIKE '^.{3}$'", "k RLIKE '(?s)e.n'", "k RLIKE 'e.n'", "k RLIKE r'\\bb\\b'",
    "k RLIKE r'^(\\d+\\.)+\\d+$'", "k RLIKE '(a|X)+b'", "k RLIKE 't(?=\\\\n|$)'", "k RLIKE 'x(?! y)'", "k RLIKE ''",
    "k RLIKE NULL", "regexp_extract(k, '([a-z])([A-Z.])', 2)", "regexp_extract(k, '(\\\\d+)-(\\\\d+)')",
    "regexp_extract(k, '(z)?a', 1)", "regexp_extract(k, '[a-z]+?.', 0)", "regexp_extract(k, '((a|b)+)X', 2)",
    "regexp_replace(k, '[aeiou]', '<$0>')", "regexp_replace(k, '(\\\\w)(\\\\W)', '$2$1')",
    "regexp_replace(k, 'a', '\\\\$')",
    "regexp_replace(k, '(a|b)+', '$1!')", "regexp_replace(k, ' ', '\\\\\\\\')", "regexp_replace(k, '(.)', '$10')",
    "get_json_object(k, '$')", "get_json_object(k, '$.a')", "get_json_object(k, '$.a.b[1]')",
    "get_json_object(k, '$[1].a')", "get_json_object(k, \"$['a']['b']\")", "get_json_object(k, '$.c')",
]  # fmt: skip
NUMBERS = [
    "round(d)", "round(d, 2)", "round(d, -3)", "round(f, 1)", "round(c)", "round(c, 1)", "round(c, -2)", "round(c, 5)",
    "round(i, -1)", "round(i, 3)", "round(n, -4)", "bround(d)", "bround(d, 2)", "bround(c, 1)", "bround(i, -1)",
    "ceil(c)", "floor(c)", "floor(c, 1)", "ceil(c, -2)", "ceil(i, -1)", "floor(n, -2)", "floor(f, 1)",
    "sign(d)", "signum(c)", "pmod(i, 7)", "pmod(n, -300)", "pmod(c, 0.7)", "pmod(d, 3)", "pmod(i, 2.5)",
    "i & 255", "n | i", "i ^ -1", "~n", "i & n", "shiftleft(i, 3)", "shiftright(n, i)", "shiftleft(n, 70)",
    "isnan(d)", "isnan(f)", "nvl2(k, i, n)", "nvl2(i, c, 1)", "isnull(k)", "isnotnull(d)", "nvl(i, 3)", "ifnull(k, w)",
    "round(d, NULL)", "i + ~i", "1 + 2 * i & 3",
]  # fmt: skip
INEXACT = [
    "ln(d)", "log(i)", "log10(d)", "log2(n)", "log(2, d)", "log(d, 10)", "exp(i)", "exp(d)", "power(d, 2)",
    "pow(i, 0.5)", "power(2, i)", "power(d, d)",
]  # fmt: skip
"""Those of which Spark's last digit may differ."""
TIMES = [
    *(f"date_trunc('{unit}', ts)" for unit in ("year", "QUARTER", "month", "mon", "week", "dd", "hour", "minute")),
    *(f"date_trunc('{unit}', day)" for unit in ("yyyy", "week", "second", "millisecond", "microsecond")),
    *(f"extract({unit} FROM ts)" for unit in ("YEAR", "quarter", "MONTH", "week", "day", "hour", "minute", "second")),
    *(f"extract({unit} FROM day)" for unit in ("yearofweek", "dow", "dow_iso", "doy")), "date_part('month', ts)",
    "quarter(ts)", "dayofweek(ts)", "weekday(ts)", "dayofyear(ts)", "weekofyear(ts)", "weekofyear(day)",
    "date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')", "date_format(ts, \"d/M/yy h:m:s a E EEEE MMM MMMM 'at' '' SSSSSS\")",
    "date_format(day, 'yyyyMMdd')", "to_timestamp(date_format(ts, 'yyyyMMddHHmmss'), 'yyyyMMddHHmmss')",
    "to_timestamp(date_format(ts, 'd.M.yyyy H:m'), 'd.M.yyyy H:m')", "to_timestamp(date_format(ts, 'HH:mm'), 'HH:mm')",
    "to_timestamp(date_format(ts, 'yyyy-MM-dd ss.SSS'), 'yyyy-MM-dd ss.SSSSSS')", "to_timestamp('2026-01-01')",
    "to_date(ts)", "to_date(CAST(day AS STRING))", "to_date(date_format(day, 'dd/MM/yyyy'), 'dd/MM/yyyy')", "date(ts)",
    "CAST(CAST(ts AS STRING) AS DATE)", "unix_timestamp(ts)", "unix_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm:ss'))",
    "unix_timestamp(day)", "from_unixtime(i)", "from_unixtime(n % 10000000000, 'yyyy MM')", "unix_seconds(ts)",
    "unix_millis(ts)", "unix_micros(ts)", "timestamp_seconds(i)", "timestamp_millis(n)", "timestamp_micros(n)",
    "datediff(ts, day)", "datediff(day, '2026-01-01')", "date_add(day, i)", "date_add(ts, 3)", "date_sub(day, 30)",
    "add_months(day, i % 14)", "add_months(ts, 1)", "last_day(day)", "last_day(ts)", "make_date(2000 + i % 99, 2, 28)",
    "months_between(ts, day)", "months_between(ts, TIMESTAMP '2024-02-29 10:00:00')", "trunc(day, 'week')",
    "trunc(ts, 'MM')", "trunc(day, 'quarter')", "trunc(day, 'year')",
]  # fmt: skip
SAME_AS_SPARK = [*TEXT, *PATTERNS, *NUMBERS, *TIMES]
EXPRESSIONS = [*SAME_AS_SPARK, *INEXACT]
