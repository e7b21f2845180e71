"""Aggregation of single rows, as Python code written for the aggregates at hand.

Rows that come one at a time are gathered in a table per pane, group by group, as plain Python numbers. The function
that adds a row, and the one that makes the result rows of a table, are written out for the keys and measures of the
query and compiled once: no loop over measures and no call per value is left in them.

In a table a number is None until a value that is not null has come; counts begin at 0, distinct values are a set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.model.batch import Row
from penstock.model.types import DataType
from penstock.model.values import canonical
from penstock.operators.aggregates.chosen import Key
from penstock.operators.aggregates.functions import (
    check_bigint,
    combine_moments,
    greatest,
    least,
    lift_moments,
)
from penstock.operators.aggregates.measures import Measure, Result
from penstock.operators.windows.sliding import Sliding

Groups = dict[Key, list[Any]]
StartPane = Callable[[int], Groups]
Absorb = Callable[[Row], None]
_BITS = {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}
_NAMES = {
    "canonical": canonical,
    "least": least,
    "greatest": greatest,
    "lift_moments": lift_moments,
    "combine_moments": combine_moments,
    "check_bigint": check_bigint,
}


def absorber(
    window: Sliding, time: int, keys: Sequence[tuple[int, DataType]], measures: Sequence[Measure], start_pane: StartPane
) -> tuple[Absorb, Callable[[], None]]:
    """A function that adds a row to the table of its pane, and one that makes it forget which table that is.

    `start_pane` is asked for a table whenever a row is in another pane than the row before.
    """
    columns = sorted({m.column for m in measures if m.column is not None})
    lines = [
        "def make(start_pane):",
        "    last = groups = None",
        "    def absorb(row):",
        "        nonlocal last, groups",
        f"        pane = (row[{time}] - {window.origin}) // {window.pane}",
        "        if pane != last:",
        "            groups, last = start_pane(pane), pane",
        *[f"        v{c} = row[{c}]" for c in columns],
        f"        key = {_tuple([_key(*key) for key in keys])}",
        "        n = groups.get(key)",
        "        if n is None:",
        f"            groups[key] = [{', '.join(_first(m) for m in measures)}]",
        "        else:",
        *[f"            {line}" for at, m in enumerate(measures) for line in _add(at, m)],
        "    def forget():",
        "        nonlocal last, groups",
        "        last = groups = None",
        "    return absorb, forget",
    ]
    made: tuple[Absorb, Callable[[], None]] = _compiled(lines, _NAMES)["make"](start_pane)
    return made


def _key(place: int, type_: DataType) -> str:
    """A key as it is, or, where values that are one value may be different in Python, as `values` has it."""
    has_floats = type_.is_fractional or type_.is_nested
    return f"canonical(row[{place}])" if has_floats else f"row[{place}]"


def emitter(keys: int, results: Sequence[Result]) -> Callable[[int, int, int, Groups], list[Row]]:
    """A function of window id, start, end and table that gives the result rows."""
    names = [f"k{i}" for i in range(keys)]
    spreads = {f"spread{i}": r.spread for i, r in enumerate(results) if r.spread is not None}
    values = [_result(i, r) for i, r in enumerate(results)]
    row = _tuple(["wid", "start", "end", *names, *values])
    lines = [
        "def emit(wid, start, end, groups):",
        f"    return [{row} for {_tuple(names)}, n in groups.items()]",
    ]
    emit: Callable[[int, int, int, Groups], list[Row]] = _compiled(lines, {**_NAMES, **spreads})["emit"]
    return emit


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _compiled(lines: Sequence[str], names: dict[str, Any]) -> dict[str, Any]:
    """What some generated code defines; only positions, numbers and names of this module are ever in it."""
    scope = dict(names)
    exec(compile("\n".join(lines), "<penstock rows>", "exec"), scope)
    return scope


def _first(measure: Measure) -> str:
    value = f"v{measure.column}"
    match measure.kind:
        case "rows":
            return "1"
        case "count":
            return f"0 if {value} is None else 1"
        case "distinct":
            return f"set() if {value} is None else {{canonical({value})}}"
        case "moments":
            return f"None if {value} is None else lift_moments({value})"
        case _:
            return value


def _add(at: int, measure: Measure) -> list[str]:
    value, number = f"v{measure.column}", f"n[{at}]"
    if measure.kind == "rows":
        return [f"{number} += 1"]
    if measure.kind == "count":
        return [f"if {value} is not None: {number} += 1"]
    if measure.kind == "distinct":
        return [f"if {value} is not None: {number}.add(canonical({value}))"]
    match measure.kind:
        case "sum":
            joined = f"b + {value}"
        case "bit_and" | "bit_or" | "bit_xor":
            joined = f"b {_BITS[measure.kind]} {value}"
        case "moments":
            value = f"lift_moments({value})"
            joined = f"combine_moments(b, {value})"
        case kind if measure.is_float:
            joined = f"{'least' if kind == 'min' else 'greatest'}(b, {value})"
        case kind:
            joined = f"({value} if {value} {'<' if kind == 'min' else '>'} b else b)"
    return [
        f"if v{measure.column} is not None:",
        f"    b = {number}",
        f"    {number} = {value} if b is None else {joined}",
    ]


def _result(at: int, result: Result) -> str:
    value, count = f"n[{result.value}]", f"n[{result.count}]"
    if result.lowering == "count":
        return value
    if result.lowering == "distinct":
        return f"len({value})"
    if result.lowering == "mean":
        return f"({value} / {count} if {count} else None)"
    if result.spread is not None:
        return f"(None if {value} is None else spread{at}({value}))"
    if result.lowering == "sum" and result.type.is_integer:
        return f"({value} if {value} is None or {-(2**63)} <= {value} < {2**63} else check_bigint(({value}, 1)))"
    return value
