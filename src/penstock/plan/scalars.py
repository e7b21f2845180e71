"""The functions of one row that queries call by name, one record each: how they are written, what they take and give.

A record without a result is bound by rules of its own (`sql/bind_named.py`); all others by what is said here. The list
in the documentation is made from these records. What a function means is in `plan/functions.py`, under `name`.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, DataType

TEXT, NUMBERS, TIMES, CHOICE, NESTED = "text", "numbers", "times", "choice", "nested"
Default = str | int


@dataclass(frozen=True)
class Scalar:
    """A function of one row."""

    family: str
    written: str
    """As the documentation shows it: `lpad(text, length[, fill])`."""
    takes: tuple[str, ...] = ()
    """Of each argument: `text`, `int`, `bigint`, `double`, `time` or `date`. What is no such thing is brought to it if
    nothing can be lost, and refused otherwise; a bigint where an int is wanted is cast, as in Spark."""
    returns: DataType | None = None
    name: str = ""
    """What the evaluators call it, if not as queries do."""
    also: tuple[str, ...] = ()
    """Other names for it."""
    defaults: tuple[Default, ...] = ()
    """Of the last arguments, if they are left out."""

    @property
    def called(self) -> str:
        """The name that queries call it by."""
        return self.written.partition("(")[0]


def _text(written: str, *takes: str, returns: DataType = STRING, **more: tuple[Default, ...]) -> Scalar:
    return Scalar(TEXT, written, takes, returns, defaults=more.get("defaults", ()))


_OF_TEXT = (
    _text("left(text, length)", "text", "int"),
    _text("right(text, length)", "text", "int"),
    _text("split_part(text, separator, n)", "text", "text", "int"),
    _text("replace(text, search[, replacement])", "text", "text", "text", defaults=("",)),
    _text("lpad(text, length[, fill])", "text", "int", "text", defaults=(" ",)),
    _text("rpad(text, length[, fill])", "text", "int", "text", defaults=(" ",)),
    _text("repeat(text, times)", "text", "int"),
    _text("reverse(text or array)", "text"),
    _text("initcap(text)", "text"),
    _text("translate(text, characters, others)", "text", "text", "text"),
    _text("ltrim(text)", "text"),
    _text("rtrim(text)", "text"),
    Scalar(TEXT, "btrim(text[, characters])", ("text", "text"), STRING, "trim", defaults=(" ",)),
    _text("startswith(text, start)", "text", "text", returns=BOOLEAN),
    _text("endswith(text, end)", "text", "text", returns=BOOLEAN),
    _text("contains(text, part)", "text", "text", returns=BOOLEAN),
    _text("ascii(text)", "text", returns=INT),
    Scalar(TEXT, "chr(code)", ("bigint",), STRING, also=("char",)),
    _text("md5(text)", "text"),
    Scalar(TEXT, "sha1(text)", ("text",), STRING, also=("sha",)),
    _text("sha2(text, bits)", "text", "int"),
    Scalar(TEXT, "concat_ws(separator, text, …)"),
    Scalar(TEXT, "instr(text, part)"),
    Scalar(TEXT, "locate(part, text[, from])", also=("position",)),
    Scalar(TEXT, "regexp_like(text, pattern)", also=("regexp", "rlike")),
    Scalar(TEXT, "regexp_extract(text, pattern[, group])"),
    Scalar(TEXT, "regexp_replace(text, pattern, replacement)"),
    Scalar(TEXT, "get_json_object(text, path)"),
)


def _double(written: str, count: int = 1, *also: str, name: str = "") -> Scalar:
    return Scalar(NUMBERS, written, ("double",) * count, DOUBLE, name, also)


_OF_NUMBERS = (
    Scalar(NUMBERS, "round(x[, digits])"),
    Scalar(NUMBERS, "bround(x[, digits])"),
    _double("ln(x)"),
    _double("log10(x)"),
    _double("log2(x)"),
    Scalar(NUMBERS, "log([base, ]x)"),
    _double("exp(x)"),
    _double("power(x, y)", 2, "pow"),
    _double("sign(x)", 1, "signum"),
    Scalar(NUMBERS, "pmod(x, y)"),
    Scalar(NUMBERS, "isnan(x)"),
    Scalar(NUMBERS, "shiftleft(x, n)"),
    Scalar(NUMBERS, "shiftright(x, n)"),
)


def _time(written: str, *takes: str, returns: DataType = INT, also: tuple[str, ...] = ()) -> Scalar:
    return Scalar(TIMES, written, takes, returns, also=also)


_OF_TIMES = (
    _time("quarter(time)", "time"),
    _time("dayofweek(time)", "time"),
    _time("weekday(time)", "time"),
    _time("dayofyear(time)", "time"),
    _time("weekofyear(time)", "time"),
    Scalar(TIMES, "date_part(unit, time)", also=("datepart",)),
    Scalar(TIMES, "date_format(time, pattern)"),
    Scalar(TIMES, "to_timestamp(text[, pattern])"),
    Scalar(TIMES, "to_date(text or time[, pattern])"),
    Scalar(TIMES, "unix_timestamp(time or text[, pattern])", also=("to_unix_timestamp",)),
    Scalar(TIMES, "from_unixtime(seconds[, pattern])"),
    _time("unix_seconds(time)", "time", returns=BIGINT),
    _time("unix_millis(time)", "time", returns=BIGINT),
    _time("unix_micros(time)", "time", returns=BIGINT),
    _time("timestamp_seconds(n)", "bigint", returns=TIMESTAMP),
    _time("timestamp_millis(n)", "bigint", returns=TIMESTAMP),
    _time("timestamp_micros(n)", "bigint", returns=TIMESTAMP),
    _time("datediff(end, start)", "date", "date", also=("date_diff",)),
    _time("date_add(date, days)", "date", "int", returns=DATE, also=("dateadd",)),
    _time("date_sub(date, days)", "date", "int", returns=DATE),
    _time("add_months(date, months)", "date", "int", returns=DATE),
    _time("last_day(date)", "date", returns=DATE),
    _time("make_date(year, month, day)", "int", "int", "int", returns=DATE),
    _time("months_between(time, time)", "time", "time", returns=DOUBLE),
    Scalar(TIMES, "trunc(date, unit)"),
)
_OF_CHOICE = (
    Scalar(CHOICE, "nvl2(x, if not null, if null)"),
    Scalar(CHOICE, "isnull(x)"),
    Scalar(CHOICE, "isnotnull(x)"),
)

_OF_NESTED = (
    Scalar(NESTED, "size(array or map)", also=("cardinality",)),
    *(Scalar(NESTED, written) for written in (
        "get(array, index)", "element_at(array or map, place or key)", "try_element_at(array or map, place or key)",
        "array(value, …)", "map(key, value, …)", "struct(value [AS name], …)", "named_struct('name', value, …)",
        "map_keys(map)", "map_values(map)", "map_entries(map)", "map_from_entries(array)", "map_contains_key(map, key)",
        "array_contains(array, value)", "array_position(array, value)", "array_remove(array, value)",
        "arrays_overlap(array, array)", "array_union(array, array)", "array_intersect(array, array)",
        "array_except(array, array)", "array_distinct(array)", "array_min(array)", "array_max(array)",
        "sort_array(array[, ascending])", "array_sort(array)", "array_compact(array)",
        "array_join(array, separator[, for null])", "array_repeat(value, times)", "flatten(array)",
        "slice(array, start, length)", "split(text, pattern[, limit])",
    )),
)  # fmt: skip

SCALARS: tuple[Scalar, ...] = (*_OF_TEXT, *_OF_NUMBERS, *_OF_TIMES, *_OF_CHOICE, *_OF_NESTED)
BY_NAME: dict[str, Scalar] = {name: s for s in SCALARS for name in (s.called, *s.also)}
"""By every name that queries may call them by."""
