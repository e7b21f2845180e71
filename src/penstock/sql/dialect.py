"""Spark's dialect of sqlglot, with what ours needs besides: window clauses, doubled quotes, a place for every node.

A window clause is read where it stands, after an item of the select list or after what FROM names, and is an argument
of that (`clause.py`): one that the binder does not read is refused, like everything else.

Of the hundreds of functions that sqlglot knows only those that queries can use are functions here. Any other name is
free for a function or an aggregate of the user's, and unknown until there is one.

A node's place is the offset in the user's text where it begins: that of the first of its parts that knows one. Nodes
without parts (NULL, an interval, a call without arguments) take that of the token which was read last.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.sql.aggregate_names import OWN_NODES
from penstock.sql.clause import CLAUSE, OPENING, ClauseNode, ClauseReader, column_of
from penstock.sql.match_recognize import MatchParser
from penstock.sql.window_names import WHAT_TO_WRITE

E = TypeVar("E", bound=exp.Expr)
NESTING = 64
"""So deep may parentheses, CASE, NOT and sub-queries stand in one another, and operators in a bound expression."""
_SCALAR = (
    "abs boolean ceil ceiling char_length character_length coalesce concat date date_trunc day dayofmonth double float "
    "floor greatest hour if ifnull int lcase least len length like lower minute mod month nullif nvl second sqrt "
    "string substr substring timestamp trim ucase upper year"
)
SCALAR_FUNCTIONS = frozenset(_SCALAR.upper().split())
"""Those of the functions that are of one row."""
_FUNCTIONS = [*SCALAR_FUNCTIONS, *(name.upper() for name in OWN_NODES)]
_WITH_WORDS_INSIDE = (
    "and broadcast broadcastjoin cast ceil extract floor mapjoin merge mergejoin or overlay position shuffle_hash "
    "shuffle_replicate_nl shufflemerge substr substring trim try_cast"
)
"""Functions with a syntax of their own; some are read only to be refused by name."""
_ROOM = 3000
"""Frames that the parser needs for that depth (1600), and as many for whoever calls."""


class PenstockDialect(Spark):
    """What queries are read with."""

    class Tokenizer(Spark.Tokenizer):
        """`'it''s'` is one text, as in Spark 4; sqlglot's own takes it for two that stand side by side."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """Paths into JSON are refused later, so nobody is told here what is wrong with one."""
        return path

    class Parser(MatchParser):
        """Reads window clauses and patterns, and marks every node with a place."""

        FUNCTIONS = {n: SparkParser.FUNCTIONS[n] for n in _FUNCTIONS}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            n: SparkParser.FUNCTION_PARSERS[n] for n in _WITH_WORDS_INSIDE.upper().split()
        }

        def _warn_unsupported(self) -> None:
            """What is no query is an error, so it needs no line in a log besides."""

        def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
            """Of any expressions; sqlglot's own takes no conditions."""
            if self._curr is None or self._curr.token_type not in (TokenType.CUBE, TokenType.ROLLUP):
                return None
            kind = exp.Cube if self._curr.token_type == TokenType.CUBE else exp.Rollup
            self._advance()
            return self.expression(
                kind(expressions=[] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction))
            )

        def _parse_grouping_set(self) -> exp.Expr | None:
            return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

        def expression(self, instance: E, token: Token | None = None, comments: list[str] | None = None) -> E:
            """The node, with the place of the last token unless it has one."""
            result = super().expression(instance, token, comments)
            last: Token | None = self._prev
            if last is not None and "start" not in result.meta:
                result.update_positions(last)
            return result

        def _parse_statement(self) -> exp.Expr | None:
            opening = self._curr
            if opening.token_type == OPENING:
                raise self._misread("A window clause stands outside a SELECT.", opening)
            return super()._parse_statement()

        def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
            return self._parse_csv(self._parse_item), None

        def _parse_item(self) -> exp.Expr | None:
            """An item of the select list, with a window clause before its other name or after it."""
            item = self._parse_assignment()
            clause = self._parse_clause(after_stream=False) if item is not None else None
            item = self._parse_alias(item)
            if item is not None:
                item.set(CLAUSE, clause or self._parse_clause(after_stream=False))
            return item

        def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
            """What FROM names, with the window clause after it, and the comma that the papers write after that."""
            if self._curr.token_type == TokenType.TABLE and self._next.token_type == TokenType.L_PAREN:
                return self._parse_windows_of_table()
            table: exp.Expr | None
            table = self._parse_pattern() if self._is_pattern() else super()._parse_table(*args, **options)
            if table is not None and self._is_match():
                table = self._parse_match_of(table)
            clause = self._parse_clause(after_stream=True) if table is not None else None
            if table is not None and clause is not None:
                table.set(CLAUSE, clause)
                if self._next.token_type in (TokenType.WHERE, TokenType.SENTINEL):
                    self._match(TokenType.COMMA)
            return table

        def _parse_windows_of_table(self) -> exp.Expr | None:
            """Flink's `TABLE(TUMBLE(TABLE s, …))`: a stream whose clause is the call, without its first argument."""
            self._advance(2)
            name = self._curr
            if name.text.lower() not in ("tumble", "hop"):
                hint = WHAT_TO_WRITE.get(name.text.lower()) or "TUMBLE and HOP are"
                raise self._misread("This table function is not supported.", name, got=name.text[:60], hint=hint)
            self._advance()
            self._match_l_paren()
            self._parse_name_of_argument("DATA")
            nested = self._curr.token_type == TokenType.L_PAREN
            if not (nested or self._match(TokenType.TABLE)):
                self.raise_error("TABLE and a stream's name are expected")
            table = self._parse_select(nested=True, parse_subquery_alias=False) if nested else self._parse_table_parts()
            self._match(TokenType.COMMA)
            call = exp.Anonymous(this=name.text, expressions=self._parse_csv(self._parse_argument))
            self._match_r_paren()
            self._match_r_paren()
            if table is not None:
                table.set("alias", self._parse_table_alias())
                table.set(CLAUSE, self.expression(call, name))
            return table

        def _parse_name_of_argument(self, *names: str) -> str | None:
            named = self._next.token_type == TokenType.FARROW and (not names or self._curr.text.upper() in names)
            name = self._curr.text if named else None
            self._advance(2 if named else 0)
            return name

        def _parse_argument(self) -> exp.Expr | None:
            name = self._parse_name_of_argument()
            value = self._parse_assignment()
            return value if name is None else self.expression(exp.Kwarg(this=exp.var(name), expression=value))

        def _parse_clause(self, *, after_stream: bool) -> ClauseNode | None:
            opening = self._curr
            if opening.token_type != OPENING:
                return None
            rest = self._tokens[self._index + 1 :]
            length = next((n for n, token in enumerate(rest) if token.token_type == TokenType.R_BRACKET), None)
            if length is None:
                raise self._misread("The window clause is not closed.", opening, got="no ']'")
            clause = ClauseReader(rest[:length], opening, self.sql).read(after_stream=after_stream)
            self._advance(length + 2)
            return self.expression(ClauseNode(this=clause), opening)

        def raise_error(self, message: str, token: Token | None = None) -> None:
            """Where a clause is what does not fit, that is said."""
            at = token or self._curr
            if at.token_type == OPENING:
                hint = "one clause stands after an aggregate, or after a stream"
                raise self._misread("A window clause does not belong here.", at, got="[", hint=hint)
            super().raise_error(message, at)

        def _misread(self, what: str, token: Token, got: str = "", hint: str = "") -> QueryError:
            return QueryError(what, sql=self.sql, line=token.line, column=column_of(token), got=got, hint=hint)


DIALECT = PenstockDialect()


def _is_clause(node: exp.Expr) -> bool:
    return node.arg_key == CLAUSE


def offset_of(node: exp.Expr) -> int:
    """Where a node begins in the text, whatever window it has; its parent knows if no part of it does."""
    at: exp.Expr | None = node
    while at is not None:
        parts = (n for n in at.walk(prune=_is_clause) if n is at or not _is_clause(n))
        starts = [int(m["start"]) for n in parts if "start" in (m := n.meta)]
        if starts:
            return min(starts)
        at = at.parent
    return 0


def line_and_column(sql: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    return sql.count("\n", 0, offset) + 1, offset - sql.rfind("\n", 0, offset)


def position(node: exp.Expr, sql: str) -> tuple[int, int]:
    """Line and column where a node begins."""
    return line_and_column(sql, offset_of(node))


_room_lock = Lock()
_room_used: list[int] = []


@contextmanager
def room_to_recurse() -> Iterator[None]:
    """Python's limit on recursion raised while a query is read: the parser takes about 25 frames a level.

    The limit is the process's, so it is taken back when the last of several threads leaves.
    """
    with _room_lock:
        _room_used.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(_ROOM, _room_used[0]))
    try:
        yield
    finally:
        with _room_lock:
            before = _room_used[0]
            _room_used.pop()
            if not _room_used:
                sys.setrecursionlimit(before)
