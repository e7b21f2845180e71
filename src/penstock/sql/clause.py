"""The window clause in square brackets, as the papers write it.

`[RANGE 10 minutes, SLIDE 1 minute, WA ts]` after an aggregate or after a stream. The parameters: `RANGE` (a length,
`ALL`, or `TUMBLING` and a length; `ROWS 3` is `RANGE 3 ROWS`), `SLIDE`, `WA` or `WATTR` (the windowing attribute), `PA`
(partitioning attributes), `RATTR` and `SATTR` (attributes of range and slide where they differ), `ORIGIN` (where
windows align). Here it is only read; the binder gives it meaning. In the syntax tree it is an argument of what it
follows: of an item of the select list, or of a stream.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError, StreamError
from penstock.model.time import ROW_UNITS, TIME_UNITS, Span, make_span

KEYWORDS = frozenset({"RANGE", "SLIDE", "WA", "WATTR", "PA", "RATTR", "SATTR", "ORIGIN", "TUMBLING", "ROWS"})
OPENING = TokenType.HIVE_TOKEN_STREAM
"""The kind of the bracket that opens a clause: one that sqlglot has for something else that nobody writes."""
CLAUSE = "window_clause"
"""The argument that a clause is."""
PARAMETERS = (
    "range", "range_all", "tumbling", "slide", "wa", "pa", "rattr", "sattr", "sattr_rank", "origin", "offset",
)  # fmt: skip
_LENGTH = re.compile(r"[0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25}")
_ORIGIN = re.compile(r"[0-9]{1,25}")


class Form(Enum):
    """How a window is written."""

    BRACKETS = "[RANGE …, SLIDE …, WA …]"
    WINDOW = "GROUP BY window(…)"
    GROUP = "GROUP BY TUMBLE(…) or HOP(…)"
    TABLE = "FROM TABLE(…)"


@dataclass(frozen=True)
class WindowClause:
    """A window clause as it was written, or what says the same in another form."""

    range: Span | None = None
    range_all: bool = False
    tumbling: bool = False
    slide: Span | None = None
    wa: str | None = None
    pa: tuple[str, ...] = ()
    rattr: str | None = None
    sattr: str | None = None
    sattr_rank: str | None = None
    origin: str | int | None = None
    offset: Span | None = None
    """Where windows start; a form that aligns their starts has it instead of an origin."""
    form: Form = Form.BRACKETS
    line: int = 0
    column: int = 0
    after_stream: bool = False
    positions: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False)

    def position(self, parameter: str) -> tuple[int, int]:
        """Line and column of a parameter, or of the clause."""
        return self.positions.get(parameter, (self.line, self.column))

    def says_the_same(self, other: WindowClause) -> bool:
        """Whether another clause of the same form has the same parameters, wherever it stands."""
        return self.form is other.form and all(getattr(self, p) == getattr(other, p) for p in PARAMETERS)


class ClauseNode(exp.Expression):
    """A clause in a syntax tree; `this` is what was read."""

    arg_types = {"this": True}  # noqa: RUF012


def column_of(token: Token) -> int:
    """The column (from 1) where a token starts; sqlglot keeps where it ends."""
    return max(token.col - (token.end - token.start), 1)


class ClauseReader:
    """Reads one clause from the tokens between the brackets."""

    def __init__(self, tokens: Sequence[Token], opening: Token, sql: str) -> None:
        """`tokens` are those between the brackets, `opening` the left bracket."""
        self.tokens, self.opening, self.sql = tokens, opening, sql
        self.at = 0
        self.values: dict[str, object] = {}
        self.positions: dict[str, tuple[int, int]] = {}

    def read(self, *, after_stream: bool) -> WindowClause:
        """The clause."""
        while self.at < len(self.tokens):
            self._parameter()
            if self.at < len(self.tokens):
                if self._text() != ",":
                    raise self._error("A comma is missing between window parameters.")
                self.at += 1
                if self.at == len(self.tokens):
                    self.at -= 1
                    raise self._error("Something is missing after the comma.", hint="leave the comma out")
        return WindowClause(
            **self.values,  # type: ignore[arg-type]
            line=self.opening.line,
            column=column_of(self.opening),
            after_stream=after_stream,
            positions=self.positions,
        )

    def _parameter(self) -> None:
        token = self._token()
        word = self._text().upper()
        self.at += 1
        if word == "RANGE":
            if self._text().upper() == "ALL":
                self.at += 1
                self._set("range_all", True, token)
            else:
                if self._text().upper() == "TUMBLING":
                    self.at += 1
                    self._set("tumbling", True, token)
                self._set("range", self._span(), token)
        elif word == "ROWS":
            self._set("range", self._span(counts_rows=True), token)
        elif word == "TUMBLING":
            self._set("tumbling", True, token)
            self._set("range", self._span(), token)
        elif word == "SLIDE":
            self._set("slide", self._span(), token)
        elif word in ("WA", "WATTR"):
            self._set("wa", self._attribute(), token)
        elif word == "RATTR":
            self._set("rattr", self._attribute(), token)
        elif word == "PA":
            self._set("pa", self._attributes(), token)
        elif word == "SATTR":
            if self._text().lower() == "rank":
                self.at += 2
                self._set("sattr_rank", self._attribute(), token)
                self._expect(")")
            else:
                self._set("sattr", self._attribute(), token)
        elif word == "ORIGIN":
            self._set("origin", self._origin(), token)
        else:
            self.at -= 1
            raise self._error("Unknown window parameter.", hint=f"known ones are {', '.join(sorted(KEYWORDS))}")

    def _set(self, name: str, value: object, token: Token) -> None:
        if name in self.values:
            raise QueryError(
                "A window parameter is given twice.",
                sql=self.sql, line=token.line, column=column_of(token), got=token.text,
            )  # fmt: skip
        self.values[name] = value
        self.positions[name] = (token.line, column_of(token))

    def _span(self, *, counts_rows: bool = False) -> Span:
        negative = self._text() == "-"
        if negative:
            self.at += 1
        token = self._token()
        if token.token_type != TokenType.NUMBER:
            raise self._error(
                "A window length must start with a number.", hint="for example RANGE 10 minutes or RANGE 1000 rows"
            )
        if not _LENGTH.fullmatch(token.text):
            raise self._error("A window length is a number with at most 25 digits.")
        self.at += 1
        unit = "rows" if counts_rows else ""
        if not counts_rows and self.at < len(self.tokens) and self._text() != ",":
            unit = self._text().lower()
            if unit not in TIME_UNITS and unit not in ROW_UNITS:
                raise self._error("Unknown unit in a window length.", hint="use rows, or microseconds … weeks")
            self.at += 1
        try:
            span = make_span(token.text, unit)
        except StreamError as error:
            raise QueryError(
                error.what, sql=self.sql, line=token.line, column=column_of(token), got=error.got
            ) from None
        return Span(-span.amount, span.unit) if negative else span

    def _attribute(self) -> str:
        """A name, with a qualifier or a hyphen inside (`M1.ts`, `row-num`)."""
        name = self._name()
        while self.at < len(self.tokens) and self._text() in ("-", "."):
            joiner = self._text()
            self.at += 1
            name += joiner + self._name()
        return name

    def _attributes(self) -> tuple[str, ...]:
        if self._text() != "(":
            return (self._attribute(),)
        self.at += 1
        names = [self._attribute()]
        while self._text() == ",":
            self.at += 1
            names.append(self._attribute())
        self._expect(")")
        return tuple(names)

    def _origin(self) -> str | int:
        if self._text().upper() == "TIMESTAMP":
            self.at += 1
        negative = self._text() == "-"
        if negative:
            self.at += 1
        token = self._token()
        self.at += 1
        if token.token_type == TokenType.NUMBER and _ORIGIN.fullmatch(token.text):
            return -int(token.text) if negative else int(token.text)
        if token.token_type == TokenType.STRING and not negative:
            return token.text
        self.at -= 1
        raise self._error("ORIGIN takes a whole number or a timestamp in quotes.")

    def _name(self) -> str:
        token = self._token()
        if not (token.text.replace("_", "a").isalnum() or token.token_type == TokenType.IDENTIFIER):
            raise self._error("A name was expected.")
        self.at += 1
        return token.text

    def _expect(self, text: str) -> None:
        if self._text() != text:
            raise self._error(f"'{text}' was expected.")
        self.at += 1

    def _token(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else self.opening

    def _text(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else "]"

    def _error(self, what: str, hint: str = "") -> QueryError:
        token = self._token()
        return QueryError(
            what, sql=self.sql, line=token.line, column=column_of(token), got=repr(self._text()[:60]), hint=hint
        )
