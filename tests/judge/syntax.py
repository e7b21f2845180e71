"""DuckDB's parser as judge of what is a query at all. It binds nothing, so it needs no tables.

A query is judged without its window clauses and tables of windows, and with what Spark spells in another way spelt as
DuckDB does: that is all that is changed, and the rest of the text stays as it is written.
"""

from __future__ import annotations

import json
import re

import duckdb
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.dialect import DIALECT, PenstockDialect

SPELLINGS = {"<=>": "=", "DIV": "//", "==": "=", "!": "NOT ", "GROUPBY": "GROUP BY", "RLIKE": "LIKE", "REGEXP": "LIKE"}
"""What Spark or the papers write, and what DuckDB does."""
NAMES = PenstockDialect.Parser.ID_VAR_TOKENS - PenstockDialect.Parser.TYPE_TOKENS - {
    TokenType.ALL, TokenType.CASE, TokenType.END, TokenType.IN, TokenType.IS, TokenType.DIV, TokenType.TRUE,
    TokenType.FALSE,
}  # fmt: skip
"""Words that can be names: DuckDB has reserved ones, Spark has hardly any."""
TAKEN_BY_SPARK = ("Chained comparisons are not supported",)
"""What DuckDB says of texts that Spark takes."""
_LETTERS = re.compile(r"(?<=[\d.])(BD|[LSYDF])$", re.IGNORECASE)
_CLAUSE_COMMA = re.compile(r"\s*,\s*(?=WHERE\b|;|$)", re.IGNORECASE)
_GROUP_BY = re.compile(r"\bGROUP\s*-\s*BY\b", re.IGNORECASE)


class Parser:
    """One connection, which is slow to make."""

    def __init__(self) -> None:
        """Nothing is read or written but texts."""
        self.database = duckdb.connect()

    def problem(self, sql: str) -> str:
        """What DuckDB's parser says against a query; empty if it takes it."""
        found = self.database.execute("SELECT json_serialize_sql(?::varchar)", [spelt(sql)]).fetchone()
        assert found is not None
        answer = json.loads(found[0])
        problem = str(answer["error_message"]) if answer["error"] else ""
        return "" if problem.startswith(TAKEN_BY_SPARK) else problem


def spelt(sql: str) -> str:
    """The query as DuckDB would have it written."""
    sql = _GROUP_BY.sub("GROUP BY", sql)
    tokens = DIALECT.tokenize(sql)
    result, end, at = "", 0, 0
    while at < len(tokens):
        token = tokens[at]
        if token.start < end:  # the letter after a number, which is more than one token
            at += 1
            continue
        result += sql[end : token.start]
        end = token.end + 1
        if token.token_type == TokenType.L_BRACKET:
            while tokens[at].token_type != TokenType.R_BRACKET:
                at += 1
            end = tokens[at].end + 1
            left = _CLAUSE_COMMA.match(sql, end)
            end, result = (left.end() if left else end), result + " "
        elif token.token_type == TokenType.TABLE and tokens[at + 1 : at + 2] and tokens[at + 1].text == "(":
            at = _closing(tokens, at + 1)
            end, result = tokens[at].end + 1, result + " windowed "
        elif _names_several(tokens, at):
            at = _closing(tokens, at + 1)
            end, result = tokens[at].end + 1, result + " AS several "
        elif token.token_type == TokenType.STRING and at and tokens[at - 1].token_type == TokenType.STRING:
            result = result.rstrip()  # texts side by side are one
        elif (token.token_type == TokenType.UNION or token.text == "∪") and _of_streams(tokens, at):
            result += "CROSS JOIN"
            if tokens[at + 1].token_type == TokenType.ALL:
                at, end = at + 1, tokens[at + 1].end + 1
        else:
            result += _spelt(tokens, at, sql)
        at += 1
    return result + sql[end:]


def _spelt(tokens: list[Token], at: int, sql: str) -> str:
    token = tokens[at]
    written = sql[token.start : token.end + 1]
    if token.token_type == TokenType.STRING:
        return "'" + token.text.replace("'", "''") + "'"
    if token.token_type == TokenType.NUMBER:
        return _LETTERS.sub("", written)
    if token.token_type == TokenType.DASH and at and tokens[at - 1].token_type == TokenType.INTERVAL:
        return ""
    following = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    if token.token_type == TokenType.LEFT and following in (TokenType.ANTI, TokenType.SEMI):
        return ""  # DuckDB has no other ones
    called = at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN
    if token.token_type == TokenType.WINDOW:
        return '"window"'
    before = [t.token_type for t in tokens[max(at - 3, 0) : at] if t.token_type != TokenType.DASH]
    unit = before[-2:-1] == [TokenType.INTERVAL]
    is_name = token.token_type in NAMES and not called and not unit and written.upper() not in SPELLINGS
    if token.token_type == TokenType.IDENTIFIER or is_name:
        return '"' + token.text.replace('"', '""') + '"'
    return SPELLINGS.get(written.upper(), written)


def _names_several(tokens: list[Token], at: int) -> bool:
    """Whether it is the AS of names in parentheses, for the columns that a call gives; DuckDB has none."""
    kinds = [token.token_type for token in tokens[max(at - 1, 0) : at + 2]]
    return kinds == [TokenType.R_PAREN, TokenType.ALIAS, TokenType.L_PAREN]


def _closing(tokens: list[Token], opening: int) -> int:
    """Where a parenthesis is closed: of a table of windows, which DuckDB has not; the last token if nowhere."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].token_type == TokenType.L_PAREN) - (tokens[at].token_type == TokenType.R_PAREN)
        if depth == 0:
            return at
    return len(tokens) - 1


def _of_streams(tokens: list[Token], at: int) -> bool:
    """Whether a UNION is one of streams: no query follows, and it is no name."""
    if at and tokens[at - 1].token_type == TokenType.ALIAS:
        return False
    following = [t.token_type for t in tokens[at + 1 :]]
    queries = (TokenType.SELECT, TokenType.WITH)
    skipped = (TokenType.ALL, TokenType.DISTINCT, TokenType.L_PAREN)
    return next((kind for kind in following if kind not in skipped), None) not in queries
