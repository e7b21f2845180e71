"""Windows as Spark's and Flink's users write them, read as the clause that they stand for.

- Spark: `GROUP BY window(ts, '10 minutes', '1 minute'[, '15 seconds'])`: length, slide, start of the first window;
- Flink: `FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' MINUTES[, offset]))` with
  `GROUP BY window_start, window_end`: slide before length; `TUMBLE` has no slide;
- Flink as it was: `GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTES)`.

These align the starts of windows, a clause in brackets aligns their ends. So where the length is no multiple of the
slide, they are other windows than those of the clause with the same lengths: the binder chooses an origin at which
starts lie where these forms put them.
"""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.errors import StreamError
from penstock.model.time import Domain, Span, parse_span
from penstock.sql.clause import Form, WindowClause
from penstock.sql.dialect import position
from penstock.sql.reading import Reading, shown

BOUNDS = {
    "tumble_start": ("tumble", "window_start"), "tumble_end": ("tumble", "window_end"),
    "hop_start": ("hop", "window_start"), "hop_end": ("hop", "window_end"),
}  # fmt: skip
"""Functions of the select list that give a bound of the window, with the function of GROUP BY that they belong to."""
_USAGE = {
    "window": "window(ts, '10 minutes', '1 minute'), length before slide",
    "tumble": "TUMBLE(ts, INTERVAL '10' MINUTES)",
    "hop": "HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTES), slide before length",
}
_PARAMETERS = {
    "window": ("range", "slide", "offset"),
    "tumble": ("range", "offset"),
    "hop": ("slide", "range", "offset"),
}
_NAMED = {"size": "range", "slide": "slide", "offset": "offset", "timecol": "wa"}
"""What Flink calls the parameters, where they are given by name."""
_PARTS = re.compile(r"[+-]?\d+(?:\.\d+)?\s*[A-Za-z]+")


def window_call(node: exp.Expr) -> str | None:
    """The name of the function that a part of GROUP BY calls, if that is a window."""
    return node.name.lower() if isinstance(node, exp.Anonymous) and node.name.lower() in _PARAMETERS else None


def clause_of(call: exp.Expr, form: Form, reading: Reading, name: str | None = None) -> WindowClause:
    """The clause that a call stands for; `name` is that of the function if it is written otherwise."""
    name = name or call.name.lower()
    line, column = position(call, reading.sql)
    reading.name(call)
    values: dict[str, object] = {}
    positions: dict[str, tuple[int, int]] = {}
    places = ["wa", *_PARAMETERS[name]]
    for at, argument in enumerate(reading.parts(call, "expressions")):
        parameter, given = _named(argument, reading) or (places[at] if at < len(places) else "", argument)
        if parameter not in places or parameter in values:
            what, hint = f"{name.upper()} does not take this argument.", f"write {_USAGE[name]}"
            raise reading.error(what, argument, got=shown(argument), hint=hint)
        values[parameter] = _attribute(given, form, reading) if parameter == "wa" else _length(given, reading)
        positions[parameter] = position(given, reading.sql)
    needed = {"wa", "range"} if name != "hop" else {"wa", "range", "slide"}
    if needed - values.keys():
        raise reading.error(
            f"Something is missing in {name.upper()}.", call, got=shown(call), hint=f"write {_USAGE[name]}"
        )
    if "slide" not in values:
        values["tumbling"] = True
    return WindowClause(**values, form=form, line=line, column=column, positions=positions)  # type: ignore[arg-type]


def _named(argument: exp.Expr, reading: Reading) -> tuple[str, exp.Expr] | None:
    if not isinstance(argument, exp.Kwarg):
        return None
    return _NAMED.get(reading.name(argument).lower(), "?"), reading.need(argument, "expression")


def _attribute(node: exp.Expr, form: Form, reading: Reading) -> str:
    """The windowing attribute: a column, in DESCRIPTOR(…) where a table is windowed."""
    if form is Form.TABLE:
        if not (isinstance(node, exp.Anonymous) and node.name.lower() == "descriptor" and len(node.expressions) == 1):
            raise reading.error("DESCRIPTOR(…) is expected here.", node, got=shown(node), hint="write DESCRIPTOR(ts)")
        reading.name(node)
        (node,) = reading.parts(node, "expressions")
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        raise reading.error(
            "A window stands on a column.", node, got=shown(node), hint="name the stream's time; compute in a sub-query"
        )
    qualifier, name = reading.name(node, "table"), reading.name(node)
    return f"{qualifier}.{name}" if qualifier else name


def _length(node: exp.Expr, reading: Reading) -> Span:
    """A length: a text with its unit, an INTERVAL, or a number where the attribute is one."""
    reading.whole(node)
    inner = node.this if isinstance(node, exp.Interval | exp.Neg) else node
    text = str(inner.this) if isinstance(inner, exp.Literal) else ""
    if isinstance(node, exp.Interval):
        text += f" {node.args['unit'].name}" if node.args.get("unit") is not None else ""
    elif isinstance(node, exp.Neg):
        text = "-" + text
    try:
        return _read(text.strip())
    except StreamError:
        raise reading.error(
            "This is no length of a window.",
            node,
            got=shown(node),
            hint="write '10 minutes' or INTERVAL '10' MINUTES, of weeks or smaller units",
        ) from None


def _read(text: str) -> Span:
    """`10 minutes`, and `1 hour 30 minutes` as Spark reads it."""
    parts = _PARTS.findall(text)
    if len(parts) < 2 or _PARTS.sub("", text).strip():
        return parse_span(text)
    ticks = [parse_span(part).ticks(Domain.TIMESTAMP) for part in parts]
    if any(t is None for t in ticks):
        raise StreamError("Not a length of time.", got=text)
    return Span(sum(t for t in ticks if t is not None), "microseconds")
