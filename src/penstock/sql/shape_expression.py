"""The shape of expressions: tokens gone through from left to right, each where the grammar has one.

See `shape.py`, which has that of queries.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.sql.dialect import SCALAR_FUNCTIONS, PenstockDialect, line_and_column
from penstock.sql.shape_groups import after_aggregate, nulls
from penstock.sql.shape_words import ARITHMETIC, WORDED

_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_BINARY = ARITHMETIC | {
    TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ,
    TokenType.AND, TokenType.OR, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE,
}  # fmt: skip
_AFTER_NOT = {TokenType.IN, TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE}
_CONSTANTS = {TokenType.NULL, TokenType.TRUE, TokenType.FALSE}
_TYPES_OF_TEXT = {
    TokenType.DATE,
    TokenType.TIMESTAMP,
    TokenType.TIMESTAMPTZ,
    TokenType.TIMESTAMPLTZ,
    TokenType.TIMESTAMPNTZ,
}
NAMES = (PenstockDialect.Parser.ID_VAR_TOKENS | {TokenType.VAR, TokenType.IDENTIFIER, TokenType.INTERVAL}) - {
    TokenType.ALL, TokenType.CASE, TokenType.TRUE, TokenType.FALSE,
}  # fmt: skip
OPERATORS = {TokenType.AND, TokenType.OR, TokenType.IN, TokenType.IS, TokenType.DIV}
_FUNCTIONS = (NAMES | PenstockDialect.Parser.FUNC_TOKENS) - (OPERATORS - {TokenType.DIV})
_WORD = re.compile(r"[^\W\d]\w*")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
_NUL = re.compile("\x00")
_QUERIES = {TokenType.SELECT, TokenType.WITH}


class ShapeOfExpressions(ABC):
    """Goes through the tokens once, from left to right. Each method takes what its name says, or refuses."""

    def __init__(self, tokens: Sequence[Token], sql: str) -> None:
        self.tokens, self.sql = tokens, sql
        self.at = 0

    # Tokens

    def kind(self, ahead: int = 0) -> TokenType | None:
        """What kind of token stands so many ahead; None after the last."""
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
        """Whether a token of these kinds stands here; it is taken."""
        found = self.kind() in kinds
        self.at += found
        return found

    def take_word(self, *words: str) -> bool:
        """Whether one of these words stands here; it is taken."""
        found = self.word() in words
        self.at += found
        return found

    def expect(self, kind: TokenType, text: str) -> None:
        """Take a token, or refuse what stands in its place."""
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
        """Nothing is left."""
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

    @abstractmethod
    def query(self) -> None:
        """A query, for whoever knows what that is."""

    def is_query(self, ahead: int) -> bool:
        """Whether a query begins there, in parentheses or without."""
        while self.kind(ahead) == TokenType.L_PAREN:
            ahead += 1
        return self.kind(ahead) in _QUERIES

    def expression(self) -> None:
        """Operands with operators between them."""
        self.operand()
        while True:
            if self.kind() == TokenType.NOT:
                if self.kind(1) not in _AFTER_NOT:
                    return
                self.at += 1
            if self.take(*_BINARY):
                self.operand()
            elif self.take(TokenType.BETWEEN):
                self.operand()
                while self.take(*ARITHMETIC):
                    self.operand()
                self.expect(TokenType.AND, "The AND of BETWEEN")
                self.operand()
            elif self.take(TokenType.IN):
                self.inside(self.query if self.is_query(1) else lambda: self.each(self.expression))
            elif self.take(TokenType.IS):
                self.test()
            elif self.take(TokenType.DCOLON):
                self.type()
            else:
                return

    def test(self) -> None:
        """What stands after IS."""
        self.take(TokenType.NOT)
        if self.take(TokenType.DISTINCT):
            self.expect(TokenType.FROM, "FROM")
            self.operand()
        elif not self.take(*_CONSTANTS):
            self.refuse("NULL, TRUE or FALSE is expected after IS.")

    def operand(self) -> None:
        """A value, a column, a call, or an expression in parentheses."""
        while self.take(*_PREFIXES):
            pass
        kind, following = self.kind(), self.kind(1)
        if kind in _TYPES_OF_TEXT and following == TokenType.STRING:
            self.at += 2
        elif kind == TokenType.INTERVAL and following in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH):
            self.interval()
        elif kind == TokenType.CASE:
            self.case()
        elif kind == TokenType.EXISTS and self.is_query(1):
            self.at += 1
            self.inside(self.query)
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
        elif not self.take(TokenType.NUMBER, TokenType.RAW_STRING, *_CONSTANTS):
            self.column()
        self.access()

    def access(self) -> None:
        """Parts of what stands before: an index or a key in brackets, a field after a dot."""
        while True:
            if self.take(TokenType.L_BRACKET):
                self.expression()
                self.expect(TokenType.R_BRACKET, "A closing bracket")
            elif self.take(TokenType.DOT):
                self.word_or_name("A name is expected after the dot.")
            else:
                return

    def column(self) -> None:
        """A name, with others before it."""
        hint = "a name that is a word of SQL stands in backquotes" if self.word() else ""
        self.name("A column, a value or a function is expected here.", hint)
        while self.take(TokenType.DOT):
            self.word_or_name("A name is expected after the dot.")

    def interval(self) -> None:
        """A length of time."""
        self.at += 1
        self.take(TokenType.DASH)
        if not self.take(TokenType.NUMBER, TokenType.STRING):
            self.refuse("A length is expected after INTERVAL.")
        if self.kind() == TokenType.VAR:  # a unit; a text can have it inside
            self.at += 1

    def case(self) -> None:
        """CASE, whatever its form."""
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
        """A function and its arguments."""
        called = self.word()
        self.at += 1
        if called == "CAST":
            self.inside(self.cast)
        elif called in ("SUBSTRING", "SUBSTR"):
            self.inside(self.substring)
        elif called in WORDED:
            self.inside(lambda: WORDED[called](self))
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
        self.each(self.value)
        nulls(self)

    def value(self) -> None:
        """An argument, which may have a name: `struct(v AS w)`."""
        self.expression()
        if self.take(TokenType.ALIAS):
            self.word_or_name("A name is expected after AS.")

    def cast(self) -> None:
        """What stands in CAST."""
        self.expression()
        self.expect(TokenType.ALIAS, "The AS of CAST")
        self.type()

    def substring(self) -> None:
        """What stands in SUBSTRING."""
        self.expression()
        if self.take(TokenType.FROM):
            self.expression()
            if self.take_word("FOR"):
                self.expression()
        elif self.take(TokenType.COMMA):
            self.each(self.expression)

    def type(self) -> None:
        """The name of a type."""
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
        """Any word, or a name in quotes."""
        if self.word():
            self.at += 1
        else:
            self.name(what)

    def name(self, what: str = "A name is expected here.", hint: str = "") -> None:
        """A name."""
        if self.kind() not in NAMES:
            self.refuse(what, hint)
        forbidden = _NUL if self.kind() == TokenType.IDENTIFIER else _CONTROLS
        if forbidden.search(self.tokens[self.at].text):
            self.refuse("A name has a control character in it.", "write the name without it")
        self.at += 1
