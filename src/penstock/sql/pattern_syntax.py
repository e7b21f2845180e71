"""How patterns are written: `FROM SEQ(cases AS c, products AS p) OVER [1 HOUR PRECEDING p] MODE CHRONICLE`.

Steps are streams or sub-queries, each with a name; one with NOT before it must not come. After them stand, in any
order and each at most once, `PARTITION BY` with columns that all steps have, `OVER` with the longest time (`1 HOUR
PRECEDING` the last step or `FOLLOWING` the first, or `UNLIMITED PRECEDING` as the paper has it) and `MODE` with the
context. Here it is only read; `bind_pattern.py` gives it meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError, StreamError
from penstock.model.time import TIME_UNITS, Span, make_span
from penstock.sql.clause import column_of

SEQ = "SEQ"
FORM = "SEQ(a, b) OVER [1 HOUR PRECEDING b] MODE RECENT"
_UNLIMITED = frozenset({"UNLIMITED", "UNBOUNDED"})
_DIRECTIONS = ("PRECEDING", "FOLLOWING")


class PatternNode(exp.Expression):
    """A pattern in a syntax tree."""

    arg_types = {"steps": True, "partition": False, "over": False, "mode": False, "order": False}  # noqa: RUF012


class StepNode(exp.Expression):
    """A step: what it reads, and whether it must not come."""

    arg_types = {"this": True, "negated": False}  # noqa: RUF012


class OverNode(exp.Expression):
    """The longest time; `this` is an `Over`."""

    arg_types = {"this": True}  # noqa: RUF012


@dataclass(frozen=True)
class Over:
    """A length of time, None if it has no end, before or after a step."""

    span: Span | None
    direction: str
    step: str
    is_less: bool = False
    """Whether that long is too long."""


class PatternParser(SparkParser):
    """Reads patterns where a stream can stand."""

    def _is_pattern(self) -> bool:
        return self._curr.text.upper() == SEQ and self._next.token_type == TokenType.L_PAREN

    def _parse_pattern(self) -> exp.Expr:
        opening = self._curr
        self._advance()
        self._match_l_paren()
        found: dict[str, Any] = {"steps": self._parse_csv(self._parse_step)}
        if not self._match(TokenType.R_PAREN):
            raise self._no_step()
        while True:
            at, part = self._curr, self._part_of_pattern()
            if part is None:
                break
            if part[0] in found:
                raise self._misread_pattern("This part of a pattern is given twice.", at, got=at.text)
            found |= dict([part])
        if self._curr.token_type in (TokenType.ALIAS, TokenType.VAR):
            hint = "give each step a name: SEQ(cases AS c, products AS p)"
            raise self._misread_pattern("A pattern has no name of its own.", self._curr, got=self._curr.text, hint=hint)
        return self.expression(PatternNode(**found), opening)

    def _parse_step(self) -> exp.Expr | None:
        negated = bool(self._match(TokenType.NOT))
        at = self._curr
        if at.token_type in (TokenType.NOT, TokenType.R_PAREN, TokenType.COMMA):
            raise self._no_step()
        table = SparkParser._parse_table(self)
        return None if table is None else self.expression(StepNode(this=table, negated=negated), at)

    def _no_step(self) -> QueryError:
        hint = "write SEQ(a AS x, NOT b AS y, (SELECT * FROM c UNION ALL SELECT * FROM d) AS z)"
        at = self._curr
        return self._misread_pattern("Steps are streams or sub-queries, with commas between.", at, at.text, hint)

    def _part_of_pattern(self) -> tuple[str, Any] | None:
        """A part that stands after the steps; None if there is none."""
        word = self._curr.text.upper()
        if self._curr.token_type == TokenType.PARTITION_BY:
            self._advance()
            return "partition", self._parse_csv(self._parse_column)
        if word == "OVER":
            self._advance()
            return "over", self._parse_over()
        if word == "MODE":
            self._advance()
            mode = self._curr
            self._advance()
            return "mode", self.expression(exp.Var(this=mode.text), mode)
        return None

    def _parse_over(self) -> exp.Expr:
        opening = self._curr
        rest = self._tokens[self._index + 1 :]
        length = next((n for n, token in enumerate(rest) if token.token_type == TokenType.R_BRACKET), None)
        if opening.token_type != TokenType.L_BRACKET or length is None:
            raise self._misread_pattern(
                "OVER of a pattern takes a length of time in brackets.", opening, got=opening.text, hint=FORM
            )
        over = self._over(rest[:length], opening)
        self._advance(length + 2)
        return self.expression(OverNode(this=over), opening)

    def _over(self, tokens: list[Token], opening: Token) -> Over:
        words = [token.text for token in tokens]
        said = [word.upper() for word in words]
        if len(words) >= 3 and said[-2] in _DIRECTIONS:
            if said[:-2] in [[word] for word in _UNLIMITED]:
                return Over(None, said[-2], words[-1])
            unit = words[1].lower() if len(words) == 4 else ""
            if tokens[0].token_type == TokenType.NUMBER and len(words) in (3, 4) and (not unit or unit in TIME_UNITS):
                try:
                    return Over(make_span(words[0], unit), said[-2], words[-1])
                except StreamError as error:
                    raise self._misread_pattern(error.what, tokens[0], got=error.got, hint=error.hint) from None
        raise self._misread_pattern(
            "OVER of a pattern takes a length of time, PRECEDING or FOLLOWING, and a step.",
            tokens[0] if tokens else opening,
            got=" ".join(words)[:60],
            hint=FORM,
        )

    def _misread_pattern(self, what: str, token: Token, got: str = "", hint: str = "") -> QueryError:
        return QueryError(what, sql=self.sql, line=token.line, column=column_of(token), got=got[:60], hint=hint)
