"""The shape that the text of a query must have: every token in a place where the dialect has one.

The parser is a lenient one. Where a token must stand it often takes one if it is there, and it passes over some that
mean nothing to it (`SELECT , v`, `CAST(v AS int`, `FROM s *`). What it leaves out is not in the tree, so `reading.py`
cannot miss it. Here the tokens are gone through by the grammar of what queries can say, and nothing is passed over: a
token that the grammar does not ask for is refused at its place, whatever the parser makes of it.

This comes last, when a query is bound. What the parser and the binder refuse (joins, ORDER BY, functions that nobody
knows) they have named by then, so the grammar has only what is supported, and it leaves to them what they decide: which
operator binds first, how many arguments a function takes, what stands in a window clause. Nothing is built, so the cost
is one step per token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.sql.dialect import SCALAR_FUNCTIONS, PenstockDialect, line_and_column
from penstock.sql.shape_groups import after_aggregate, group_by, nulls

_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS}
_ARITHMETIC = {
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DIV, TokenType.DPIPE,
}  # fmt: skip
_BINARY = _ARITHMETIC | {
    TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ,
    TokenType.AND, TokenType.OR, TokenType.LIKE,
}  # fmt: skip
_CONSTANTS = {TokenType.NULL, TokenType.TRUE, TokenType.FALSE}
_TYPES_OF_TEXT = {
    TokenType.DATE,
    TokenType.TIMESTAMP,
    TokenType.TIMESTAMPTZ,
    TokenType.TIMESTAMPLTZ,
    TokenType.TIMESTAMPNTZ,
}
_NAMES = (PenstockDialect.Parser.ID_VAR_TOKENS | {TokenType.VAR, TokenType.IDENTIFIER, TokenType.INTERVAL}) - {
    TokenType.ALL, TokenType.CASE, TokenType.TRUE, TokenType.FALSE,
}  # fmt: skip
_OPERATORS = {TokenType.AND, TokenType.OR, TokenType.IN, TokenType.IS, TokenType.DIV}
_FUNCTIONS = (_NAMES | PenstockDialect.Parser.FUNC_TOKENS) - (_OPERATORS - {TokenType.DIV})
_ALIASES = _NAMES - _OPERATORS - {TokenType.END}
"""What can be a name without AS before it."""
_STREAM_ALIASES = _ALIASES & (PenstockDialect.Parser.TABLE_ALIAS_TOKENS | {TokenType.IDENTIFIER})
_WORD = re.compile(r"[^\W\d]\w*")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
_NUL = re.compile("\x00")
_QUERIES = {TokenType.SELECT, TokenType.WITH}


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


class _Shape:
    """Goes through the tokens once, from left to right. Each method takes what its name says, or refuses."""

    def __init__(self, tokens: Sequence[Token], sql: str) -> None:
        self.tokens, self.sql = tokens, sql
        self.at = 0

    # Tokens

    def kind(self, ahead: int = 0) -> TokenType | None:
        place = self.at + ahead
        return self.tokens[place].token_type if place < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """The word that stands there, in capitals; empty if it is something else than a word."""
        place = self.at + ahead
        if place >= len(self.tokens) or self.tokens[place].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return ""
        text = self.tokens[place].text
        return text.upper() if _WORD.fullmatch(text) else ""

    def take(self, *kinds: TokenType) -> bool:
        found = self.kind() in kinds
        self.at += found
        return found

    def take_word(self, *words: str) -> bool:
        found = self.word() in words
        self.at += found
        return found

    def expect(self, kind: TokenType, text: str) -> None:
        if not self.take(kind):
            self.refuse(f"{text} is expected here.")

    def refuse(self, what: str, hint: str = "") -> NoReturn:
        """An error at the token that does not fit; at a comma before it, if that is what is too much."""
        loose = self.at > 0 and self.tokens[self.at - 1].token_type == TokenType.COMMA
        at = self.at - 1 if loose else self.at
        if loose:
            what, hint = "Something is missing after the comma.", "leave the comma out"
        token = self.tokens[min(at, len(self.tokens) - 1)]
        line, column = line_and_column(self.sql, token.start)
        got = token.text[:60] if at < len(self.tokens) else f"nothing after {token.text[:60]}"
        raise QueryError(what, sql=self.sql, line=line, column=column, got=got, hint=hint)

    def finish(self) -> None:
        if self.at < len(self.tokens):
            self.refuse("This does not belong here.", "leave it out, or say what it is for")

    def each(self, part: Callable[[], None]) -> None:
        """One or more, with commas between them."""
        part()
        while self.take(TokenType.COMMA):
            part()

    def inside(self, part: Callable[[], None]) -> None:
        """In parentheses."""
        self.expect(TokenType.L_PAREN, "An opening parenthesis")
        part()
        self.expect(TokenType.R_PAREN, "A closing parenthesis")

    # Queries

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
        self.take(TokenType.ALL, TokenType.DISTINCT)
        self.each(self.item)
        self.expect(TokenType.FROM, "FROM")
        self.streams()
        if self.window() and self.kind() == TokenType.COMMA and self.kind(1) in (None, TokenType.WHERE):
            self.at += 1  # as the papers write it
        if self.take(TokenType.WHERE):
            self.expression()
        if self.take(TokenType.GROUP_BY):
            group_by(self)
        if self.take(TokenType.HAVING):
            self.expression()

    def item(self) -> None:
        if self.take(TokenType.STAR):
            return
        if self.kind() in _NAMES and self.kind(1) == TokenType.DOT and self.kind(2) == TokenType.STAR:
            self.at += 3
            return
        self.expression()
        windowed = self.window()
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
        if not self.take(TokenType.L_BRACKET):
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
        self.alias(_STREAM_ALIASES)

    def stream(self) -> None:
        if self.kind() != TokenType.L_PAREN:
            self.name("A stream's name or a sub-query is expected after FROM.")
        elif self.is_query(1):
            self.inside(self.query)
        else:
            self.inside(self.streams)

    def is_query(self, ahead: int) -> bool:
        """Whether a query begins there, in parentheses or without."""
        while self.kind(ahead) == TokenType.L_PAREN:
            ahead += 1
        return self.kind(ahead) in _QUERIES

    # Expressions

    def expression(self) -> None:
        self.operand()
        while True:
            if self.kind() == TokenType.NOT:
                if self.kind(1) not in (TokenType.IN, TokenType.BETWEEN, TokenType.LIKE):
                    return
                self.at += 1
            if self.take(*_BINARY):
                self.operand()
            elif self.take(TokenType.BETWEEN):
                self.operand()
                while self.take(*_ARITHMETIC):
                    self.operand()
                self.expect(TokenType.AND, "The AND of BETWEEN")
                self.operand()
            elif self.take(TokenType.IN):
                self.inside(lambda: self.each(self.expression))
            elif self.take(TokenType.IS):
                self.test()
            elif self.take(TokenType.DCOLON):
                self.type()
            else:
                return

    def test(self) -> None:
        self.take(TokenType.NOT)
        if self.take(TokenType.DISTINCT):
            self.expect(TokenType.FROM, "FROM")
            self.operand()
        elif not self.take(*_CONSTANTS):
            self.refuse("NULL, TRUE or FALSE is expected after IS.")

    def operand(self) -> None:
        while self.take(*_PREFIXES):
            pass
        kind, following = self.kind(), self.kind(1)
        if kind in _TYPES_OF_TEXT and following == TokenType.STRING:
            self.at += 2
        elif kind == TokenType.INTERVAL and following in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH):
            self.interval()
        elif kind == TokenType.CASE:
            self.case()
        elif kind == TokenType.L_PAREN:
            self.inside(self.expression)
        elif following == TokenType.L_PAREN and kind in _FUNCTIONS:
            self.call()
        elif kind == TokenType.STRING:
            while self.take(TokenType.STRING):  # texts side by side are one
                pass
        elif kind == TokenType.DOT and following == TokenType.NUMBER:
            if self.tokens[self.at].end + 1 != self.tokens[self.at + 1].start:
                self.refuse("A number is not written with a space in it.")
            self.at += 2
        elif not self.take(TokenType.NUMBER, *_CONSTANTS):
            self.column()

    def column(self) -> None:
        hint = "a name that is a word of SQL stands in backquotes" if self.word() else ""
        self.name("A column, a value or a function is expected here.", hint)
        while self.take(TokenType.DOT):
            self.word_or_name("A name is expected after the dot.")

    def interval(self) -> None:
        self.at += 1
        self.take(TokenType.DASH)
        if not self.take(TokenType.NUMBER, TokenType.STRING):
            self.refuse("A length is expected after INTERVAL.")
        if self.kind() == TokenType.VAR:  # a unit; a text can have it inside
            self.at += 1

    def case(self) -> None:
        self.at += 1
        if self.kind() != TokenType.WHEN:
            self.expression()
        self.expect(TokenType.WHEN, "The WHEN of CASE")
        while True:
            self.expression()
            self.expect(TokenType.THEN, "The THEN of CASE")
            self.expression()
            if not self.take(TokenType.WHEN):
                break
        if self.take(TokenType.ELSE):
            self.expression()
        self.expect(TokenType.END, "The END of CASE")

    def call(self) -> None:
        called = self.word()
        self.at += 1
        if called == "CAST":
            self.inside(self.cast)
        elif called in ("SUBSTRING", "SUBSTR"):
            self.inside(self.substring)
        elif self.kind(1) == TokenType.R_PAREN:
            self.at += 2
            after_aggregate(self)
        elif called in SCALAR_FUNCTIONS:
            self.inside(lambda: self.each(self.expression))
        else:
            self.inside(self.aggregated)
            after_aggregate(self)

    def aggregated(self) -> None:
        """The arguments of an aggregate, or of a function that the dialect does not know."""
        if self.kind() == TokenType.STAR and self.kind(1) == TokenType.R_PAREN:
            self.at += 1
            return
        self.take(TokenType.ALL, TokenType.DISTINCT)
        self.each(self.expression)
        nulls(self)

    def cast(self) -> None:
        self.expression()
        self.expect(TokenType.ALIAS, "The AS of CAST")
        self.type()

    def substring(self) -> None:
        self.expression()
        if self.take(TokenType.FROM):
            self.expression()
            if self.take_word("FOR"):
                self.expression()
        elif self.take(TokenType.COMMA):
            self.each(self.expression)

    def type(self) -> None:
        if not self.take(TokenType.VAR, *PenstockDialect.Parser.TYPE_TOKENS):
            self.refuse("A type is expected here.")
        if self.kind() == TokenType.L_PAREN:
            self.inside(lambda: self.each(lambda: self.expect(TokenType.NUMBER, "A number")))
        if self.word() in ("WITH", "WITHOUT") and self.word(1) in ("TIME", "LOCAL"):
            self.at += 1
            self.take_word("LOCAL")
            if not (self.take_word("TIME") and self.take_word("ZONE")):
                self.refuse("A type is expected here.")

    def word_or_name(self, what: str) -> None:
        if self.word():
            self.at += 1
        else:
            self.name(what)

    def name(self, what: str = "A name is expected here.", hint: str = "") -> None:
        if self.kind() not in _NAMES:
            self.refuse(what, hint)
        forbidden = _NUL if self.kind() == TokenType.IDENTIFIER else _CONTROLS
        if forbidden.search(self.tokens[self.at].text):
            self.refuse("A name has a control character in it.", "write the name without it")
        self.at += 1
