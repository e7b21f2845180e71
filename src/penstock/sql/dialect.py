"""Spark's dialect of sqlglot, with what ours needs besides: quotes written twice, and a place for every node.

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
from typing import TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.aggregate_names import OWN_NODES

E = TypeVar("E", bound=exp.Expr)
NESTING = 64
"""So deep may parentheses, CASE, NOT and sub-queries stand in one another, and operators in a bound expression."""
_SCALAR = (
    "abs boolean ceil ceiling char_length character_length coalesce concat date date_trunc day dayofmonth double float "
    "floor greatest hour if ifnull int lcase least len length like lower minute mod month nullif nvl second sqrt "
    "string substr substring timestamp to_timestamp trim ucase upper year"
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

    class Parser(SparkParser):
        """Marks every node with a place."""

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


DIALECT = PenstockDialect()


def offset_of(node: exp.Expr) -> int:
    """Where a node begins in the text; its parent knows if no part of it does."""
    at: exp.Expr | None = node
    while at is not None:
        starts = [int(m["start"]) for n in at.walk() if "start" in (m := n.meta)]
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
