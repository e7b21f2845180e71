"""Random expressions of a kind of type that no row fails on, in three dialects at once, from the page on functions.

A scope says which columns there are of each kind. Numbers stay small, so that nothing overflows, and doubles are whole
numbers of some power of two, so that sums are exact; logarithms, means and the like are of the kind `real`, which is
compared roughly and never inside a query. Left out, since DuckDB means something else that no few words bring together:
decimals divided by decimals, case and order of letters outside of the basic plane, empty separators and fills, numbers
in JSON with zeros at their end, and time patterns of years before 1000.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from tests.judge.twins import Twin, call, same, twin

Scope = Mapping[str, Sequence[str]]
KINDS = ("int", "bigint", "double", "decimal", "string", "boolean", "timestamp", "date")
NUMBERS = ("int", "bigint", "double", "decimal")
LIKES = ["%", "a%", "%b", "%a%", "_", "a_b", "%a%b%", "", "_%_", "%é%", "n%l"]
PATTERNS = ["a.", "[a-z]+", "^a|b$", "(a|b)+", "[^a ]", "(?i)A", "^.{2}$", "[0-9]+$", "l*"]
FORMATS = {
    "yyyy-MM-dd": "%Y-%m-%d", "d.M.yy HH:mm": "%-d.%-m.%y %H:%M", "E h a": "%a %-I %p",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S", "EEEE MMM": "%A %b", "ss.SSSSSS": "%S.%f", "MMMM hh": "%B %I",
}  # fmt: skip
LITERALS = {
    "int": ["0", "1", "2", "7", "12", "-3"],
    "bigint": ["3000000000", "CAST(0 AS bigint)", "CAST(5 AS bigint)"],
    "double": ["0.5e0", "2e0", "-1.25e0", "CAST(0 AS double)"],
    "decimal": ["1.5", "0.25", "-10.00", "3.0"],
    "boolean": ["TRUE", "FALSE", "nullif(TRUE, TRUE)"],
    "timestamp": ["TIMESTAMP '2026-01-01 00:00:00'", "TIMESTAMP '1969-12-31 23:59:59.5'"],
    "date": ["DATE '2026-01-31'", "DATE '1969-12-31'", "DATE '2024-02-29'"],
    "string": ["'a'", "'ab'", "''", "'zz'", "'null'", "'7'", "'it''s'", "'é'"],
}


class Typed:
    """Makes expressions from one source of chance."""

    def __init__(self, random_: random.Random) -> None:
        """Nothing but chance."""
        self.random = random_
        self.pick = random_.choice

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return self.random.random() < probability

    def literal(self, kind: str) -> Twin:
        """A constant."""
        return same(self.pick(LITERALS[kind]))

    def leaf(self, kind: str, scope: Scope) -> Twin:
        """A column, or a constant."""
        return same(self.pick(scope[kind])) if scope.get(kind) and self.chance(0.8) else self.literal(kind)

    def make(self, kind: str, depth: int, scope: Scope) -> Twin:
        """An expression of a kind."""
        if depth <= 0 or self.chance(0.2):
            return self.leaf(kind, scope)
        if self.chance(0.25):
            return self._any(kind, depth - 1, scope)
        forms: list[Callable[[], Twin]] = getattr(self, f"_{kind}")(
            lambda k: self.make(k, depth - 1, scope), lambda k: self.leaf(k, scope)
        )
        return self.pick(forms)()

    def real(self, scope: Scope) -> Twin:
        """A number of which the last digits are open."""
        x, i = self.make(self.pick(["int", "double"]), 1, scope), self.make("int", 1, scope)
        return self.pick(
            [
                lambda: call("ln", "p_ln", x),
                lambda: call("log10", "p_log10", x),
                lambda: call("log2", "p_log2", x),
                lambda: twin("log(2, {})", "p_log2({})", x),
                lambda: same("exp({} % 9)", i),
                lambda: call("months_between", "p_months_between", *[self.make("timestamp", 1, scope) for _ in "ab"]),
                lambda: twin("power({}, 2)", "pow({}, 2)", x),
                lambda: twin("pow(abs({}), 0.5e0)", "p_sqrt(abs({}))", x),
                lambda: call("sqrt", "p_sqrt", x),
                lambda: same("{} / nullif({}, 0)", i, self.make("int", 0, scope)),
            ]
        )()

    def _any(self, kind: str, depth: int, scope: Scope) -> Twin:
        def one() -> Twin:
            return self.make(kind, depth, scope)

        condition, subject = self.make("boolean", depth, scope), self.make("string", depth, scope)
        forms: list[Callable[[], Twin]] = [
            lambda: same("CASE WHEN {} THEN {} ELSE {} END", condition, one(), one()),
            lambda: same("CASE WHEN {} THEN {} END", condition, one()),
            lambda: same("CASE {} WHEN 'a' THEN {} WHEN '' THEN {} ELSE {} END", subject, one(), one(), one()),
            lambda: same("coalesce({}, {})", one(), one()),
            lambda: same("nullif({}, {})", one(), one()),
            lambda: call(self.pick(["nvl", "ifnull"]), "coalesce", one(), one()),
            lambda: twin("if({}, {}, {})", "CASE WHEN {} THEN {} ELSE {} END", condition, one(), one()),
            lambda: twin("nvl2({}, {}, {})", "CASE WHEN {} IS NOT NULL THEN {} ELSE {} END", subject, one(), one()),
        ]
        if kind != "boolean":
            forms.append(lambda: same(self.pick(["greatest({}, {})", "least({}, {})"]), one(), one()))
        return self.pick(forms)()

    def _int(self, e: Callable[[str], Twin], leaf: Callable[[str], Twin]) -> list[Callable[[], Twin]]:
        whole = self.pick(["3", "-7", "2", "10"])
        back = str(self.random.randint(-2, 1))
        of_time = self.pick(["year", "month", "day", "hour", "minute", "second", "quarter", "dayofyear"])
        units = {"yearofweek": "isoyear", "dow_iso": "isodow", "doy": "doy", "week": "week", "QUARTER": "quarter"}
        unit = self.pick(list(units))
        return [
            lambda: same(self.pick(["({} + {})", "({} - {})"]), e("int"), e("int")),
            lambda: same("({} % 50) * ({} % 50)", leaf("int"), leaf("int")),
            lambda: same("{} % " + whole, e("int")),
            lambda: same("{} % nullif({}, 0)", e("int"), leaf("int")),
            lambda: twin("{} div " + whole, "{} // " + whole, e("int")),
            lambda: same(self.pick(["abs({})", "-({})"]), e("int")),
            lambda: twin("({} & {})", "({} & {})", e("int"), e("int")),
            lambda: same("({} | {})", e("int"), e("int")),
            lambda: twin("({} ^ {})", "xor({}, {})", e("int"), e("int")),
            lambda: same("(~ {})", leaf("int")),
            lambda: twin("shiftleft({} % 50, 3)", "(({} % 50) * 8)", leaf("int")),
            lambda: twin("shiftright({}, 2)", "({} >> 2)", leaf("int")),
            lambda: twin("pmod({}, " + whole + ")", "p_pmod({}, " + whole + ")", e("int")),
            lambda: twin("round({}, " + back + ")", "CAST(round({}, " + back + ") AS int)", e("int")),
            lambda: same("length({})", e("string")),
            lambda: same("instr({}, {})", e("string"), leaf("string")),
            lambda: twin("locate({}, {})", "instr({1}, {0})", leaf("string"), e("string")),
            lambda: twin("position({} IN {})", "instr({1}, {0})", leaf("string"), leaf("string")),
            lambda: twin("locate('a', {}, 2)", "p_locate('a', {}, 2)", e("string")),
            lambda: same("ascii({})", e("string")),
            lambda: same(of_time + "({})", e("timestamp")),
            lambda: same(self.pick(["year({})", "month({})", "day({})"]), e("date")),
            lambda: twin("extract(" + unit + " FROM {})", "extract(" + units[unit] + " FROM {})", e("timestamp")),
            lambda: twin("date_part('month', {})", "month({})", e("timestamp")),
            lambda: twin("dayofweek({})", "(dayofweek({}) + 1)", e("timestamp")),
            lambda: twin("weekday({})", "(isodow({}) - 1)", e("timestamp")),
            lambda: call("weekofyear", "week", e("date")),
            lambda: twin("datediff({}, {})", "(CAST({} AS DATE) - CAST({} AS DATE))", e("timestamp"), e("date")),
            lambda: same("CAST({} % 1000 AS int)", e("bigint")),
            lambda: twin("CAST({} AS int)", "CAST(trunc({}) AS int)", e("decimal")),
            lambda: twin(
                "CASE WHEN {} RLIKE '^ *-?[0-9]{{1,5}} *$' THEN CAST({} AS int) END",
                "CASE WHEN regexp_matches({}, '^ *-?[0-9]{{1,5}} *$') THEN TRY_CAST({} AS int) END",
                *[leaf("string")] * 2,
            ),
        ]

    def _bigint(self, e: Callable[[str], Twin], leaf: Callable[[str], Twin]) -> list[Callable[[], Twin]]:
        back = str(self.random.randint(-3, 0))
        rounded = self.pick(["floor", "ceil"])
        near = "CASE WHEN {} BETWEEN -1000e0 AND 1000e0 THEN "
        return [
            lambda: same(self.pick(["({} + {})", "({} - {})"]), e("bigint"), e(self.pick(["int", "bigint"]))),
            lambda: same("{} % 7", e("bigint")),
            lambda: twin("{} div 3", "{} // 3", e("bigint")),
            lambda: same("CAST({} AS bigint)", e("int")),
            lambda: same(self.pick(["-({})", "abs({})"]), e("bigint")),
            lambda: same("({} & 255)", e("bigint")),
            lambda: twin("pmod({}, 11)", "p_pmod({}, 11)", e("bigint")),
            lambda: twin(
                f"{near}{rounded}({{}}) END", f"{near}CAST({rounded}({{}}) AS bigint) END", *[e("double")] * 2
            ),
            lambda: twin(near + "CAST({} AS bigint) END", near + "CAST(trunc({}) AS bigint) END", *[e("double")] * 2),
            lambda: twin("round({}, " + back + ")", "CAST(round({}, " + back + ") AS bigint)", e("bigint")),
            lambda: call("unix_timestamp", "p_unix", e("timestamp")),  # towards zero in Spark, unlike the next
            lambda: call("unix_seconds", "p_seconds", e("timestamp")),
            lambda: call("unix_millis", "p_millis", e("timestamp")),
            lambda: twin("unix_micros({}) % 1000000000", "epoch_us({}) % 1000000000", e("timestamp")),
        ]

    def _double(self, e: Callable[[str], Twin], leaf: Callable[[str], Twin]) -> list[Callable[[], Twin]]:
        back = str(self.random.randint(-1, 2))
        return [
            lambda: same(self.pick(["({} + {})", "({} - {})"]), e("double"), e(self.pick(["double", "int"]))),
            lambda: same(self.pick(["{} * 0.5e0", "{} / 4", "abs({})", "-({})", "{} % 2e0"]), e("double")),
            lambda: same(self.pick(["CAST({} AS double)", "{} / 8", "{} / 2"]), e("int")),
            lambda: same("round({}, " + back + ")", leaf("double")),
            lambda: call("sign", "p_sign", e(self.pick(["double", "int", "decimal"]))),
            lambda: twin("bround({})", "round_even({}, 0)", leaf("double")),
        ]

    def _decimal(self, e: Callable[[str], Twin], leaf: Callable[[str], Twin]) -> list[Callable[[], Twin]]:
        back = str(self.random.randint(-1, 3))
        return [
            lambda: same(self.pick(["({} + {})", "({} - {})"]), e("decimal"), e(self.pick(["decimal", "int"]))),
            lambda: same(self.pick(["{} * 3", "{} * 0.5", "abs({})", "-({})", "{} % 1.5"]), leaf("decimal")),
            lambda: same("CAST({} AS decimal(12,3))", e("int")),
            lambda: same("CAST({} AS decimal(20,6))", e("decimal")),
            lambda: same("round({}, " + back + ")", e("decimal")),
            lambda: same(self.pick(["ceil({})", "floor({})"]), e("decimal")),
            lambda: twin("extract(second FROM {})", "p_second({})", e("timestamp")),
        ]

    def _string(self, e: Callable[[str], Twin], leaf: Callable[[str], Twin]) -> list[Callable[[], Twin]]:
        n, at, pattern = str(self.random.randint(-2, 5)), str(self.random.randint(-4, 4)), self.pick(PATTERNS)
        form, sep = self.pick(list(FORMATS)), self.pick(["a", ".", " ", "l", "ab"])
        plain = self.pick(["int", "bigint", "boolean", "timestamp", "date"])
        return [
            lambda: same(self.pick(["lower({})", "upper({})", "trim({})", "reverse({})", "md5({})"]), e("string")),
            lambda: same(self.pick(["ltrim({})", "rtrim({})", "({})", "sha1({})"]), e("string")),
            lambda: same("{} || {}", e("string"), e("string")),
            lambda: twin("concat({}, {})", "({} || {})", e("string"), e("string")),
            lambda: twin(f"substring({{}}, {at}, {n})", f"p_substring({{}}, {at}, {n})", e("string")),
            lambda: twin(f"substring({{}}, {at})", f"p_substring({{}}, {at}, 10000)", e("string")),
            lambda: same("CAST({} AS string)", e(plain)),
            lambda: same("CAST(CAST({} AS decimal(20,6)) AS string)", e("decimal")),
            lambda: twin(f"left({{}}, {n})", f"p_left({{}}, {n})", e("string")),
            lambda: twin("right({}, {} % 9)", "p_right({}, {} % 9)", e("string"), e("int")),
            lambda: same(f"repeat({{}}, {n})", leaf("string")),
            lambda: same(self.pick(["lpad({}, 5, 'xy')", "rpad({}, 3, 'é')"]), e("string")),
            lambda: twin("lpad({}, 4)", "lpad({}, 4, ' ')", e("string")),
            lambda: call("initcap", "p_initcap", leaf("string")),
            lambda: twin("sha2({}, 256)", "sha256({})", e("string")),
            lambda: same("replace({}, {}, {})", e("string"), leaf("string"), leaf("string")),
            lambda: twin("replace({}, 'a')", "replace({}, 'a', '')", e("string")),
            lambda: same("translate({}, 'abl', 'xy')", e("string")),
            lambda: same("concat_ws({}, {}, {})", leaf("string"), e("string"), e("string")),
            lambda: same(f"split_part({{}}, '{sep}', {self.pick(['1', '2', '-1', '3'])})", e("string")),
            lambda: twin("btrim({}, 'a ')", "trim({}, 'a ')", e("string")),
            lambda: twin("trim(LEADING 'n' FROM {})", "ltrim({}, 'n')", e("string")),
            lambda: twin(
                f"regexp_replace({{}}, '{_escaped(pattern)}', '<$0>')",
                f"regexp_replace({{}}, '{_escaped(pattern)}', '<\\0>', 'g')",
                e("string"),
            ),
            lambda: same(f"regexp_extract({{}}, '{_escaped(pattern)}', 0)", e("string")),
            lambda: twin(f"date_format({{}}, '{form}')", f"strftime({{}}, '{FORMATS[form]}')", e("timestamp")),
            lambda: twin("from_unixtime({})", "strftime(make_timestamp({} * 1000000), '%Y-%m-%d %H:%M:%S')", e("int")),
            lambda: twin("chr(97 + pmod({}, 5))", "chr((97 + p_pmod({}, 5))::INT)", e("int")),
            lambda: twin(
                "get_json_object({}, '$.a')", "p_json({}, '$.a')",
                same("""('{{"a": ' || CAST({} AS string) || ', "b": "x"}}')""", e(self.pick(["int", "boolean"]))),
            ),
        ]  # fmt: skip

    def _timestamp(self, e: Callable[[str], Twin], leaf: Callable[[str], Twin]) -> list[Callable[[], Twin]]:
        unit, number = self.pick(["SECONDS", "MINUTES", "HOURS", "DAYS"]), self.random.randint(0, 90)
        trunc = self.pick(["second", "minute", "hour", "day", "week", "month", "quarter", "year", "millisecond"])
        return [
            lambda: same(f"{{}} {self.pick('+-')} INTERVAL {number} {unit}", e("timestamp")),
            lambda: twin(f"date_trunc('{trunc}', {{}})", f"date_trunc('{trunc}', {{}})", e("timestamp")),
            lambda: twin(f"date_trunc('{trunc}', {{}})", f"date_trunc('{trunc}', CAST({{}} AS TIMESTAMP))", e("date")),
            lambda: twin("timestamp_seconds({})", "make_timestamp({} * 1000000::BIGINT)", e("int")),
            lambda: twin(
                "timestamp_millis({} % 1000000)", "make_timestamp(CAST({} % 1000000 * 1000 AS bigint))", e("bigint")
            ),
            lambda: twin("timestamp_micros({})", "make_timestamp(CAST({} AS bigint))", e("bigint")),
            lambda: same("CAST({} AS timestamp)", e("date")),
            lambda: same("CAST(CAST({} AS string) AS timestamp)", e("timestamp")),
            lambda: twin(
                "to_timestamp(date_format({}, 'yyyyMMddHHmmss'), 'yyyyMMddHHmmss')",
                "date_trunc('second', {})",
                e("timestamp"),
            ),
        ]

    def _date(self, e: Callable[[str], Twin], leaf: Callable[[str], Twin]) -> list[Callable[[], Twin]]:
        unit = self.pick(["week", "month", "quarter", "year"])
        return [
            lambda: twin("to_date({})", "CAST({} AS DATE)", e("timestamp")),
            lambda: same("CAST({} AS date)", e("timestamp")),
            lambda: twin("date_add({}, {} % 100)", "({} + CAST({} % 100 AS int))", e("date"), e("int")),
            lambda: twin("date_sub({}, 30)", "({} - 30)", e("date")),
            lambda: twin("add_months({}, 1)", "CAST({} + INTERVAL 1 MONTH AS DATE)", e("date")),
            lambda: twin("add_months({}, -13)", "CAST({} - INTERVAL 13 MONTH AS DATE)", e("date")),
            lambda: call("last_day", "last_day", e("date")),
            lambda: twin(
                "make_date(2000 + pmod({}, 30), 1 + pmod({}, 12), 28)",
                "make_date(2000 + p_pmod({}, 30), 1 + p_pmod({}, 12), 28)",
                leaf("int"), leaf("int"),
            ),
            lambda: twin(f"trunc({{}}, '{unit}')", f"CAST(date_trunc('{unit}', {{}}) AS DATE)", e("date")),
            lambda: twin("to_date(date_format({}, 'dd/MM/yyyy'), 'dd/MM/yyyy')", "{}", e("date")),
        ]  # fmt: skip

    def _boolean(self, e: Callable[[str], Twin], leaf: Callable[[str], Twin]) -> list[Callable[[], Twin]]:
        kind = self.pick([k for k in KINDS if k != "boolean"])
        sign = self.pick(["=", "<>", "<", "<=", ">", ">="])
        pattern, like = self.pick(PATTERNS), self.pick(LIKES)
        regular = f"{{}} RLIKE '{_escaped(pattern)}'", f"regexp_matches({{}}, '{_escaped(pattern)}')"

        def compared() -> Twin:
            other = self.pick(NUMBERS[:2] if kind == "int" else [kind])
            return same(f"{{}} {sign} {{}}", e(kind), e(other))

        return [
            compared,
            compared,
            lambda: same("({} AND {})", e("boolean"), e("boolean")),
            lambda: same("({} OR {})", e("boolean"), e("boolean")),
            lambda: same("NOT ({})", e("boolean")),
            lambda: same(self.pick(["{} IS NULL", "{} IS NOT NULL"]), e(kind)),
            lambda: same("{} BETWEEN {} AND {}", e(kind), leaf(kind), leaf(kind)),
            lambda: same(self.pick(["{} IN ({}, {})", "{} NOT IN ({}, {})"]), e(kind), leaf(kind), leaf(kind)),
            lambda: same(f"{{}} {self.pick(['', 'NOT '])}{self.pick(['LIKE', 'ILIKE'])} '{like}'", e("string")),
            lambda: twin(*regular, e("string")),
            lambda: call("regexp_like", "regexp_matches", e("string"), same("'[a-c]b?$'")),
            lambda: call("contains", "contains", e("string"), leaf("string")),
            lambda: call("startswith", "starts_with", e("string"), leaf("string")),
            lambda: call("endswith", "ends_with", e("string"), leaf("string")),
            lambda: twin("({} <=> {})", "({} IS NOT DISTINCT FROM {})", e(kind), e(kind)),
            lambda: same("({} IS DISTINCT FROM {})", e(kind), e(kind)),
            lambda: same(self.pick(["({}) IS TRUE", "({}) IS FALSE", "({}) IS NOT TRUE"]), e("boolean")),
            lambda: twin("isnan({})", "coalesce(isnan({}), FALSE)", e("double")),
            lambda: twin("isnull({})", "({} IS NULL)", e(kind)),
            lambda: twin("isnotnull({})", "({} IS NOT NULL)", e(kind)),
            lambda: same("{} < {}", e("date"), e("timestamp")),
        ]


def _escaped(pattern: str) -> str:
    """A regular expression within a template."""
    return pattern.replace("{", "{{").replace("}", "}}")
