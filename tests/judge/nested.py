"""Calls of every function of arrays, maps and structs over rows with odd values, none of which fails on any row."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

SCHEMA = {
    "t": "bigint", "i": "int", "k": "string", "a": "array<int>", "b": "array<int>", "w": "array<string>",
    "x": "array<double>", "m": "map<string,int>", "s": "struct<p:int,q:string,r:struct<u:double,v:array<int>>>",
    "z": "array<struct<p:int,q:string>>", "y": "array<array<int>>", "g": "map<int,array<string>>",
    "o": "struct<at:timestamp,day:date,c:decimal(8,2)>",
}  # fmt: skip

_WHOLES = [0, 1, -1, 2, 3, None]
_TEXTS = ["a", "b,c", "", ",", "a1b22c", "é,😀", None]
_ARRAYS = [[1, 2, 3], [], [None], [2, None, 2, 1], [3, 3], None, [7, 1, -5, 1]]
_TEXT_ARRAYS = [["a", "b"], ["b", None, "a"], [], ["", "é"], None, ["a", "a"]]
_DOUBLES = [[0.0, -0.0], [math.nan, 1.0, math.nan], [math.inf, None], [], None, [-1.5, 2.5, -math.inf]]
_MAPS = [{"a": 1, "b": None}, {}, None, {"": 3}, {"b": 2, "a": 1}]
_LISTS = {1: ["a"], 2: None, 3: []}
_TIME = dt.datetime(2026, 1, 1, 12, 30, tzinfo=dt.UTC)


def rows() -> list[dict[str, object]]:
    """Values of every kind beside each other."""
    inner = [{"u": 1.5, "v": [1]}, {"u": None, "v": None}, None, {"u": math.nan, "v": []}]
    structs = [{"p": n, "q": q, "r": inner[n % 4]} for n, q in enumerate(["x", None, "y", "x"])] + [None]
    pairs = [{"p": 1, "q": "x"}, {"p": None, "q": None}, None, {"p": 0, "q": "y"}]
    lists = {
        "i": _WHOLES, "k": _TEXTS, "a": _ARRAYS, "b": _ARRAYS[2:], "w": _TEXT_ARRAYS, "x": _DOUBLES, "m": _MAPS,
        "s": structs, "z": [pairs[:n] for n in range(5)] + [None], "y": [_ARRAYS[:2], _ARRAYS, [], None, [[1], [2]]],
        "g": [_LISTS, {}, None, {0: ["z", None]}],
        "o": [{"at": _TIME, "day": _TIME.date(), "c": Decimal("1.50")}, {"at": None, "day": None, "c": None}, None],
    }  # fmt: skip
    return [{"t": at, **{name: values[at % len(values)] for name, values in lists.items()}} for at in range(60)]


ACCESS = [
    "s.p", "s.q", "s.r.u", "s.r", "s.r.v", "s.r.v IS NULL", "s['q']", "z.q", "z.p", "get(z, 0).q", "o.at", "o.day",
    "o.c", "o.c * 2", "m['a']", "m[k]", "element_at(m, 'b')", "try_element_at(m, '')", "g[1]", "get(g[1], 0)", "g[i]",
    "get(a, 0)", "get(a, i)", "get(w, -1)", "try_element_at(a, 1)", "try_element_at(a, -1)", "try_element_at(a, 9)",
    "CASE WHEN size(a) > 1 THEN a[1] END", "CASE WHEN size(a) > 0 THEN element_at(a, -1) END", "get(y, 1)",
    "get(get(y, 0), 1)", "CASE WHEN i > 0 AND size(a) > i THEN a[i] END",
]  # fmt: skip
SIZES = [
    "size(a)", "cardinality(m)", "size(y)", "size(g)", "size(map_keys(m))", "size(z) > 1", "size(split(k, ','))",
]  # fmt: skip
MADE = [
    "array(i, 1, NULL)", "array(k, 'x')", "array(a, b)", "struct(i, k AS l)", "named_struct('p', i, 'q', k)",
    "struct(s.p, a)", "map('x', i, 'y', 2)", "map(1, k)", "array(struct(i AS p, k AS q))", "array(1, 2.5)",
    "array(i, CAST(i AS BIGINT))", "array_repeat(k, 2)", "array_repeat(i, i)", "split(k, ',')", "split(k, '[0-9]+')",
    "split(k, ',', 1)", "split(k, ',', 2)", "split(k, 'b', 0)", "coalesce(a, array(9))", "if(i > 0, a, b)",
    "CASE WHEN i > 0 THEN m END", "coalesce(s, s)", "nullif(a, b)",
]  # fmt: skip
ARRAYS = [
    "array_contains(a, 1)", "array_contains(a, i)", "array_contains(w, 'a')", "array_contains(x, 0.0e0)",
    "array_contains(x, CAST('NaN' AS DOUBLE))", "array_contains(y, a)", "array_position(a, 2)", "array_position(w, k)",
    "array_remove(a, 1)", "array_remove(w, k)", "arrays_overlap(a, b)", "arrays_overlap(a, array(1, 2))",
    "array_union(a, b)", "array_intersect(a, b)", "array_except(a, b)", "array_distinct(a)", "array_distinct(x)",
    "array_distinct(y)", "array_distinct(z)", "array_union(x, x)", "array_min(a)", "array_max(a)", "array_min(x)",
    "array_max(x)", "array_max(w)", "array_max(y)", "array_min(z)", "sort_array(a)", "sort_array(a, false)",
    "sort_array(x)", "sort_array(w, true)", "sort_array(y)", "sort_array(z)", "array_sort(a)", "array_sort(x)",
    "array_compact(a)", "array_compact(y)", "array_join(w, '-')", "array_join(w, k, '?')", "array_join(w, '', '')",
    "flatten(y)", "slice(a, 1, 2)", "slice(a, -2, 1)", "slice(a, 3, 9)", "slice(w, 2, i * i)", "concat(a, b)",
    "concat(a, array(1, NULL))", "concat(w)", "reverse(a)", "reverse(w)",
]  # fmt: skip
MAPS = [
    "map_keys(m)", "map_values(m)", "map_entries(m)", "map_keys(g)", "map_values(g)", "map_contains_key(m, 'a')",
    "map_contains_key(m, k)", "map_from_entries(array(struct(coalesce(k, '') AS key, i AS value)))[k]",
    "size(map_from_entries(map_entries(m)))",
]  # fmt: skip
COMPARED = [
    "a = b", "a < b", "a <=> b", "a IN (b, array(3, 3))", "s = s", "s.r = s.r", "s <=> s", "y > array(a)", "x = x",
    "x >= array(0.0e0)", "greatest(a, b)", "least(w, array('b'))", "struct(i, k) = struct(i, k)", "a IS NOT NULL",
    "z = z", "array(0.0e0) = array(-0.0e0)", "struct(i AS p) < struct(2 AS p)", "a <> array(1L, 2L)",
]  # fmt: skip
EXPRESSIONS = [*ACCESS, *SIZES, *MADE, *ARRAYS, *MAPS, *COMPARED]
