"""The shape that the text of a query must have: every token in a place where the dialect has one.

The parser is a lenient one. Where a token must stand it often takes one if it is there, and it passes over some that
mean nothing to it (`SELECT , v`, `CAST(v AS int`, `FROM s *`). What it leaves out is not in the tree, so `reading.py`
cannot miss it. Here the tokens are gone through by the grammar of what queries can say, and nothing is passed over: a
token that the grammar does not ask for is refused at its place, whatever the parser makes of it.

This comes last, when a query is bound. What the parser and the binder refuse (ORDER BY, functions that nobody
knows) they have named by then, so the grammar has only what is supported, and it leaves to them what they decide: which
operator binds first, how many arguments a function takes, what stands in a window clause. Nothing is built, so the cost
is one step per token.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.clause import OPENING
from penstock.sql.dialect import PenstockDialect
from penstock.sql.match_recognize import MATCH
from penstock.sql.pattern_syntax import SEQ
from penstock.sql.shape_expression import NAMES, OPERATORS, ShapeOfExpressions
from penstock.sql.shape_groups import group_by

_ALIASES = NAMES - OPERATORS - {TokenType.END}
"""What can be a name without AS before it."""
_STREAM_ALIASES = _ALIASES & (PenstockDialect.Parser.TABLE_ALIAS_TOKENS | {TokenType.IDENTIFIER})
_JOINS = {
    TokenType.INNER, TokenType.CROSS, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.OUTER, TokenType.SEMI,
    TokenType.ANTI, TokenType.ASOF,
}  # fmt: skip


def check_query(tokens: Sequence[Token], sql: str) -> None:
    """Refuse a query that has a token in a place where none can stand."""
    shape = _Shape(tokens, sql)
    shape.query()
    shape.take(TokenType.SEMICOLON)
    shape.finish()


def check_expression(tokens: Sequence[Token], sql: str) -> None:
    """Refuse an expression that has a token in a place where none can stand."""
    shape = _Shape(tokens, sql)
    shape.expression()
    shape.finish()


class _Shape(ShapeOfExpressions):
    """Goes through the tokens of a query once. Each method takes what its name says, or refuses."""

    def query(self) -> None:
        if self.take(TokenType.WITH):
            self.each(self.named)
        self.side()
        while self.take(TokenType.UNION):
            self.take(TokenType.ALL, TokenType.DISTINCT)
            self.side()

    def named(self) -> None:
        self.name("A name is expected after WITH.")
        if not self.take(TokenType.ALIAS):
            self.refuse("AS is missing.", "write WITH name AS (SELECT …)")
        self.inside(self.query)

    def side(self) -> None:
        if self.kind() == TokenType.L_PAREN:
            self.inside(self.query)
            return
        self.expect(TokenType.SELECT, "SELECT")
        self.take(TokenType.HINT)
        self.take(TokenType.ALL, TokenType.DISTINCT)
        self.each(self.item)
        self.expect(TokenType.FROM, "FROM")
        self.relation()
        while self.joins():
            pass
        while self.take(TokenType.LATERAL):
            self.view()
        if self.take(TokenType.WHERE):
            self.expression()
        if self.take(TokenType.GROUP_BY):
            group_by(self)
        if self.take(TokenType.HAVING):
            self.expression()

    def view(self) -> None:
        """The rest of LATERAL VIEW: a call, what its rows are called, and their columns."""
        self.expect(TokenType.VIEW, "VIEW")
        self.take(TokenType.OUTER)
        self.call()
        self.name("A name is expected after the call.", "write LATERAL VIEW explode(a) t AS x")
        if self.take(TokenType.ALIAS):
            self.each(self.name)

    def elements(self) -> bool:
        """UNNEST or LATERAL and a call, with names; False if there is none."""
        if not (self.take(TokenType.LATERAL) or self.kind() == TokenType.UNNEST):
            return False
        self.call()
        if self.take(TokenType.ALIAS) or self.kind() in _STREAM_ALIASES:
            self.name()
            if self.kind() == TokenType.L_PAREN:
                self.inside(lambda: self.each(self.name))
        return True

    def relation(self) -> None:
        """An operand of FROM and its window clause."""
        if self.elements():
            return
        if self.word() == SEQ and self.kind(1) == TokenType.L_PAREN:
            self.pattern()
        else:
            self.streams()
            if self.is_match():
                self.match()
        if self.window() and self.kind() == TokenType.COMMA and self.kind(1) in (None, TokenType.WHERE):
            self.at += 1  # as the papers write it

    def pattern(self) -> None:
        """Steps, and what is said of them, of which OVER is read by `pattern_syntax.py`."""
        self.at += 1
        self.inside(lambda: self.each(self.step))
        while True:
            if self.take(TokenType.PARTITION_BY):
                self.each(self.column)
            elif self.take_word("MODE"):
                self.name("A context is expected after MODE.")
            elif self.take_word("OVER"):
                self.expect(TokenType.L_BRACKET, "An opening bracket")
                while self.kind() not in (TokenType.R_BRACKET, None):
                    self.at += 1
                self.expect(TokenType.R_BRACKET, "A closing bracket")
            else:
                return

    def match(self) -> None:
        """MATCH_RECOGNIZE, whose parts are read by `match_recognize.py`, and a name."""
        self.at += 1
        self.nested()
        self.alias(_STREAM_ALIASES)

    def is_match(self) -> bool:
        return self.word() == MATCH and self.kind(1) == TokenType.L_PAREN

    def nested(self) -> None:
        """Anything in parentheses."""
        self.expect(TokenType.L_PAREN, "An opening parenthesis")
        while self.kind() not in (TokenType.R_PAREN, None):
            if self.kind() == TokenType.L_PAREN:
                self.nested()
            else:
                self.at += 1
        self.expect(TokenType.R_PAREN, "A closing parenthesis")

    def step(self) -> None:
        self.take(TokenType.NOT)
        self.streams()

    def joins(self) -> bool:
        """A further operand of FROM, and how it is joined; False if there is none."""
        if self.take(TokenType.COMMA):
            self.relation()
            return True
        start = self.at
        while self.take(*_JOINS):
            pass
        if not self.take(TokenType.JOIN):
            self.at = start
            return False
        self.relation()
        if self.take(TokenType.ON):
            self.expression()
        elif self.take(TokenType.USING):
            self.inside(lambda: self.each(self.name))
        return True

    def item(self) -> None:
        if self.take(TokenType.STAR):
            return
        if self.kind() in NAMES and self.kind(1) == TokenType.DOT and self.kind(2) == TokenType.STAR:
            self.at += 3
            return
        self.expression()
        windowed = self.window()
        if self.kind() == TokenType.ALIAS and self.kind(1) == TokenType.L_PAREN:
            self.at += 1
            self.inside(lambda: self.each(self.name))
        else:
            self.alias(_ALIASES)
        if not windowed:
            self.window()

    def alias(self, without_as: Container[TokenType | None]) -> None:
        """Another name, or none. After AS any word can be one."""
        if self.take(TokenType.ALIAS):
            self.word_or_name("A name is expected after AS.")
        elif self.kind() in without_as:
            self.name()

    def window(self) -> bool:
        """A window clause, whose parts are read by `clause.py`."""
        if not self.take(OPENING):
            return False
        while self.kind() not in (TokenType.R_BRACKET, None):
            self.at += 1
        self.expect(TokenType.R_BRACKET, "A closing bracket")
        return True

    def streams(self) -> None:
        """What stands after FROM: a stream, a union of streams or a sub-query, with another name or without."""
        self.stream()
        while self.kind() == TokenType.UNION:
            second = 2 if self.kind(1) == TokenType.ALL else 1
            if self.is_query(second):
                break  # of two queries
            self.at += second
            self.stream()
        self.version()
        if not self.is_match():
            self.alias(_STREAM_ALIASES)

    def version(self) -> None:
        """`FOR SYSTEM_TIME AS OF` and a time, or nothing."""
        if self.kind() == TokenType.FOR and self.word(1) == "SYSTEM_TIME":
            self.at += 2
            self.expect(TokenType.ALIAS, "AS")
            if not self.take_word("OF"):
                self.refuse("OF is expected here.", "write FOR SYSTEM_TIME AS OF s.ts")
            self.expression()

    def stream(self) -> None:
        if self.kind() == TokenType.TABLE and self.kind(1) == TokenType.L_PAREN:
            self.at += 1
            self.inside(self.windows)
        elif self.kind() != TokenType.L_PAREN:
            self.name("A stream's name or a sub-query is expected after FROM.")
        elif self.is_query(1):
            self.inside(self.query)
        else:
            self.inside(self.streams)

    def windows(self) -> None:
        """A function that puts the rows of a stream into windows: `TUMBLE(TABLE s, DESCRIPTOR(ts), …)`."""
        self.name("TUMBLE or HOP is expected here.")
        self.inside(lambda: self.each(self.argument))

    def argument(self) -> None:
        """An argument of such a function, with its name or without."""
        if self.kind(1) == TokenType.FARROW:
            self.at += 2
        if self.take(TokenType.TABLE):
            self.name("A stream's name is expected here.")
        elif self.kind() == TokenType.L_PAREN and self.is_query(1):
            self.inside(self.query)
        else:
            self.expression()
