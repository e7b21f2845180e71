"""Scripts: statements with semicolons between them, each read for what it is; their queries are bound later.

    CREATE STREAM name [(column type, …)] [UPDATE KEY [(column, …)]] WITH (option = 'value', …)
    CREATE TABLE name [(column type, …)] [WITH (option = 'value', …)]
    CREATE [TEMPORARY] VIEW name AS SELECT …
    CREATE SINK name WITH (option = 'value', …)
    INSERT INTO name SELECT …
    INSERT INTO 'path' SELECT …
    SELECT …

A statement keeps its place in the script. So does a query in it: what is handed on to be bound is the script with
everything else blank, so that lines and columns of errors are those of the script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.sql.dialect import line_and_column
from penstock.sql.tokens import tokens_of

_QUERIES = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN}
_WORD = re.compile(r"[^\W\d]\w*")
_STATEMENTS = "CREATE STREAM, CREATE TABLE, CREATE VIEW, CREATE SINK, INSERT INTO and SELECT are statements"
_NOT_BLANK = re.compile(r"[^\n]")


@dataclass(frozen=True)
class Statement:
    """What every statement has: the script, and where in it the statement stands."""

    script: str = field(repr=False)
    offset: int

    def error(self, what: str, got: str = "", hint: str = "", at: int | None = None) -> QueryError:
        """An error that points at the statement, or at a place in it."""
        line, column = line_and_column(self.script, self.offset if at is None else at)
        return QueryError(what, sql=self.script, line=line, column=column, got=got, hint=hint)


@dataclass(frozen=True)
class Option:
    """The value of an option, where it stands, and where its name does."""

    value: str
    offset: int
    named_at: int


@dataclass(frozen=True)
class CreateStream(Statement):
    """A stream, with its columns where the source does not tell them."""

    name: str
    columns: str | None
    options: Mapping[str, Option]
    update_key: tuple[str, ...] | None = None
    """The columns by which a row updates the one before; empty if each row does."""
    key_places: tuple[int, ...] = ()
    """Where they stand."""


@dataclass(frozen=True)
class CreateTable(Statement):
    """A table that streams are joined with, with its columns where the source does not tell them."""

    name: str
    columns: str | None
    options: Mapping[str, Option]


@dataclass(frozen=True)
class CreateSink(Statement):
    """Where results go."""

    name: str
    options: Mapping[str, Option]


@dataclass(frozen=True)
class QueryStatement(Statement):
    """A SELECT that stands by itself, and what has one in it."""

    first: int
    last: int
    """Where its query begins and ends."""

    @property
    def query(self) -> str:
        """The text of the query."""
        return self.script[self.first : self.last]

    @property
    def in_place(self) -> str:
        """The query where it stands: the script, blank but for it."""
        return _NOT_BLANK.sub(" ", self.script[: self.first]) + self.query


@dataclass(frozen=True)
class CreateView(QueryStatement):
    """A query that others read like a stream."""

    name: str


@dataclass(frozen=True)
class InsertInto(QueryStatement):
    """A query whose results go to a sink, or to a path."""

    target: str
    is_path: bool


def read_script(script: str) -> list[Statement]:
    """The statements of a script."""
    found: list[Statement] = []
    tokens: list[Token] = []
    for token in tokens_of(script):
        if token.token_type != TokenType.SEMICOLON:
            tokens.append(token)
        elif tokens:
            found.append(_Reader(tokens, script).statement())
            tokens = []
    if tokens:
        found.append(_Reader(tokens, script).statement())
    if not found:
        raise QueryError("The script is empty.", sql=script, line=1, column=1, hint=_STATEMENTS)
    return found


class _Reader:
    """Reads the tokens of one statement."""

    def __init__(self, tokens: Sequence[Token], script: str) -> None:
        self.tokens, self.script = tokens, script
        self.at = 0

    def statement(self) -> Statement:
        start = self.tokens[0].start
        if self.tokens[0].token_type in _QUERIES:
            return QueryStatement(self.script, start, *self.query())
        if self.words("CREATE", "STREAM"):
            name, columns = self.name("stream"), self.columns() if self.text() == "(" else None
            key, places = self.update_key()
            return CreateStream(self.script, start, name, columns, self.options(), key, places)
        if self.words("CREATE", "TABLE"):
            name, columns = self.name("table"), self.columns() if self.text() == "(" else None
            return CreateTable(self.script, start, name, columns, self.options() if self.kind() is not None else {})
        if self.words("CREATE", "SINK"):
            return CreateSink(self.script, start, self.name("sink"), self.options())
        if any(self.words("CREATE", *kind, "VIEW") for kind in ((), ("TEMPORARY",), ("TEMP",))):
            name = self.name("view")
            if not self.words("AS"):
                raise self.error("AS is missing.", hint="write CREATE VIEW name AS SELECT …")
            return CreateView(self.script, start, *self.query(), name)
        if self.words("INSERT", "INTO"):
            is_path = self.kind() == TokenType.STRING
            target = self.tokens[self.at].text if is_path else self.name("sink")
            self.at += is_path
            return InsertInto(self.script, start, *self.query(), target, is_path)
        raise self.error("This is no statement.", hint=_STATEMENTS)

    def update_key(self) -> tuple[tuple[str, ...] | None, tuple[int, ...]]:
        """`UPDATE KEY (column, …)`, or without columns, and where they stand; None if it is not there."""
        if not self.words("UPDATE"):
            return None, ()
        if not self.words("KEY"):
            raise self.error("KEY is expected here.", hint="write UPDATE KEY (column, …)")
        found: list[str] = []
        places: list[int] = []
        if self.text() == "(":
            self.at += 1
            while self.text() != ")" or found:
                found.append(self.name("column"))
                places.append(self.tokens[self.at - 1].start)
                if self.text() != ",":
                    break
                self.at += 1
            self.expect(")")
        return tuple(found), tuple(places)

    def query(self) -> tuple[int, int]:
        """Where the query begins and ends that is the rest of the statement."""
        if self.kind() not in _QUERIES:
            raise self.error("SELECT is expected here.")
        return self.tokens[self.at].start, self.tokens[-1].end + 1

    def columns(self) -> str:
        """What stands in parentheses after the name of a stream or a table, as it is written."""
        opening, depth = self.tokens[self.at], 0
        for at in range(self.at, len(self.tokens)):
            depth += (self.tokens[at].text == "(") - (self.tokens[at].text == ")")
            if depth == 0:
                self.at = at + 1
                return self.script[opening.end + 1 : self.tokens[at].start].strip()
        self.at = len(self.tokens)
        raise self.error("A closing parenthesis is expected here.")

    def options(self) -> dict[str, Option]:
        """`WITH (name = 'value', …)`; nothing stands after it."""
        found: dict[str, Option] = {}
        if not self.words("WITH"):
            raise self.error("WITH is expected here.", hint="write WITH (option = 'value', …)")
        self.expect("(")
        while True:
            token = self.tokens[min(self.at, len(self.tokens) - 1)]
            name = self.option_name()
            if name in found:
                raise self.error("An option is given twice.", got=name, at=token.start)
            self.expect("=")
            found[name] = self.value(token.start)
            if self.text() != ",":
                break
            self.at += 1
        self.expect(")")
        if self.at < len(self.tokens):
            raise self.error("This does not belong here.")
        return found

    def option_name(self) -> str:
        parts = [self.word_of_option()]
        while self.text() == ".":
            self.at += 1
            parts.append(self.word_of_option())
        return ".".join(parts)

    def word_of_option(self) -> str:
        text = self.text()
        if self.kind() != TokenType.STRING and not _WORD.fullmatch(text):
            raise self.error("The name of an option is expected here.")
        self.at += 1
        return text

    def value(self, named_at: int) -> Option:
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        if self.kind() not in (TokenType.STRING, TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE):
            raise self.error("A value is expected here.", hint="write it in quotes")
        self.at += 1
        return Option(token.text, token.start, named_at)

    def name(self, of: str) -> str:
        quoted = self.kind() == TokenType.IDENTIFIER
        if not quoted and (self.kind() == TokenType.STRING or not _WORD.fullmatch(self.text())):
            raise self.error(f"The name of a {of} is expected here.")
        self.at += 1
        return self.tokens[self.at - 1].text

    def words(self, *words: str) -> bool:
        """Take words if these are what comes."""
        found = tuple(t.text.upper() for t in self.tokens[self.at : self.at + len(words)]) == words
        self.at += len(words) if found else 0
        return found

    def expect(self, text: str) -> None:
        if self.text() != text:
            raise self.error(f"'{text}' is expected here.")
        self.at += 1

    def kind(self) -> TokenType | None:
        return self.tokens[self.at].token_type if self.at < len(self.tokens) else None

    def text(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def error(self, what: str, got: str = "", hint: str = "", at: int | None = None) -> QueryError:
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        beyond = self.at >= len(self.tokens)
        line, column = line_and_column(self.script, token.start if at is None else at)
        got = got or (f"nothing after {token.text[:60]}" if beyond else token.text[:60])
        return QueryError(what, sql=self.script, line=line, column=column, got=got, hint=hint)
