"""One piece of SQL in three dialects: ours, DuckDB's and Spark's.

Our expressions are Spark's, so the two differ in windows and in what Spark leaves open. DuckDB's functions mean other
things at their edges; the macros here give it ours, written from Spark's documentation and checked by hand. What is
left out because the two cannot be brought together is said where it would be made.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Twin:
    """The same meaning, three times."""

    ours: str
    duck: str
    spark: str


def same(template: str, *parts: Twin) -> Twin:
    """A text that all three write alike, around parts that they may not."""
    return twin(template, template, *parts)


def twin(ours: str, duck: str, *parts: Twin, spark: str | None = None) -> Twin:
    """A text that DuckDB writes in its own way; Spark writes it as we do unless told."""
    return Twin(
        ours.format(*(p.ours for p in parts)),
        duck.format(*(p.duck for p in parts)),
        (ours if spark is None else spark).format(*(p.spark for p in parts)),
    )


def call(name: str, duck: str, *parts: Twin) -> Twin:
    """A function under two names."""
    holes = ", ".join("{}" for _ in parts)
    return twin(f"{name}({holes})", f"{duck}({holes})", *parts)


def joined(separator: str, parts: list[Twin]) -> Twin:
    """Several with a text between them."""
    return same(separator.join("{}" for _ in parts), *parts)


EMPTY = Twin("", "", "")

MACROS = r"""
CREATE MACRO p_left(s, n) AS CASE WHEN n < 0 AND s IS NOT NULL THEN '' ELSE left(s, n) END;
CREATE MACRO p_right(s, n) AS CASE WHEN n < 0 AND s IS NOT NULL THEN '' ELSE right(s, n) END;
CREATE MACRO p_from(s, p) AS CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(s) + p ELSE 0 END;
CREATE MACRO p_substring(s, p, n) AS
    substring(s, greatest(p_from(s, p), 0) + 1, greatest(p_from(s, p) + n - greatest(p_from(s, p), 0), 0));
CREATE MACRO p_locate(part, s, p) AS
    CASE WHEN instr(substring(s, p), part) > 0 THEN instr(substring(s, p), part) + p - 1
         WHEN part IS NOT NULL AND s IS NOT NULL THEN 0 END;
CREATE MACRO p_initcap(s) AS
    array_to_string(list_transform(string_split(s, ' '), lambda x: upper(x[1]) || lower(x[2:])), ' ');
CREATE MACRO p_json(s, path) AS CASE WHEN json_valid(s) THEN json_extract_string(s, path) END;
CREATE MACRO p_pmod(x, y) AS CASE WHEN x % y < 0 THEN (x % y + y) % y ELSE x % y END;
CREATE MACRO p_ln(x) AS CASE WHEN x > 0 THEN ln(x) END;
CREATE MACRO p_log10(x) AS CASE WHEN x > 0 THEN log10(x) END;
CREATE MACRO p_log2(x) AS CASE WHEN x > 0 THEN log2(x) END;
CREATE MACRO p_sqrt(x) AS CASE WHEN x < 0 THEN 'NaN'::DOUBLE ELSE sqrt(x) END;
CREATE MACRO p_sign(x) AS CASE WHEN isnan(x::DOUBLE) THEN 'NaN'::DOUBLE ELSE sign(x)::DOUBLE END;
CREATE MACRO p_second(ts) AS (microsecond(ts) * 0.000001)::DECIMAL(8, 6);
CREATE MACRO p_seconds(ts) AS floor(epoch_us(ts) / 1000000.0)::BIGINT;
CREATE MACRO p_unix(ts) AS trunc(epoch_us(ts) / 1000000.0)::BIGINT;
CREATE MACRO p_millis(ts) AS floor(epoch_us(ts) / 1000.0)::BIGINT;
CREATE MACRO p_is_last(ts) AS CAST(ts AS DATE) = last_day(CAST(ts AS DATE));
CREATE MACRO p_months_between(a, b) AS
    round((year(a) - year(b)) * 12 + month(a) - month(b) +
    CASE WHEN day(a) = day(b) OR (p_is_last(a) AND p_is_last(b)) THEN 0
         ELSE ((day(a) - day(b)) * 86400
               + floor(epoch_us(a) / 1000000.0) - floor(epoch_us(date_trunc('day', a)) / 1000000.0)
               - floor(epoch_us(b) / 1000000.0) + floor(epoch_us(date_trunc('day', b)) / 1000000.0))
              / 2678400.0 END, 8);
CREATE MACRO p_not_nan(x) AS CASE WHEN NOT isnan(x) THEN x END;
CREATE MACRO p_mode(counts) AS
    list_sort(list_transform(map_entries(counts),
        lambda e: {'n': -(struct_extract(e, 'value')::BIGINT), 'k': struct_extract(e, 'key')}))[1].k;
CREATE MACRO p_avg(cents, n) AS
    CASE WHEN n > 0 THEN
        (sign(cents) * ((2 * abs(cents)::HUGEINT * 10000 + n) // (2 * n)))::DECIMAL(30, 0) * 0.000001 END;
"""
